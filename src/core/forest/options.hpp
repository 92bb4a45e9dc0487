// What a forest is built with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.hpp"
#include "points/tenure.hpp"
#include "process/measure.hpp"

namespace onlineforest {

// Trees of a forest, by number.
struct TreeRange {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const TreeRange&) const = default;
};

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
  // A part of a forest holds some of the trees only; all else, the points and the measure, is that of the whole.
  std::optional<TreeRange> held = {};

  TreeRange trees_held() const { return held.value_or(TreeRange{0, n_trees}); }
  bool is_part() const { return trees_held().size() < n_trees; }
};

// Throws std::invalid_argument for options that make no forest.
void check_options(const ForestOptions& options);

}  // namespace onlineforest
