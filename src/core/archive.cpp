#include "archive.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "invariants.hpp"

namespace onlineforest {

namespace {

void require_state(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(std::string("not the state of a forest: ") + message);
}

void require_prior(const LabelPrior& prior, std::size_t) {
  require_state(prior.leaf_discount >= 0.0 && prior.leaf_discount <= 1.0, "the leaf discount is out of range");
}

void require_prior(const GaussianPrior& prior, std::size_t n_features) {
  constexpr double largest = 1e10 * kLargestValue;  // of what is computed from values
  const auto is_sound = [](double x) { return std::abs(x) <= largest; };
  const Trend& trend = prior.trend;
  require_state(prior.noise >= kLeastNoise && prior.noise <= 1.0, "the noise is out of range");
  require_state(prior.scale >= 0.0 && is_sound(prior.scale), "the scale of the values is out of range");
  require_state(is_sound(trend.intercept), "the trend is no number");
  require_state(prior.trend_variance >= 0.0 && prior.trend_variance <= kLargestTrendVariance,
                "the trend's variance is out of range");
  require_state(trend.is_constant() || trend.ends.size() == n_features, "the trend is one of other features");
  require_state(trend.heights.size() == trend.knots.size(), "the trend has knots without height");
  std::int32_t begin = 0;
  for (const std::int32_t end : trend.ends) {
    require_state(end >= begin && static_cast<std::size_t>(end) <= trend.knots.size(),
                  "the knots of the trend are tangled");
    for (std::int32_t k = begin; k < end; ++k) {
      const std::size_t i = static_cast<std::size_t>(k);
      require_state(std::isfinite(trend.knots[i]) && is_sound(trend.heights[i]), "the trend is no number");
      require_state(k == begin || trend.knots[i - 1] < trend.knots[i], "the knots of the trend do not increase");
    }
    begin = end;
  }
  require_state(static_cast<std::size_t>(begin) == trend.knots.size(), "the knots of the trend are tangled");
}

template <class Prior>
void require_measure(const MeasureState<Prior>& measure, std::size_t n_features) {
  require_state(measure.weights.size() == n_features, "there must be one weight per feature");
  require_state(std::ranges::all_of(measure.weights, [](double w) { return w >= 0.0 && w <= kLargestWeight; }),
                "a weight is out of range");
  require_state(measure.discount_rate >= 0.0 && std::isfinite(measure.discount_rate),
                "the discount rate is out of range");
  require_prior(measure.prior, n_features);
}

// Sets what a prior expects of the points, which must not be too far from it.
void expect(const LabelPrior&, PointStore<Label>&) {}

void expect(const GaussianPrior& prior, PointStore<double>& points) {
  constexpr double largest = 1e10 * kLargestResidual;
  points.set_expected(0, [&prior](const float* row) { return prior.trend.at(row); });
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    require_state(std::abs(prior.residual(points.value(slot), points.expected(slot))) <= largest,
                  "a value is out of all proportion to the prior");
  }
}

template <class Prior>
MeasureState<Prior> save_measure(const MeasurePointer<Prior>& measure) {
  if (!measure) return {};
  return {measure->weights, measure->discount_rate, measure->prior};
}

template <class Prior>
MeasureWith<Prior> measure_from(const MeasureState<Prior>& state) {
  return {state.weights, state.discount_rate, state.prior};
}

}  // namespace

template <class Forest>
ForestState<Forest> Archive<Forest>::save(const Forest& forest) {
  return forest.read([&forest](const auto&) {
    State state;
    state.options = forest.options();
    state.extra = forest.extra();
    state.rows.assign(forest.points_.rows().begin(), forest.points_.rows().end());
    state.values.assign(forest.points_.values().begin(), forest.points_.values().end());
    state.measure = save_measure(forest.measure_);
    state.schedule = forest.schedule_.state();
    state.serials.assign(forest.tenure_.serials().begin(), forest.tenure_.serials().end());
    state.n_seen = forest.tenure_.n_seen();
    state.turned_away = forest.tenure_.turned_away();
    for (const auto& tree : forest.trees_) state.trees.push_back(save_tree(tree));
    return state;
  });
}

