// Converts a forest to its state, plain flat arrays, and back. Knows nothing of files or Python.
//
// A state holds only what cannot be computed from the rest: points, links, cuts, times, random states. Restoring
// computes parents, boxes and what a target keeps of the labels, so a state cannot contradict itself about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/allowance.hpp"
#include "base/call.hpp"
#include "mondrian/forest/forest.hpp"

namespace onlineforest::mondrian {

using MeasureIndex = std::int32_t;
inline constexpr MeasureIndex kNoMeasure = -1;

struct MeasureState {
  std::vector<double> weights;
  double discount_rate = 0.0, leaf_discount = 0.0;
};

struct TreeState {
  Rng::State rng{};
  MeasureIndex measure = kNoMeasure;  // kNoMeasure if the tree is empty
  // Per node. For a leaf (split_dimension -1), `left` is its first point and `right` the number of its points.
  std::vector<NodeIndex> left, right;
  std::vector<std::int32_t> split_dimension;
  std::vector<float> split_location;  // 0 for a leaf
  std::vector<double> split_time;
  std::vector<Slot> next_point;  // per point of the tree: the next point of its leaf, or -1
};

struct ForestState {
  ForestOptions options;
  std::int32_t n_classes = 0;
  std::vector<float> rows;
  std::vector<Label> values;           // per point: its label
  std::vector<MeasureState> measures;  // the distinct measures of the forest and its trees
  MeasureIndex measure = kNoMeasure;   // measure of the forest; kNoMeasure before anything is learned
  MeasureSchedule::State schedule;
  std::vector<Serial> serials;  // per arrival
  std::vector<Slot> sample_of;  // per arrival: its point; none if arrival i is point i
  std::uint64_t n_seen = 0;
  double turned_away = -kInfinity;
  std::vector<TreeState> trees;
};

class Archive {
 public:
  static ForestState save(const Forest& forest, const Call& call = Call());

  // The restored forest learns on exactly as the saved one would. Any arrays are safe input: throws
  // std::invalid_argument that names the array, the value and the bound if they are not the state of a forest, and
  // TooLarge if the forest would need more than max_bytes. Takes time and memory in proportion to the forest.
  static std::unique_ptr<Forest> restore(const ForestState& state, const Call& call = Call(),
                                         std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

 private:
  class TreeBuilder;

  static TreeState save_tree(const Tree<LabelTarget>& tree);
  // A forest with the points of the state, and empty trees.
  static std::unique_ptr<Forest> restore_points(const ForestState& state, Allowance& memory);
};

}  // namespace onlineforest::mondrian
