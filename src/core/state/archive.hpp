// A forest as plain flat arrays, and back. Knows nothing of files or Python.
//
// Kept is what cannot be derived: points, links, cuts, times, random states. Parents, boxes and what a target keeps
// of its values are computed when a forest is restored, so a state cannot contradict itself about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/allowance.hpp"
#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"

namespace onlineforest {

using MeasureIndex = std::int32_t;
inline constexpr MeasureIndex kNoMeasure = -1;

template <class Prior>
struct MeasureState {
  std::vector<double> weights;
  double discount_rate = 0.0;
  Prior prior;
};

struct TreeState {
  Rng::State rng{};
  MeasureIndex measure = kNoMeasure;  // none if the tree is empty
  // Per node. For a leaf (split_dimension -1), `left` is its first point and `right` the number of its points.
  std::vector<NodeIndex> left, right;
  std::vector<std::int32_t> split_dimension;
  std::vector<float> split_location;  // 0 for a leaf
  std::vector<double> split_time;
  std::vector<Slot> next_point;  // per point of the tree: the next of the same leaf, or -1
};

template <class Forest>
struct ForestState {
  typename Forest::Options options;
  typename Forest::Extra extra;
  std::vector<float> rows;                     // what is missing is filled in
  std::vector<std::int32_t> missing_features;  // see MissingCells
  std::vector<MissingCells::Word> missing_words;
  std::vector<typename Forest::Value> values;
  std::vector<MeasureState<typename Forest::Prior>> measures;  // those of the forest and its trees, each once
  MeasureIndex measure = kNoMeasure;                           // of the forest; none before anything is learned
  MeasureSchedule::State schedule;
  std::vector<Serial> serials;  // per point: when it came
  std::uint64_t n_seen = 0;
  double turned_away = -kInfinity;
  std::vector<TreeState> trees;
};

struct RestoreOptions {
  std::size_t n_threads = 1;
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();  // of the forest in memory, roughly
  StopRequested requested;
};

template <class Forest>
class Archive {
 public:
  using State = ForestState<Forest>;

  static State save(const Forest& forest, const StopRequested& requested = {});

  // The forest learns on exactly as the saved one would. Throws std::invalid_argument that says what is wrong if the
  // state is not one of a forest, TooLarge if the forest is; no state can crash it. Takes time and memory in proportion
  // to the forest.
  static std::unique_ptr<Forest> restore(const State& state, const RestoreOptions& options = {});

 private:
  using TargetTree = typename Forest::TargetTree;
  using Prior = typename Forest::Prior;
  class TreeBuilder;

  static TreeState save_tree(const TargetTree& tree);
};

}  // namespace onlineforest
