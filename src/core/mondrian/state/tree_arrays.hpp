// A tree as arrays for inspection: one array per property, one row per node. Restoring does not use them.
#pragma once

#include <cstdint>
#include <vector>

#include "mondrian/forest/forest.hpp"

namespace onlineforest::mondrian {

struct TreeArrays {
  std::size_t n_nodes = 0;
  std::vector<NodeIndex> parent, left, right;  // kNoNode for the root's parent and a leaf's children
  std::vector<std::int32_t> split_dimension;   // -1 for a leaf
  std::vector<float> split_location;           // NaN for a leaf
  std::vector<double> split_time;
  std::vector<float> lower, upper;     // n_nodes x n_features
  std::vector<std::int32_t> n_points;  // below each node
  std::size_t n_classes = 0;
  std::vector<double> count;         // n_nodes x n_classes: c_jk of the paper's appendix A
  std::vector<std::uint8_t> labels;  // n_nodes x n_classes: tab_jk, the label set
};

// Throws std::out_of_range if the forest holds no tree of this index.
TreeArrays tree_arrays(const Forest& forest, std::size_t index);

}  // namespace onlineforest::mondrian
