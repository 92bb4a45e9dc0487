#include "state/archive.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/allowance.hpp"
#include "base/parallel.hpp"
#include "process/rates.hpp"
#include "tree/boxes.hpp"

namespace onlineforest {

namespace {

void require_state(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(std::string("not the state of a forest: ") + message);
}

constexpr std::size_t kMostMeasures = 16;  // far more than there are: the forest's, and that of trees left behind
constexpr std::size_t kBytesBeside = 64;   // of each point, besides its row: value, expectation, serial, place

void require_prior(const LabelPrior& prior, const LabelOptions& options) {
  require_state(prior.leaf_discount >= 0.0 && prior.leaf_discount <= 1.0, "the leaf discount is out of range");
  require_state(options.learns_leaf_discount || prior.leaf_discount == options.leaf_discount,
                "the leaf discount is not the one given");
}

void require_prior(const GaussianPrior& prior, const GaussianOptions& options) {
  const std::size_t n_features = options.n_features;
  constexpr double largest = 1e10 * kLargestValue;  // of what is computed from values
  const auto is_sound = [](double x) { return std::abs(x) <= largest; };
  const Trend& trend = prior.trend;
  require_state(prior.noise >= kLeastNoise && prior.noise <= 1.0, "the noise is out of range");
  require_state(options.learns_noise || prior.noise == options.noise, "the noise is not the one given");
  require_state(options.has_trend || trend.is_constant(), "there is a trend, but should be none");
  require_state(prior.scale >= 0.0 && is_sound(prior.scale), "the scale of the values is out of range");
  require_state(is_sound(trend.intercept), "the trend is no number");
  require_state(prior.trend_variance >= 0.0 && prior.trend_variance <= kLargestTrendVariance,
                "the trend's variance is out of range");
  require_state(trend.is_constant() || trend.ends.size() == n_features, "the trend is one of other features");
  require_state(trend.heights.size() == trend.knots.size(), "the trend has knots without height");
  require_state(trend.knots.size() <= kTrendColumns + n_features, "the trend has too many knots");
  std::int32_t begin = 0;
  for (const std::int32_t end : trend.ends) {
    require_state(end >= begin && static_cast<std::size_t>(end) <= trend.knots.size(),
                  "the knots of the trend are tangled");
    require_state(static_cast<std::size_t>(end - begin) <= kMostKnots, "the trend has too many knots");
    for (std::int32_t k = begin; k < end; ++k) {
      const std::size_t i = static_cast<std::size_t>(k);
      require_state(std::isfinite(trend.knots[i]) && is_sound(trend.heights[i]), "the trend is no number");
      require_state(k == begin || trend.knots[i - 1] < trend.knots[i], "the knots of the trend do not increase");
    }
    begin = end;
  }
  require_state(static_cast<std::size_t>(begin) == trend.knots.size(), "the knots of the trend are tangled");
}

template <class Prior, class Options>
void require_measure(const MeasureState<Prior>& measure, const Options& options) {
  require_state(measure.weights.size() == options.n_features, "there must be one weight per feature");
  require_state(std::ranges::all_of(measure.weights, [](double w) { return w >= 0.0 && w <= kLargestWeight; }),
                "a weight is out of range");
  if (options.weight_rule == WeightRule::kUnit || options.weight_rule == WeightRule::kFixed) {
    const std::vector<double> ones(options.weight_rule == WeightRule::kUnit ? options.n_features : 0, 1.0);
    require_state(measure.weights == (ones.empty() ? options.weights : ones), "the weights are not those given");
  }
  require_state(measure.discount_rate >= 0.0 && measure.discount_rate <= kLargestDiscountRate,
                "the discount rate is out of range");
  require_prior(measure.prior, options);
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

}  // namespace

template <class Forest>
ForestState<Forest> Archive<Forest>::save(const Forest& forest, const StopRequested& requested) {
  return forest.read([&](const auto&) {
    StopSignal signal(requested);
    StopProbe stop(signal, true);
    State state;
    state.options = forest.options();
    state.extra = forest.extra();
    state.rows.assign(forest.points_.rows().begin(), forest.points_.rows().end());
    const MissingCells& missing = forest.points_.missing();
    state.missing_features.assign(missing.features().begin(), missing.features().end());
    state.missing_words = missing.words();
    state.values.assign(forest.points_.values().begin(), forest.points_.values().end());
    std::vector<MeasurePointer<Prior>> known;
    const auto index_of = [&](const MeasurePointer<Prior>& measure) {
      if (!measure) return kNoMeasure;
      const auto found = std::ranges::find(known, measure);
      if (found == known.end()) {
        state.measures.push_back({measure->weights, measure->discount_rate, measure->prior});
        known.push_back(measure);
        return static_cast<MeasureIndex>(known.size() - 1);
      }
      return static_cast<MeasureIndex>(found - known.begin());
    };
    state.measure = index_of(forest.measure_);
    state.schedule = forest.schedule_.state();
    state.serials.assign(forest.tenure_.serials().begin(), forest.tenure_.serials().end());
    state.n_seen = forest.tenure_.n_seen();
    state.turned_away = forest.tenure_.turned_away();
    for (const auto& tree : forest.trees_) {
      state.trees.push_back(save_tree(tree));
      if (!tree.empty()) state.trees.back().measure = index_of(tree.measure_);
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

// Makes an empty tree of a forest, whose points are there, one that was saved. Every fact is checked that is not
// computed here: no index, count, link, time or cut is believed.
template <class Forest>
class Archive<Forest>::TreeBuilder {
 public:
  // The forest's points must expect what `measure` does.
  TreeBuilder(const TreeState& state, const Forest& forest, const MeasurePointer<Prior>& measure, TargetTree& tree)
      : state_(state), forest_(forest), points_(forest.points_), tree_(tree), n_(state.left.size()) {
    tree_.measure_ = measure;
  }

  void build(Allowance& memory, StopProbe& stop) {
    const std::size_t n_points = state_.next_point.size();
    require_state(n_ < 2 * n_points, "a tree has more nodes than its points allow");
    memory.take(n_ * (sizeof(Node) + sizeof(double)) + n_points * sizeof(Slot));
    tree_.target_.set_measure(*tree_.measure_);
    forest_.prepare(tree_.target_);
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
    set_boxes_and_values(memory, stop);
  }

 private:
  static constexpr std::size_t kBetweenLooks = std::size_t{1} << 16;  // labels, roughly

  void set_node(std::size_t i) {
    const NodeIndex j = static_cast<NodeIndex>(i);
    Node& node = tree_.nodes_[j];
    const double time = state_.split_time[i];
    const float location = state_.split_location[i];
    tree_.set_split_time(j, time);
    node.split_dimension = state_.split_dimension[i];
    if (node.is_leaf()) {
      require_state(is_point(state_.left[i]) && state_.right[i] > 0, "a leaf has no points");
      require_state(time == tree_.lifetime(), "the time of a leaf is not the lifetime");
      require_state(location == 0.0f, "a leaf is cut");
      node.first_point = state_.left[i];
      node.n_points = state_.right[i];
    } else {
      const auto& weights = tree_.measure_->weights;
      require_state(node.split_dimension >= 0 && static_cast<std::size_t>(node.split_dimension) < weights.size(),
                    "a split dimension is no feature");
      require_state(weights[static_cast<std::size_t>(node.split_dimension)] > 0.0, "a feature of weight 0 is cut");
      require_state(time >= 0.0 && time < tree_.lifetime(), "a split time is not before the lifetime");
      require_state(std::isfinite(location), "a split location is no number");
      require_state(is_node(state_.left[i]) && is_node(state_.right[i]), "a child is no node");
      require_state(state_.right[i] == state_.left[i] + 1, "two children are not side by side");
      node.left = state_.left[i];
      node.split_location = location;
    }
  }

  // Parents before children. A node that is reached twice would make this longer than there are nodes.
  void order_nodes() {
    order_.reserve(n_);
    order_.push_back(kRoot);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const NodeIndex j = order_[i];
      if (tree_.nodes_[j].is_leaf()) continue;
      require_state(order_.size() + 2 <= n_, "a node is reached twice");
      for (const NodeIndex child : {tree_.nodes_[j].left, tree_.nodes_[j].right()}) {
        require_state(tree_.nodes_.split_time(j) <= tree_.nodes_.split_time(child), "a child is cut before its parent");
        order_.push_back(child);
      }
    }
    require_state(order_.size() == n_, "a node is not reached from the root");
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
        require_state(!tree_.target_.is_small(static_cast<std::size_t>(n_here)), "a block that may pause is cut");
        continue;
      }
      for (Slot slot = node.first_point; slot != kNoSlot; slot = tree_.next_point(slot)) {
        require_state(is_point(slot) && !seen[static_cast<std::size_t>(slot)],
                      "the point lists of the leaves are tangled");
        seen[static_cast<std::size_t>(slot)] = true;
        ++n_here;
      }
      require_state(n_here == node.n_points, "the count of a leaf is wrong");
      n_placed += static_cast<std::size_t>(n_here);
    }
    require_state(n_placed == n_points, "a point lies in no leaf");
  }

  // Children before parents.
  void set_boxes_and_values(Allowance& memory, StopProbe& stop) {
    std::size_t n_bytes = 0, n_done = 0;
    const auto look = [&] {
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
      if ((n_done += 1 + work) >= kBetweenLooks) look();
    }
    look();
  }

  void set_leaf(NodeIndex j) {
    const Node& leaf = tree_.nodes_[j];
    const std::size_t n_features = points_.n_features();
    tree_.find_points(j, slots_);
    // In the order of the labels each is added at the end of a set.
    if constexpr (!Forest::Target::kKeepsOrder) {
      std::ranges::sort(slots_, {}, [this](Slot slot) { return points_.value(slot); });
    }
    tree_.target_.add_to_leaf(j, 0, kNoSlot, points_, slots_);
    if (tree_.nodes_.has_box(j)) {
      float* lower = tree_.nodes_.lower(j);
      float* upper = tree_.nodes_.upper(j);
      start_box(lower, upper, points_.box(leaf.first_point), n_features);
      for (const Slot slot : slots_) include(lower, upper, points_.box(slot), n_features);
    }
    if (tree_.target_.is_paused(j, leaf.n_points) || tree_.lifetime() < kInfinity) return;
    const double rate = linear_dimension(tree_.weights(), tree_.box(j, points_, buffer_), n_features);
    require_state(rate < kNoRate, "a leaf that could still be cut has no end");
  }

  void set_internal(NodeIndex j) {
    const Node& node = tree_.nodes_[j];
    const NodeIndex left = node.left, right = node.right();
    const std::size_t dimension = static_cast<std::size_t>(node.split_dimension);
    tree_.target_.combine(j, left, right);
    require_state(!holds_one_value(left) || !holds_one_value(right) || value_of(left) != value_of(right),
                  "a block that may pause is cut");
    require_state(
        upper_end(left, dimension) <= node.split_location && node.split_location < lower_end(right, dimension),
        "a cut does not pass between the children's boxes");
    if (!tree_.nodes_.has_box(j)) return;
    float* lower = tree_.nodes_.lower(j);
    float* upper = tree_.nodes_.upper(j);
    start_box(lower, upper, tree_.box(left, points_, buffer_), points_.n_features());
    include(lower, upper, tree_.box(right, points_, buffer_), points_.n_features());
  }

  // An internal node never does: its children would have been refused.
  bool holds_one_value(NodeIndex j) const { return tree_.nodes_[j].is_leaf() && !tree_.target_.is_mixed(j); }
  auto value_of(NodeIndex leaf) const { return points_.value(tree_.nodes_[leaf].first_point); }

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
  const Forest& forest_;
  const typename Forest::Points& points_;
  TargetTree& tree_;
  std::size_t n_;
  std::vector<NodeIndex> order_;
  std::vector<std::int32_t> n_below_;
  std::vector<Slot> slots_;
  BoxBuffer buffer_;
};

template <class Forest>
std::unique_ptr<Forest> Archive<Forest>::restore(const State& state, const RestoreOptions& options) {
  const std::size_t n_features = state.options.n_features, n_measures = state.measures.size();
  require_state(state.trees.size() == state.options.trees_held().size(), "the number of trees is wrong");
  require_state(n_features <= std::numeric_limits<std::int32_t>::max(), "there are more features than there can be");
  require_state(state.values.size() <= Forest::Points::kMostPoints, "there are more points than there can be");
  require_state(state.rows.size() == state.values.size() * n_features, "rows and values differ in number");
  require_state(std::ranges::all_of(state.rows, [](float x) { return std::isfinite(x); }), "a point is not finite");
  require_state(MissingCells::are_sound(state.missing_features, state.missing_words, state.values.size(), n_features),
                "what is missing is not told of each point");
  require_state(state.serials.size() == state.values.size(), "not every point has its time");
  require_state(state.schedule.computed_from <= state.n_seen && state.schedule.n_since <= state.n_seen,
                "the measure comes from more points than there were");

  // A first call that was stopped while the measure was learned has stored points, but has no measure yet.
  if (state.measure == kNoMeasure) {
    require_state(state.schedule.computed_from == 0 && state.schedule.n_refreshes == 0 && n_measures == 0,
                  "there is no measure");
  } else {
    require_state(!state.values.empty(), "there is a measure, but no points");
  }
  require_state(n_measures <= kMostMeasures, "there are more measures than interrupted calls leave behind");
  std::vector<std::vector<std::size_t>> trees_of(n_measures);
  const auto is_measure = [&](MeasureIndex i) { return i >= 0 && static_cast<std::size_t>(i) < n_measures; };
  require_state(state.measure == kNoMeasure || is_measure(state.measure), "the measure is none of those there are");
  for (std::size_t i = 0; i < state.trees.size(); ++i) {
    const TreeState& tree = state.trees[i];
    const std::size_t n = tree.left.size();
    require_state(std::ranges::any_of(tree.rng, [](std::uint64_t word) { return word != 0; }),
                  "a random state is all zero");
    require_state(tree.right.size() == n && tree.split_dimension.size() == n && tree.split_location.size() == n &&
                      tree.split_time.size() == n,
                  "the arrays of a tree differ in length");
    require_state(tree.next_point.size() <= state.values.size(), "a tree holds more points than there are");
    if (n == 0) {
      require_state(tree.next_point.empty() && tree.measure == kNoMeasure, "an empty tree has points or a measure");
    } else {
      require_state(is_measure(tree.measure), "the measure of a tree is none of those there are");
      trees_of[static_cast<std::size_t>(tree.measure)].push_back(i);
    }
  }
  for (std::size_t i = 0; i < n_measures; ++i) {
    require_state(!trees_of[i].empty() || state.measure == static_cast<MeasureIndex>(i), "a measure is no one's");
    require_measure(state.measures[i], state.options);
  }

  Allowance memory(options.max_bytes);
  memory.take(state.rows.size() * sizeof(float) + state.values.size() * kBytesBeside);
  memory.take(state.missing_words.size() * sizeof(state.missing_words[0]));
  memory.take(state.trees.size() * sizeof(TargetTree));
  auto forest = std::make_unique<Forest>(state.options);
  forest->points_.append(state.rows, state.values);
  forest->points_.set_missing(state.missing_features, state.missing_words);
  try {
    forest->tenure_.restore(state.serials, state.n_seen, state.turned_away);
    forest->restore(state.extra);
  } catch (const std::invalid_argument& error) {
    require_state(false, error.what());
  }
  forest->schedule_.resume(state.schedule);

  StopSignal signal(options.requested);
  const auto restore_trees = [&](std::size_t index) {
    const MeasureState<Prior>& saved = state.measures[index];
    const auto measure = std::make_shared<const MeasureWith<Prior>>(saved.weights, saved.discount_rate, saved.prior);
    expect(measure->prior, forest->points_);
    const std::vector<std::size_t>& some = trees_of[index];
    parallel_for(some.size(), options.n_threads, signal, [&] {
      return [&](std::size_t i, StopProbe& stop) {
        TreeBuilder(state.trees[some[i]], *forest, measure, forest->trees_[some[i]]).build(memory, stop);
      };
    });
    return measure;
  };
  // A tree's measure is that of the forest, unless a call was stopped. The forest's comes last: what it expects of the
  // points stays.
  for (std::size_t i = 0; i < n_measures; ++i) {
    if (static_cast<MeasureIndex>(i) != state.measure) restore_trees(i);
  }
  if (state.measure != kNoMeasure) forest->measure_ = restore_trees(static_cast<std::size_t>(state.measure));
  for (std::size_t i = 0; i < state.trees.size(); ++i) forest->trees_[i].rng_ = Rng(state.trees[i].rng);
  return forest;
}

template class Archive<LabelForest>;
template class Archive<GaussianForest>;

}  // namespace onlineforest
