#include "archive.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "invariants.hpp"

namespace onlineforest {

namespace {

void require(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(std::string("not the state of a forest: ") + message);
}

void require_measure(const std::vector<double>& weights, double discount_rate, double leaf_discount,
                     std::size_t n_features) {
  require(weights.size() == n_features, "there must be one weight per feature");
  require(std::ranges::all_of(weights, [](double w) { return w >= 0.0 && w <= kLargestWeight; }),
          "a weight is out of range");
  require(discount_rate >= 0.0 && std::isfinite(discount_rate), "the discount rate is out of range");
  require(leaf_discount >= 0.0 && leaf_discount <= 1.0, "the leaf discount is out of range");
}

}  // namespace

ForestState Archive::save(const LabelForest& forest) {
  return forest.read([](const LabelForest& f) {
    ForestState state;
    state.options = f.options();
    state.n_classes = f.n_classes_;
    state.rows.assign(f.points_.rows().begin(), f.points_.rows().end());
    state.labels.assign(f.points_.values().begin(), f.points_.values().end());
    if (f.measure_) {
      state.weights = f.measure_->weights;
      state.discount_rate = f.measure_->discount_rate;
      state.leaf_discount = f.measure_->leaf_discount;
    }
    state.measure_computed_from = f.schedule_.computed_from();
    for (const auto& tree : f.trees_) state.trees.push_back(save_tree(tree));
    return state;
  });
}

TreeState Archive::save_tree(const Tree<LabelTarget>& tree) {
  TreeState state;
  state.rng = tree.rng_.state();
  if (tree.measure_) {
    state.weights = tree.measure_->weights;
    state.discount_rate = tree.measure_->discount_rate;
    state.leaf_discount = tree.measure_->leaf_discount;
  }
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

std::unique_ptr<LabelForest> Archive::restore(const ForestState& state) {
  require(state.trees.size() == state.options.n_trees, "the number of trees is wrong");
  auto forest = std::make_unique<LabelForest>(state.options);
  const std::size_t n_features = state.options.n_features;
  require(state.rows.size() == state.labels.size() * n_features, "rows and labels differ in number");
  require(std::ranges::all_of(state.rows, [](float x) { return std::isfinite(x); }), "a point is not finite");
  require(state.n_classes >= 0, "the number of classes is negative");
  require(std::ranges::all_of(state.labels, [&](Label y) { return y >= 0 && y < state.n_classes; }),
          "a label is no class");
  require(state.measure_computed_from <= state.labels.size(), "the measure comes from more points than there are");
  // A first call that was stopped while the measure was learned has stored points, but has no measure yet.
  const bool has_measure = !state.weights.empty();
  if (has_measure) {
    require(!state.labels.empty(), "there is a measure, but no points");
    require_measure(state.weights, state.discount_rate, state.leaf_discount, n_features);
  } else {
    require(state.measure_computed_from == 0, "there must be one weight per feature");
    require(std::ranges::all_of(state.trees, [](const TreeState& tree) { return tree.left.empty(); }),
            "there must be one weight per feature");
  }

  forest->points_.append(state.rows, state.labels);
  forest->n_classes_ = state.n_classes;
  if (has_measure)
    forest->measure_ = std::make_shared<const Measure>(state.weights, state.discount_rate, state.leaf_discount);
  forest->schedule_.resume(state.measure_computed_from);
  for (std::size_t i = 0; i < state.trees.size(); ++i) restore_tree(state.trees[i], *forest, forest->trees_[i]);
  return forest;
}

void Archive::restore_tree(const TreeState& state, const LabelForest& forest, Tree<LabelTarget>& tree) {
  const PointStore<Label>& points = forest.points_;
  const std::size_t n_features = points.n_features();
  const std::size_t n = state.left.size(), n_points = state.next_point.size();
  require(std::ranges::any_of(state.rng, [](std::uint64_t word) { return word != 0; }), "a random state is all zero");
  tree.rng_ = Rng(state.rng);
  require(state.right.size() == n && state.split_dimension.size() == n && state.split_location.size() == n &&
              state.split_time.size() == n,
          "the arrays of a tree differ in length");
  require(n_points <= points.size(), "a tree holds more points than there are");
  if (n == 0) {
    require(n_points == 0, "an empty tree has points");
    return;
  }
  require_measure(state.weights, state.discount_rate, state.leaf_discount, n_features);
  require(n < 2 * n_points, "a tree has more nodes than its points allow");
  const Measure measure{state.weights, state.discount_rate, state.leaf_discount};
  // One object for all trees that share it, so that they are seen to.
  tree.measure_ =
      forest.measure_ && measure == *forest.measure_ ? forest.measure_ : std::make_shared<const Measure>(measure);
  tree.target_.reserve_classes(forest.n_classes_);
  tree.next_ = state.next_point;

  const auto is_node = [n](NodeIndex j) { return j >= 0 && static_cast<std::size_t>(j) < n; };
  const auto is_point = [n_points](Slot slot) { return slot >= 0 && static_cast<std::size_t>(slot) < n_points; };
  tree.add_nodes(n);
  for (std::size_t i = 0; i < n; ++i) {
    Node& node = tree.nodes_[static_cast<NodeIndex>(i)];
    tree.nodes_.split_time(static_cast<NodeIndex>(i)) = state.split_time[i];
    require(!std::isnan(state.split_time[i]) && std::isfinite(state.split_location[i]),
            "a time or location is no number");
    node.split_dimension = state.split_dimension[i];
    if (node.is_leaf()) {
      require(is_point(state.left[i]) && state.right[i] > 0, "a leaf has no points");
      node.first_point = state.left[i];
      node.n_points = 0;  // counted below
    } else {
      require(node.split_dimension >= 0 && static_cast<std::size_t>(node.split_dimension) < n_features,
              "a split dimension is no feature");
      require(is_node(state.left[i]) && is_node(state.right[i]), "a child is no node");
      require(state.right[i] == state.left[i] + 1, "two children are not side by side");
      node.left = state.left[i];
      node.split_location = state.split_location[i];
    }
  }

  // Parents before children. A node that is reached twice would make this longer than there are nodes.
  std::vector<NodeIndex> order{kRoot};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeIndex j = order[i];
    if (tree.nodes_[j].is_leaf()) continue;
    require(order.size() + 2 <= n, "a node is reached twice");
    order.push_back(tree.nodes_[j].left);
    order.push_back(tree.nodes_[j].right());
  }
  require(order.size() == n, "a node is not reached from the root");

  // Children before parents: labels, and the boxes of those that have more than a few points.
  std::size_t n_placed = 0;
  std::vector<std::int32_t> n_below(n);
  BoxBuffer buffer;
  for (auto j = order.rbegin(); j != order.rend(); ++j) {
    Node& node = tree.nodes_[*j];
    std::int32_t& n_here = n_below[static_cast<std::size_t>(*j)];
    if (node.is_leaf()) {
      for (Slot slot = node.first_point; slot != kNoSlot; slot = tree.next_point(slot)) {
        require(is_point(slot) && n_placed++ < n_points, "the point lists of the leaves are tangled");
        tree.target_.add_to_leaf(*j, node.n_points++, points, std::span(&slot, 1));
      }
      n_here = node.n_points;
      require(n_here == state.right[static_cast<std::size_t>(*j)], "the count of a leaf is wrong");
    } else {
      n_here = n_below[static_cast<std::size_t>(node.left)] + n_below[static_cast<std::size_t>(node.right())];
      tree.target_.combine(*j, node.left, node.right());
    }
    if (n_here <= kFewPoints) continue;
    tree.nodes_.add_box(*j);
    float* lower = tree.nodes_.lower(*j);
    float* upper = tree.nodes_.upper(*j);
    if (node.is_leaf()) {
      start_box(lower, upper, points.box(node.first_point), n_features);
      for (Slot slot = node.first_point; slot != kNoSlot; slot = tree.next_point(slot)) {
        include(lower, upper, points.box(slot), n_features);
      }
    } else {
      start_box(lower, upper, tree.box(node.left, points, buffer), n_features);
      include(lower, upper, tree.box(node.right(), points, buffer), n_features);
    }
  }

  try {
    check_invariants(tree, points, forest.options_.min_samples_split);
  } catch (const std::logic_error& error) {
    require(false, error.what());
  }
}

}  // namespace onlineforest
