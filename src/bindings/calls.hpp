// Calls into the core. They release the GIL, stop at signals, and check the width of rows.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "arrays.hpp"
#include "base/call.hpp"
#include "base/stop.hpp"

namespace onlineforest::bindings {

inline bool signal_arrived() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

// Runs work(call) without the GIL. If a signal stops it, raises what the signal's Python handler raised.
template <class Work>
auto run(std::size_t n_threads, Work work) {
  try {
    const nb::gil_scoped_release release;
    const Call call(n_threads, signal_arrived);
    return work(call);
  } catch (const Interrupted&) {
    throw nb::python_error();  // set by signal_arrived
  }
}

// Runs work() without the GIL, on this thread.
template <class Work>
auto run(Work work) {
  return run(1, [&work](const Call&) { return work(); });
}

template <class Forest>
void require_width(const Forest& forest, const InArray<float, 2>& rows) {
  if (rows.shape(1) != forest.width()) {
    throw std::invalid_argument("X has " + std::to_string(rows.shape(1)) + " features, but this forest has " +
                                std::to_string(forest.width()));
  }
}

}  // namespace onlineforest::bindings
