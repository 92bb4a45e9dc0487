// Builds one tree of a forest from its saved nodes, and checks them. Does not know how the other arrays of a state are
// checked (check_state) nor in which order trees are built (Archive::restore).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/allowance.hpp"
#include "mondrian/process/rates.hpp"
#include "mondrian/state/archive.hpp"
#include "mondrian/state/require.hpp"
#include "mondrian/tree/boxes.hpp"

namespace onlineforest::mondrian {

// Checks every index, count, link, time and cut of the saved tree. Computes everything else: boxes, and what the target
// keeps of the labels.
class Archive::TreeBuilder {
 public:
  // `index` is the number of the tree in the state and in the forest, where it is still empty.
  TreeBuilder(const TreeState& state, std::size_t index, Forest& forest, const MeasurePointer& measure)
      : state_(state),
        index_(index),
        forest_(forest),
        points_(forest.points_),
        tree_(forest.trees_[index]),
        n_(state.left.size()) {
    tree_.measure_ = measure;
  }

  void build(Allowance& memory, StopProbe& stop) {
    const std::size_t n_points = state_.next_point.size();
    require_tree(n_ < 2 * n_points, "has ", n_, " nodes, but only ", n_points, " points");
    memory.take(n_ * (sizeof(Node) + sizeof(double)) + n_points * sizeof(Slot));
    tree_.target_.reserve_classes(forest_.n_classes_);
    tree_.next_ = state_.next_point;
    tree_.nodes_.expect(n_);
    tree_.target_.expect_nodes(n_);
    tree_.add_nodes(n_);
    for (std::size_t i = 0; i < n_; ++i) set_node(i);
    order_nodes();
    count_points();
    const std::size_t n_boxes =
        static_cast<std::size_t>(std::ranges::count_if(n_below_, [](std::int32_t n) { return n > kFewPoints; }));
    memory.take(BoxStore::nbytes_of(n_boxes, points_.n_features()));
    set_boxes_and_labels(memory, stop);
  }

 private:
  static constexpr std::size_t kWorkBetweenCounts = std::size_t{1} << 16;  // labels, roughly

  template <class... Parts>
  void require_tree(bool ok, const Parts&... parts) const {
    require_state(ok, "tree ", index_, " ", parts...);
  }

  template <class... Parts>
  void require_node(bool ok, NodeIndex j, const Parts&... parts) const {
    require_state(ok, "tree ", index_, ": node ", j, " ", parts...);
  }

  void set_node(std::size_t i) {
    const NodeIndex j = static_cast<NodeIndex>(i);
    Node& node = tree_.nodes_[j];
    tree_.nodes_.split_time(j) = state_.split_time[i];
    node.split_dimension = state_.split_dimension[i];
    if (node.is_leaf()) {
      set_leaf_node(j, node);
    } else {
      set_internal_node(j, node);
    }
  }

  void set_leaf_node(NodeIndex j, Node& node) {
    const std::size_t i = static_cast<std::size_t>(j);
    const Slot first = state_.left[i];
    const std::int32_t n_points = state_.right[i];
    require_node(is_point(first), j, "is a leaf whose first point is ", first, ", the tree has ",
                 state_.next_point.size(), " points");
    require_node(n_points > 0, j, "is a leaf of ", n_points, " points");
    require_node(state_.split_time[i] == tree_.lifetime(), j, "is a leaf with split_time ", state_.split_time[i],
                 ", the lifetime is ", tree_.lifetime());
    require_node(state_.split_location[i] == 0.0f, j, "is a leaf with split_location ", state_.split_location[i],
                 " instead of 0");
    node.first_point = first;
    node.n_points = n_points;
  }

