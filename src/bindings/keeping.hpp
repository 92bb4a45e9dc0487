// Bindings that all forests share: options and functions for keeping and forgetting samples, and common properties.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "calls.hpp"
#include "samples/tenure.hpp"

namespace onlineforest::bindings {

// Converts arguments of a constructor. Throws std::invalid_argument if they exclude each other.
inline KeepOptions keep_of(std::size_t window, std::size_t reservoir, double half_life) {
  if (window > 0 && reservoir > 0) {
    throw std::invalid_argument("window and reservoir exclude each other, got window " + std::to_string(window) +
                                " and reservoir " + std::to_string(reservoir));
  }
  if (window > 0) return {KeepRule::kLatest, window, kInfinity};
  if (reservoir > 0) return {KeepRule::kSample, reservoir, half_life};
  return {};
}

// Forgets samples by row and value. Returns the indices of rows that are not stored. If there are any, forgets nothing.
template <class Forest>
OutArray<std::int64_t, 1> forget_rows(Forest& self, const InArray<float, 2>& rows,
                                      const InArray<typename Forest::Value, 1>& values, std::size_t n_threads) {
  require_width(self, rows);
  const auto missing =
      run(n_threads, [&](const Call& call) { return self.forget(span_of(rows), span_of(values), call); });
  return to_array(std::vector<std::int64_t>(missing.begin(), missing.end()));
}

template <class T>
T to_python(T number) {
  return number;
}

template <class T>
OutArray<T, 1> to_python(std::vector<T> numbers) {
  return to_array(std::move(numbers));
}

// Binds the properties that the forest lists in for_each_property(), and the functions that all forests have.
template <class Forest>
void bind_keeping(nb::class_<Forest>& forest) {
  using namespace nb::literals;
  forest
      .def(
          "forget",
          [](Forest& self, const InArray<Serial, 1>& serials, std::size_t n_threads) {
            run(n_threads, [&](auto& call) { self.forget(span_of(serials), call); });
          },
          "serials"_a.noconvert(), "n_threads"_a = 1)
      .def("forget_rows", &forget_rows<Forest>, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1)
      .def(
          "keep_latest",
          [](Forest& self, std::size_t n, std::size_t n_threads) {
            run(n_threads, [&](auto& call) { self.keep_latest(n, call); });
          },
          "n"_a, "n_threads"_a = 1)
      .def(
          "are_stored",
          [](const Forest& self, const InArray<Serial, 1>& serials) {
            return to_array(run([&] { return self.are_stored(span_of(serials)); }));
          },
          "serials"_a.noconvert())
      .def_prop_ro("n_trees", [](const Forest& self) { return self.options().n_trees; })
      .def_prop_ro("n_features", [](const Forest& self) { return self.n_features(); });
  Forest::for_each_property([&forest]<class Get>(const char* name, Get get) {
    forest.def_prop_ro(
        name, [get](const Forest& self) { return to_python(run([&] { return std::invoke(get, self); })); },
        nb::rv_policy::move);
  });
}

}  // namespace onlineforest::bindings
