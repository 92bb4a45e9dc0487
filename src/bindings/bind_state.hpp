// A forest's state as a dictionary of NumPy arrays, and back.
#pragma once

#include <nanobind/nanobind.h>

#include "state/archive.hpp"

namespace onlineforest::bindings {

template <class Forest>
nanobind::dict state_to_dict(ForestState<Forest> state);

// Throws std::invalid_argument that names the entry that is missing or of another type.
template <class Forest>
ForestState<Forest> state_from_dict(const nanobind::dict& dict);

}  // namespace onlineforest::bindings
