// A forest as plain flat arrays, and back. Knows nothing of files or Python.
//
// Kept is what cannot be derived: points, links, cuts, times, random states. Parents, boxes and what a target keeps
// of its values are computed when a forest is restored, so a state cannot contradict itself about them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gaussian_forest.hpp"
#include "label_forest.hpp"

namespace onlineforest {

template <class Prior>
struct MeasureState {
  std::vector<double> weights;  // none if there is no measure
  double discount_rate = 0.0;
  Prior prior;
};

template <class Prior>
struct TreeState {
  Rng::State rng{};
  MeasureState<Prior> measure;
  // Per node. For a leaf (split_dimension -1), `left` is its first point and `right` the number of its points.
  std::vector<NodeIndex> left, right;
  std::vector<std::int32_t> split_dimension;
  std::vector<float> split_location;
  std::vector<double> split_time;
  std::vector<Slot> next_point;  // per point of the tree: the next of the same leaf, or -1
};

template <class Forest>
struct ForestState {
  using Prior = typename Forest::Prior;

  typename Forest::Options options;
  typename Forest::Extra extra;
  std::vector<float> rows;
  std::vector<typename Forest::Value> values;
  MeasureState<Prior> measure;  // without weights before anything is learned
  MeasureSchedule::State schedule;
  std::vector<Serial> serials;  // per point: when it came
  std::uint64_t n_seen = 0;
  double turned_away = -kInfinity;
  std::vector<TreeState<Prior>> trees;
};

template <class Forest>
class Archive {
 public:
  using State = ForestState<Forest>;

  static State save(const Forest& forest);

  // The forest learns on exactly as the saved one would. Throws std::invalid_argument that says what is wrong if
  // the state is not one of a forest; no state can crash it.
  static std::unique_ptr<Forest> restore(const State& state);

 private:
  using TargetTree = typename Forest::TargetTree;
  using Prior = typename Forest::Prior;

  static TreeState<Prior> save_tree(const TargetTree& tree);
  // `expected` is the measure whose expectations the points have.
  static void restore_tree(const TreeState<Prior>& state, Forest& forest, TargetTree& tree,
                           MeasurePointer<Prior>& expected);
};

}  // namespace onlineforest