  void set_internal_node(NodeIndex j, Node& node) {
    const std::size_t i = static_cast<std::size_t>(j);
    const std::int32_t dimension = node.split_dimension;
    const double time = state_.split_time[i];
    const auto& weights = tree_.measure_->weights;
    require_node(dimension >= 0 && static_cast<std::size_t>(dimension) < weights.size(), j, "has split_dimension ",
                 dimension, ", the forest has ", weights.size(), " features");
    require_node(weights[static_cast<std::size_t>(dimension)] > 0.0, j, "has split_dimension ", dimension,
                 ", a feature of weight 0");
    require_node(time >= 0.0 && time < tree_.lifetime(), j, "has split_time ", time,
                 ", outside [0, lifetime = ", tree_.lifetime(), ")");
    require_node(std::isfinite(state_.split_location[i]), j, "has split_location ", state_.split_location[i],
                 ", which is not finite");
    require_node(is_node(state_.left[i]) && is_node(state_.right[i]), j, "has the children ", state_.left[i], " and ",
                 state_.right[i], ", the tree has ", n_, " nodes");
    require_node(state_.right[i] == state_.left[i] + 1, j, "has the children ", state_.left[i], " and ",
                 state_.right[i], ", which are not neighbours");
    node.left = state_.left[i];
    node.split_location = state_.split_location[i];
  }

  // Parents before children. A node that is reached twice would make the order longer than the number of nodes.
  void order_nodes() {
    order_.reserve(n_);
    order_.push_back(kRoot);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const NodeIndex j = order_[i];
      if (tree_.nodes_[j].is_leaf()) continue;
      require_tree(order_.size() + 2 <= n_, "has a node with two parents: more than its ", n_, " nodes are linked");
      for (const NodeIndex child : {tree_.nodes_[j].left, tree_.nodes_[j].right()}) {
        const double time = tree_.nodes_.split_time(j), child_time = tree_.nodes_.split_time(child);
        require_node(time <= child_time, child, "has split_time ", child_time, ", its parent ", j, " has ", time);
        order_.push_back(child);
      }
    }
    require_tree(order_.size() == n_, "has ", n_, " nodes, but the root reaches only ", order_.size());
  }

  void count_points() {
    const std::size_t n_points = state_.next_point.size();
    std::vector<bool> seen(n_points);
    std::size_t n_placed = 0;
    n_below_.resize(n_);
    for (auto j = order_.rbegin(); j != order_.rend(); ++j) {
      const Node& node = tree_.nodes_[*j];
      std::int32_t& n_here = n_below_[static_cast<std::size_t>(*j)];
      if (!node.is_leaf()) {
        n_here = n_below(node.left) + n_below(node.right());
        require_node(!tree_.target_.is_small(static_cast<std::size_t>(n_here)), *j, "cuts a block of ", n_here,
                     " points, min_samples_split is ", forest_.options().min_samples_split);
        continue;
      }
      for (Slot slot = node.first_point; slot != kNoSlot; slot = tree_.next_point(slot)) {
        require_node(is_point(slot), *j, "is a leaf with point ", slot, ", the tree has ", n_points, " points");
        require_node(!seen[static_cast<std::size_t>(slot)], *j, "is a leaf with point ", slot,
                     ", which is in a leaf already");
        seen[static_cast<std::size_t>(slot)] = true;
        ++n_here;
      }
      require_node(n_here == node.n_points, *j, "is a leaf of ", node.n_points, " points, but next_point links ",
                   n_here);
      n_placed += static_cast<std::size_t>(n_here);
    }
    require_tree(n_placed == n_points, "has ", n_points, " points, but its leaves hold only ", n_placed);
  }

  // Children before parents. Counts the target's memory once in a while, because to ask for it takes time.
  void set_boxes_and_labels(Allowance& memory, StopProbe& stop) {
    std::size_t n_bytes = 0, n_done = 0;
    const auto count_memory = [&] {
      const std::size_t now = tree_.target_.nbytes();
      memory.take(now - std::min(now, n_bytes));
      n_bytes = std::max(now, n_bytes);
      n_done = 0;
    };
    for (auto j = order_.rbegin(); j != order_.rend(); ++j) {
      if (n_below(*j) > kFewPoints) tree_.nodes_.add_box(*j);
      if (tree_.nodes_[*j].is_leaf()) {
        set_leaf(*j);
      } else {
        set_internal(*j);
      }
      const std::size_t work = tree_.target_.size(*j);
      stop.tick(points_.n_features() + work);
      if ((n_done += 1 + work) >= kWorkBetweenCounts) count_memory();
    }
    count_memory();
  }

