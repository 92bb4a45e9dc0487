// Reads the arrays of a state from a dictionary by name.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <stdexcept>
#include <string>

#include "arrays.hpp"

namespace onlineforest::bindings {

// Called between two arrays; each takes a second at most.
inline void heed_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

class DictSource {
 public:
  explicit DictSource(const nb::dict& dict) : dict_(dict) {}

  template <class T>
  std::span<const T> get(const std::string& name) {
    heed_signals();
    InArray<T, 1> array;
    if (!dict_.contains(name.c_str()) || !nb::try_cast(dict_[name.c_str()], array, /*convert=*/false)) {
      throw std::invalid_argument("not the state of a forest: '" + name + "' is missing or of another type");
    }
    return span_of(array);  // the dictionary keeps the array alive
  }

 private:
  const nb::dict& dict_;
};

}  // namespace onlineforest::bindings
