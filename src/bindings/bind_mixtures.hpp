// Mixtures as dictionaries of NumPy arrays, and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "numbers/mixtures.hpp"

namespace onlineforest::bindings {

inline nb::dict to_dict(Mixtures mixtures) {
  nb::dict dict;
  dict["ends"] = to_array(std::move(mixtures.ends));
  dict["completion_of"] = to_array(std::move(mixtures.completion_of));
  dict["masses"] = to_array(std::move(mixtures.masses));
  dict["means"] = to_array(std::move(mixtures.means));
  dict["variances"] = to_array(std::move(mixtures.variances));
  return dict;
}

template <class T>
std::vector<T> vector_in(const nb::dict& dict, const char* name) {
  InArray<T, 1> array;
  if (!dict.contains(name)) throw std::invalid_argument(std::string("array '") + name + "' is missing");
  if (!nb::try_cast(dict[name], array, /*convert=*/false)) {
    throw std::invalid_argument(std::string("array '") + name + "' has the wrong type or shape");
  }
  return vector_of(array);
}

inline Mixtures mixtures_in(const nb::dict& dict) {
  return {vector_in<std::uint64_t>(dict, "ends"), vector_in<std::int32_t>(dict, "completion_of"),
          vector_in<double>(dict, "masses"), vector_in<double>(dict, "means"), vector_in<double>(dict, "variances")};
}

inline std::optional<Mixtures> mixtures_in(const std::optional<nb::dict>& dict) {
  if (!dict) return std::nullopt;
  return mixtures_in(*dict);
}

}  // namespace onlineforest::bindings