  void set_leaf(NodeIndex j) {
    const Node& leaf = tree_.nodes_[j];
    const std::size_t n_features = points_.n_features();
    slots_.clear();
    tree_.find_points(j, slots_);
    // In the order of their labels, points append to the label set of the leaf.
    std::ranges::sort(slots_, {}, [this](Slot slot) { return points_.label(slot); });
    tree_.target_.add_to_leaf(j, 0, points_, slots_);
    if (tree_.nodes_.has_box(j)) {
      float* lower = tree_.nodes_.lower(j);
      float* upper = tree_.nodes_.upper(j);
      start_box(lower, upper, points_.box(leaf.first_point), n_features);
      for (const Slot slot : slots_) include(lower, upper, points_.box(slot), n_features);
    }
    if (tree_.target_.is_paused(j, leaf.n_points) || tree_.lifetime() < kInfinity) return;
    const double rate = linear_dimension(tree_.weights(), tree_.box(j, points_, buffer_), n_features);
    require_node(rate < kNoRate, j,
                 "is a leaf that is neither paused nor a single point: its box has linear dimension ", rate);
  }

  void set_internal(NodeIndex j) {
    const Node& node = tree_.nodes_[j];
    const NodeIndex left = node.left, right = node.right();
    const std::size_t dimension = static_cast<std::size_t>(node.split_dimension);
    tree_.target_.combine(j, left, right);
    require_node(!holds_one_label(left) || !holds_one_label(right) || label_of(left) != label_of(right), j,
                 "cuts a block whose points all have the same label");
    const float left_end = upper_end(left, dimension), right_end = lower_end(right, dimension);
    require_node(left_end <= node.split_location && node.split_location < right_end, j, "has split_location ",
                 node.split_location, ", outside [", left_end, ", ", right_end, ") between its children");
    if (!tree_.nodes_.has_box(j)) return;
    float* lower = tree_.nodes_.lower(j);
    float* upper = tree_.nodes_.upper(j);
    start_box(lower, upper, tree_.box(left, points_, buffer_), points_.n_features());
    include(lower, upper, tree_.box(right, points_, buffer_), points_.n_features());
  }

  // Only a leaf can: an internal node with one label was rejected.
  bool holds_one_label(NodeIndex j) const { return tree_.nodes_[j].is_leaf() && !tree_.target_.is_mixed(j); }
  Label label_of(NodeIndex leaf) const { return points_.label(tree_.nodes_[leaf].first_point); }

  float upper_end(NodeIndex j, std::size_t dimension) const {
    if (tree_.nodes_.has_box(j)) return tree_.nodes_.stored_box(j).upper[dimension];
    float end = -std::numeric_limits<float>::infinity();
    tree_.for_each_of_few(j, [&](Slot slot) { end = std::max(end, points_.row(slot)[dimension]); });
    return end;
  }

  float lower_end(NodeIndex j, std::size_t dimension) const {
    if (tree_.nodes_.has_box(j)) return tree_.nodes_.stored_box(j).lower[dimension];
    float end = std::numeric_limits<float>::infinity();
    tree_.for_each_of_few(j, [&](Slot slot) { end = std::min(end, points_.row(slot)[dimension]); });
    return end;
  }

  bool is_node(NodeIndex j) const { return j >= 0 && static_cast<std::size_t>(j) < n_; }
  bool is_point(Slot slot) const { return slot >= 0 && static_cast<std::size_t>(slot) < state_.next_point.size(); }
  std::int32_t n_below(NodeIndex j) const { return n_below_[static_cast<std::size_t>(j)]; }

  const TreeState& state_;
  std::size_t index_;
  const Forest& forest_;
  const PointStore& points_;
  Tree<LabelTarget>& tree_;
  std::size_t n_;
  std::vector<NodeIndex> order_;
  std::vector<std::int32_t> n_below_;  // points below each node
  std::vector<Slot> slots_;
  BoxBuffer buffer_;
};

}  // namespace onlineforest::mondrian
