// Options of a forest that do not depend on its kind of target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.hpp"
#include "points/tenure.hpp"
#include "process/measure.hpp"

namespace onlineforest {

// The trees [begin, end) of a forest.
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
  // A shard holds only some of the trees. Its points and its measure are those of the whole forest.
  std::optional<TreeRange> held = {};

  TreeRange trees_held() const { return held.value_or(TreeRange{0, n_trees}); }
  bool is_shard() const { return trees_held().size() < n_trees; }
};

// Throws std::invalid_argument if a value is out of range.
void check_options(const ForestOptions& options);

}  // namespace onlineforest