template <class Forest>
TreeState<typename Forest::Prior> Archive<Forest>::save_tree(const TargetTree& tree) {
  TreeState<Prior> state;
  state.rng = tree.rng_.state();
  state.measure = save_measure(tree.measure_);
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

template <class Forest>
std::unique_ptr<Forest> Archive<Forest>::restore(const State& state) {
  require_state(state.trees.size() == state.options.n_trees, "the number of trees is wrong");
  auto forest = std::make_unique<Forest>(state.options);
  const std::size_t n_features = state.options.n_features;
  require_state(state.rows.size() == state.values.size() * n_features, "rows and values differ in number");
  require_state(std::ranges::all_of(state.rows, [](float x) { return std::isfinite(x); }), "a point is not finite");
  require_state(state.serials.size() == state.values.size(), "not every point has its time");
  require_state(state.schedule.computed_from <= state.n_seen && state.schedule.n_since <= state.n_seen,
                "the measure comes from more points than there were");
  // A first call that was stopped while the measure was learned has stored points, but has no measure yet.
  const bool has_measure = !state.measure.weights.empty();
  if (has_measure) {
    require_state(!state.values.empty(), "there is a measure, but no points");
    require_measure(state.measure, n_features);
  } else {
    require_state(state.schedule.computed_from == 0 && state.schedule.n_refreshes == 0,
                  "there must be one weight per feature");
    require_state(std::ranges::all_of(state.trees, [](const TreeState<Prior>& tree) { return tree.left.empty(); }),
                  "there must be one weight per feature");
  }

  forest->points_.append(state.rows, state.values);
  try {
    forest->tenure_.restore(state.serials, state.n_seen, state.turned_away);
    forest->restore(state.extra);
  } catch (const std::invalid_argument& error) {
    require_state(false, error.what());
  }
  if (has_measure) forest->measure_ = std::make_shared<const MeasureWith<Prior>>(measure_from(state.measure));
  forest->schedule_.resume(state.schedule);
  // A tree's own measure is that of all, unless a call was stopped.
  MeasurePointer<Prior> expected;
  for (std::size_t i = 0; i < state.trees.size(); ++i) {
    restore_tree(state.trees[i], *forest, forest->trees_[i], expected);
  }
  if (has_measure && expected != forest->measure_) expect(forest->measure_->prior, forest->points_);
  return forest;
}

template <class Forest>
void Archive<Forest>::restore_tree(const TreeState<Prior>& state, Forest& forest, TargetTree& tree,
                                   MeasurePointer<Prior>& expected) {
  const auto& points = forest.points_;
  const std::size_t n_features = points.n_features();
  const std::size_t n = state.left.size(), n_points = state.next_point.size();
  require_state(std::ranges::any_of(state.rng, [](std::uint64_t word) { return word != 0; }),
                "a random state is all zero");
  tree.rng_ = Rng(state.rng);
  require_state(state.right.size() == n && state.split_dimension.size() == n && state.split_location.size() == n &&
                    state.split_time.size() == n,
                "the arrays of a tree differ in length");
  require_state(n_points <= points.size(), "a tree holds more points than there are");
  if (n == 0) {
    require_state(n_points == 0, "an empty tree has points");
    return;
  }
  require_measure(state.measure, n_features);
  require_state(n < 2 * n_points, "a tree has more nodes than its points allow");
  MeasureWith<Prior> measure = measure_from(state.measure);
  // One object for all trees that share it, so that they are seen to.
  tree.measure_ = forest.measure_ && measure == *forest.measure_
                      ? forest.measure_
                      : std::make_shared<const MeasureWith<Prior>>(std::move(measure));
  tree.target_.set_measure(*tree.measure_);
  forest.prepare(tree.target_);
  if (expected != tree.measure_) expect(tree.measure_->prior, forest.points_);
  expected = tree.measure_;
  tree.next_ = state.next_point;

  const auto is_node = [n](NodeIndex j) { return j >= 0 && static_cast<std::size_t>(j) < n; };
  const auto is_point = [n_points](Slot slot) { return slot >= 0 && static_cast<std::size_t>(slot) < n_points; };
  tree.add_nodes(n);
  for (std::size_t i = 0; i < n; ++i) {
    Node& node = tree.nodes_[static_cast<NodeIndex>(i)];
    tree.set_split_time(static_cast<NodeIndex>(i), state.split_time[i]);
    require_state(!std::isnan(state.split_time[i]) && std::isfinite(state.split_location[i]),
                  "a time or location is no number");
    node.split_dimension = state.split_dimension[i];
    if (node.is_leaf()) {
      require_state(is_point(state.left[i]) && state.right[i] > 0, "a leaf has no points");
      node.first_point = state.left[i];
      node.n_points = 0;  // counted below
    } else {
      require_state(node.split_dimension >= 0 && static_cast<std::size_t>(node.split_dimension) < n_features,
                    "a split dimension is no feature");
      require_state(is_node(state.left[i]) && is_node(state.right[i]), "a child is no node");
      require_state(state.right[i] == state.left[i] + 1, "two children are not side by side");
      node.left = state.left[i];
      node.split_location = state.split_location[i];
    }
  }

  // Parents before children. A node that is reached twice would make this longer than there are nodes.
  std::vector<NodeIndex> order{kRoot};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeIndex j = order[i];
    if (tree.nodes_[j].is_leaf()) continue;
    require_state(order.size() + 2 <= n, "a node is reached twice");
    order.push_back(tree.nodes_[j].left);
    order.push_back(tree.nodes_[j].right());
  }
  require_state(order.size() == n, "a node is not reached from the root");

  // Children before parents: the values, and the boxes of those that have more than a few points.
  std::size_t n_placed = 0;
  std::vector<std::int32_t> n_below(n);
  std::vector<Slot> slots;
  BoxBuffer buffer;
  for (auto j = order.rbegin(); j != order.rend(); ++j) {
    Node& node = tree.nodes_[*j];
    std::int32_t& n_here = n_below[static_cast<std::size_t>(*j)];
    if (node.is_leaf()) {
      for (Slot slot = node.first_point; slot != kNoSlot; slot = tree.next_point(slot)) {
        require_state(is_point(slot) && n_placed++ < n_points, "the point lists of the leaves are tangled");
        ++node.n_points;
      }
      tree.find_points(*j, slots);
      tree.target_.add_to_leaf(*j, 0, kNoSlot, points, slots);
      n_here = node.n_points;
      require_state(n_here == state.right[static_cast<std::size_t>(*j)], "the count of a leaf is wrong");
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
    require_state(false, error.what());
  }
}

template class Archive<LabelForest>;
template class Archive<GaussianForest>;

}  // namespace onlineforest
