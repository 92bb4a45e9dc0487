// Archive::save: a forest to a state. Does not check anything: check_invariants does.
#include <algorithm>
#include <vector>

#include "mondrian/state/archive.hpp"

namespace onlineforest::mondrian {

namespace {

// Numbers measures in the order in which they are first seen. Forest and trees share most of them.
class MeasureIndices {
 public:
  explicit MeasureIndices(std::vector<MeasureState>& saved) : saved_(saved) {}

  MeasureIndex index_of(const MeasurePointer& measure) {
    if (!measure) return kNoMeasure;
    const auto found = std::ranges::find(known_, measure);
    const auto index = static_cast<MeasureIndex>(found - known_.begin());
    if (found == known_.end()) {
      saved_.push_back({measure->weights, measure->discount_rate, measure->leaf_discount});
      known_.push_back(measure);
    }
    return index;
  }

 private:
  std::vector<MeasureState>& saved_;
  std::vector<MeasurePointer> known_;
};

}  // namespace

ForestState Archive::save(const Forest& forest, const Call& call) {
  return forest.read([&](const auto&) {
    StopProbe stop = call.probe();
    ForestState state;
    state.options = forest.options();
    state.n_classes = forest.n_classes_;
    state.rows.assign(forest.points_.rows().begin(), forest.points_.rows().end());
    state.values.assign(forest.points_.labels().begin(), forest.points_.labels().end());
    MeasureIndices measures(state.measures);
    state.measure = measures.index_of(forest.measure_);
    state.schedule = forest.schedule_.state();
    state.serials.assign(forest.tenure_.serials().begin(), forest.tenure_.serials().end());
    state.sample_of = forest.arrivals_.points();
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

TreeState Archive::save_tree(const Tree<LabelTarget>& tree) {
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

}  // namespace onlineforest::mondrian
