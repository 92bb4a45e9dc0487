// A forest as plain flat arrays, and back. Knows nothing of files or Python.
//
// Kept is what cannot be derived: points, links, cuts, times, random states. Parents, boxes, label sets and counts
// are computed when a forest is restored, so a state cannot contradict itself about them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "forest.hpp"

namespace onlineforest {

struct TreeState {
  Rng::State rng{};
  std::vector<double> weights;
  double discount_rate = 0.0, leaf_discount = 0.0;
  // Per node. For a leaf (split_dimension -1), `left` is its first point and `right` the number of its points.
  std::vector<NodeIndex> left, right;
  std::vector<std::int32_t> split_dimension;
  std::vector<float> split_location;
  std::vector<double> split_time;
  std::vector<Slot> next_point;  // per point of the tree: the next of the same leaf, or -1
};

struct ForestState {
  ForestOptions options;
  std::int32_t n_classes = 0;
  std::vector<float> rows;
  std::vector<Label> labels;
  std::vector<double> weights;  // of the measure; none before anything is learned
  double discount_rate = 0.0, leaf_discount = 0.0;
  std::uint64_t measure_computed_from = 0;
  std::vector<TreeState> trees;
};

class Archive {
 public:
  static ForestState save(const LabelForest& forest);

  // The forest learns on exactly as the saved one would. Throws std::invalid_argument that says what is wrong if
  // the state is not one of a forest; no state can crash it.
  static std::unique_ptr<LabelForest> restore(const ForestState& state);

 private:
  static TreeState save_tree(const Tree<LabelTarget>& tree);
  static void restore_tree(const TreeState& state, const LabelForest& forest, Tree<LabelTarget>& tree);
};

}  // namespace onlineforest
