// A forest's state as a dictionary of plain values and NumPy arrays, and back.
#pragma once

#include <nanobind/nanobind.h>

#include "archive.hpp"

namespace onlineforest::bindings {

nanobind::dict state_to_dict(ForestState state);

// Throws ValueError if an entry is missing or of another type.
ForestState state_from_dict(const nanobind::dict& dict);

}  // namespace onlineforest::bindings
