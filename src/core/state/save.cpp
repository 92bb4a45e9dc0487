// Archive::save: a forest to a state. Does not check anything: check_invariants does.
#include <algorithm>
#include <vector>

#include "state/archive.hpp"

namespace onlineforest {

namespace {

// Numbers measures in the order in which they are first seen. Forest and trees share most of them.
template <class Prior>
class MeasureIndices {
 public:
  explicit MeasureIndices(std::vector<MeasureState<Prior>>& saved) : saved_(saved) {}

  MeasureIndex index_of(const MeasurePointer<Prior>& measure) {
    if (!measure) return kNoMeasure;
    const auto found = std::ranges::find(known_, measure);
    const auto index = static_cast<MeasureIndex>(found - known_.begin());
    if (found == known_.end()) {
      saved_.push_back({measure->weights, measure->discount_rate, measure->prior});
      known_.push_back(measure);
    }
    return index;
  }

 private:
  std::vector<MeasureState<Prior>>& saved_;
  std::vector<MeasurePointer<Prior>> known_;
};

}  // namespace

template <class Forest>
ForestState<Forest> Archive<Forest>::save(const Forest& forest, const Call& call) {
  return forest.read([&](const auto&) {
    StopProbe stop = call.probe();
    State state;
    state.options = forest.options();
    state.extra = forest.extra();
    state.rows.assign(forest.points_.rows().begin(), forest.points_.rows().end());
    const MissingCells& missing = forest.points_.missing();
    state.missing_features.assign(missing.features().begin(), missing.features().end());
    state.missing_words = missing.words();
    state.values.assign(forest.points_.values().begin(), forest.points_.values().end());
    MeasureIndices<Prior> measures(state.measures);
    state.measure = measures.index_of(forest.measure_);
    state.schedule = forest.schedule_.state();
    state.serials.assign(forest.tenure_.serials().begin(), forest.tenure_.serials().end());
    state.sample_of = forest.arrivals_.points();
    state.weights = forest.arrivals_.weights();
    state.n_seen = forest.tenure_.n_seen();
    state.turned_away = forest.tenure_.turned_away();
    for (const auto& tree : forest.trees_) {
      state.trees.push_back(save_tree(tree));
      if (!tree.empty()) state.trees.back().measure = measures.index_of(tree.measure_);
      stop.tick(8 * tree.nodes_.size());
    }
    return state;
  });
}

template <class Forest>
TreeState Archive<Forest>::save_tree(const TargetTree& tree) {
  TreeState state;
  state.rng = tree.rng_.state();
  const std::size_t n = tree.nodes_.size();
  state.left.reserve(n);
  state.right.reserve(n);
  state.split_dimension.reserve(n);
  state.split_location.reserve(n);
  state.split_time.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Node& node = tree.nodes_[static_cast<NodeIndex>(i)];
    state.left.push_back(node.is_leaf() ? node.first_point : node.left);
    state.right.push_back(node.is_leaf() ? node.n_points : node.right());
    state.split_dimension.push_back(node.split_dimension);
    state.split_location.push_back(node.is_leaf() ? 0.0f : node.split_location);
    state.split_time.push_back(tree.nodes_.split_time(static_cast<NodeIndex>(i)));
  }
  state.next_point = tree.next_;
  return state;
}

template ForestState<LabelForest> Archive<LabelForest>::save(const LabelForest&, const Call&);
template ForestState<GaussianForest> Archive<GaussianForest>::save(const GaussianForest&, const Call&);

}  // namespace onlineforest
