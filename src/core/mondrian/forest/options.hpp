// Options of a forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "mondrian/process/measure.hpp"
#include "samples/tenure.hpp"

namespace onlineforest::mondrian {

struct ForestOptions {
  std::size_t n_trees = 100;
  std::size_t n_features = 1;
  double lifetime = kInfinity;
  double discount = 10.0;
  std::int32_t min_samples_split = 2;
  WeightRule weight_rule = WeightRule::kRange;
  std::vector<double> weights;  // for WeightRule::kFixed
  std::uint64_t seed = 0;
  KeepOptions keep;
  double leaf_discount = 0.0;
  bool learns_leaf_discount = false;  // if set, `leaf_discount` is ignored
};

// Throws std::invalid_argument if a value is out of range.
void check_options(const ForestOptions& options);

}  // namespace onlineforest::mondrian
