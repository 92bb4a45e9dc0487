// Reads the arrays of a state from a dictionary by name.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "arrays.hpp"

namespace onlineforest::bindings {

// Called between two arrays; each takes a second at most.
inline void heed_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Arrays that a dictionary lacks if they are empty.
using OptionalArrays = std::span<const std::string_view>;

inline bool is_one_of(const std::string& name, OptionalArrays names) {
  return std::ranges::find(names, name) != names.end();
}

class DictSource {
 public:
  DictSource(const nb::dict& dict, OptionalArrays optional) : dict_(dict), optional_(optional) {}

  template <class T>
  std::span<const T> get(const std::string& name) {
    heed_signals();
    if (!dict_.contains(name.c_str()) && is_one_of(name, optional_)) return {};
    InArray<T, 1> array;
    if (!dict_.contains(name.c_str()) || !nb::try_cast(dict_[name.c_str()], array, /*convert=*/false)) {
      throw std::invalid_argument("not the state of a forest: '" + name + "' is missing or of another type");
    }
    return span_of(array);  // the dictionary keeps the array alive
  }

 private:
  const nb::dict& dict_;
  OptionalArrays optional_;
};

}  // namespace onlineforest::bindings
