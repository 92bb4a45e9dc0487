// Options of a forest over labels.
#pragma once

#include "forest/options.hpp"

namespace onlineforest {

struct LabelOptions : ForestOptions {
  double leaf_discount = 0.0;
  bool learns_leaf_discount = false;  // if set, `leaf_discount` is ignored
};

// Throws std::invalid_argument if a value is out of range.
void check_options(const LabelOptions& options);

}  // namespace onlineforest
