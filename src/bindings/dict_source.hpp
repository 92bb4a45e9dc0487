// Reads the arrays of a state from a dictionary by name.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "arrays.hpp"

namespace onlineforest::bindings {

// Raises the exception of a pending signal. Called between two arrays, since one array takes at most a second.
inline void heed_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// The names of the arrays that a dictionary may lack. A missing one is empty.
using OptionalArrays = std::span<const std::string_view>;

inline bool is_one_of(const std::string& name, OptionalArrays names) {
  return std::ranges::find(names, name) != names.end();
}

// The name of a type of numbers in NumPy.
template <class T>
std::string name_of_type() {
  const char* kind = std::is_floating_point_v<T> ? "float" : std::is_unsigned_v<T> ? "uint" : "int";
  return kind + std::to_string(8 * sizeof(T));
}

class DictSource {
 public:
  DictSource(const nb::dict& dict, OptionalArrays optional) : dict_(dict), optional_(optional) {}

  template <class T>
  std::span<const T> get(const std::string& name) {
    heed_signals();
    if (!dict_.contains(name.c_str()) && is_one_of(name, optional_)) return {};
    if (!dict_.contains(name.c_str())) throw std::invalid_argument("array '" + name + "' is missing");
    InArray<T, 1> array;
    if (!nb::try_cast(dict_[name.c_str()], array, /*convert=*/false)) {
      throw std::invalid_argument("array '" + name + "' is not a contiguous one-dimensional array of " +
                                  name_of_type<T>());
    }
    return span_of(array);  // the dictionary keeps the array alive
  }

 private:
  const nb::dict& dict_;
  OptionalArrays optional_;
};

}  // namespace onlineforest::bindings
