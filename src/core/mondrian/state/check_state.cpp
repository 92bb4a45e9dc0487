#include "mondrian/state/check_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "mondrian/state/require.hpp"

namespace onlineforest::mondrian {

namespace {

constexpr std::size_t kMostMeasures = 16;  // far more than interrupted calls leave behind

// A number that an array of the state holds per measure.
struct MeasureNumber {
  const char* name;
  double value;

  void require_between(double lowest, double highest) const {
    require_state(value >= lowest && value <= highest, name, " is ", value, ", outside [", lowest, ", ", highest, "]");
  }

  void require_equal(const char* option, double expected) const {
    require_state(value == expected, name, " is ", value, ", but ", option, " is ", expected);
  }
};

void check_leaf_discount(double value, const ForestOptions& options) {
  const MeasureNumber leaf_discount{"measures.leaf_discount", value};
  leaf_discount.require_between(0.0, 1.0);
  if (!options.learns_leaf_discount) leaf_discount.require_equal("options.leaf_discount", options.leaf_discount);
}

void check_weights(const std::vector<double>& weights, const ForestOptions& options) {
  require_state(weights.size() == options.n_features, "measures.weights has ", weights.size(),
                " entries, the forest has ", options.n_features, " features");
  const bool are_unit = options.weight_rule == WeightRule::kUnit;
  const bool are_given = are_unit || options.weight_rule == WeightRule::kFixed;
  require_state(!are_given || are_unit || options.weights.size() == weights.size(), "options.weights has ",
                options.weights.size(), " entries, the forest has ", options.n_features, " features");
  for (std::size_t d = 0; d < weights.size(); ++d) {
    require_state(weights[d] >= 0.0 && weights[d] <= kLargestWeight, "measures.weights of feature ", d, " is ",
                  weights[d], ", outside [0, ", kLargestWeight, "]");
    if (!are_given) continue;
    const double given = are_unit ? 1.0 : options.weights[d];
    require_state(weights[d] == given, "measures.weights of feature ", d, " is ", weights[d],
                  ", but the options give it the weight ", given);
  }
}

void check_points(const ForestState& state) {
  constexpr std::size_t most_features = std::numeric_limits<std::int32_t>::max();
  const std::size_t n_features = state.options.n_features, n_points = state.values.size();
  require_state(n_features <= most_features, "options.n_features is ", n_features, ", at most ", most_features,
                " are possible");
  require_state(n_points <= PointStore::kMostPoints, "values has ", n_points, " entries, at most ",
                PointStore::kMostPoints, " points are possible");
  require_state(state.rows.size() == n_points * n_features, "rows has ", state.rows.size(), " numbers, ", n_points,
                " points with ", n_features, " features need ", n_points * n_features);
  const auto bad = std::ranges::find_if_not(state.rows, [](float x) { return std::isfinite(x); });
  if (bad != state.rows.end()) {
    const std::size_t at = static_cast<std::size_t>(bad - state.rows.begin());
    fail_state("rows has the value ", *bad, " at point ", at / n_features, ", feature ", at % n_features,
               ", which is not finite");
  }
  require_state(state.n_classes >= 0, "n_classes is ", state.n_classes);
  for (std::size_t i = 0; i < n_points; ++i) {
    require_state(state.values[i] >= 0 && state.values[i] < state.n_classes, "values[", i, "] is ", state.values[i],
                  ", outside [0, n_classes = ", state.n_classes, ")");
  }
}

void check_arrivals(const ForestState& state) {
  const std::size_t n_points = state.values.size(), n = state.serials.size();
  require_state(n <= PointStore::kMostPoints, "serials has ", n, " entries, at most ", PointStore::kMostPoints,
                " arrivals are possible");
  if (state.sample_of.empty()) {
    require_state(n == n_points, "serials has ", n, " entries, there are ", n_points, " points");
    return;
  }
  require_state(state.sample_of.size() == n, "sample_of has ", state.sample_of.size(), " entries, there are ", n,
                " arrivals");
  std::vector<bool> has_arrived(n_points, false);
  for (std::size_t i = 0; i < n; ++i) {
    const Slot point = state.sample_of[i];
    require_state(point >= 0 && static_cast<std::size_t>(point) < n_points, "sample_of[", i, "] is ", point,
                  ", there are ", n_points, " points");
    has_arrived[static_cast<std::size_t>(point)] = true;
  }
  const auto without = std::ranges::find(has_arrived, false);
  require_state(without == has_arrived.end(), "point ", without - has_arrived.begin(), " has no entry in sample_of");
}

void check_schedule(const ForestState& state) {
  const MeasureSchedule::State& schedule = state.schedule;
  require_state(schedule.computed_from <= state.n_seen, "schedule.computed_from is ", schedule.computed_from,
                ", n_seen is ", state.n_seen);
  require_state(schedule.n_since <= state.n_seen, "schedule.n_since is ", schedule.n_since, ", n_seen is ",
                state.n_seen);
  const std::size_t n_measures = state.measures.size();
  // A first call that was stopped while it learned the measure has stored points, but has no measure yet.
  if (state.measure == kNoMeasure) {
    require_state(schedule.computed_from == 0 && schedule.n_refreshes == 0 && n_measures == 0,
                  "the forest has no measure, but schedule.computed_from is ", schedule.computed_from,
                  ", schedule.n_refreshes is ", schedule.n_refreshes, " and there are ", n_measures, " measures");
  } else {
    require_state(!state.values.empty(), "the forest has measure ", state.measure, ", but no points");
  }
  require_state(n_measures <= kMostMeasures, "there are ", n_measures, " measures, at most ", kMostMeasures,
                " are possible");
}

// Checks everything of a tree but its nodes, which TreeBuilder checks.
void check_tree(const TreeState& tree, std::size_t index, std::size_t n_points, std::size_t n_measures) {
  const std::size_t n = tree.left.size();
  require_state(std::ranges::any_of(tree.rng, [](std::uint64_t word) { return word != 0; }), "tree ", index,
                ": rng is all zero");
  const auto require_length = [&](const char* name, std::size_t length) {
    require_state(length == n, "tree ", index, ": ", name, " has ", length, " entries, left has ", n);
  };
  require_length("right", tree.right.size());
  require_length("split_dimension", tree.split_dimension.size());
  require_length("split_location", tree.split_location.size());
  require_length("split_time", tree.split_time.size());
  require_state(tree.next_point.size() <= n_points, "tree ", index, ": next_point has ", tree.next_point.size(),
                " entries, there are ", n_points, " points");
  if (n == 0) {
    require_state(tree.next_point.empty() && tree.measure == kNoMeasure, "tree ", index, " has no nodes, but has ",
                  tree.next_point.size(), " points and measure ", tree.measure);
  } else {
    require_state(tree.measure >= 0 && static_cast<std::size_t>(tree.measure) < n_measures, "tree ", index,
                  ": measure ", tree.measure, " is outside [0, ", n_measures, ")");
  }
}

}  // namespace

TreesOfMeasures check_state(const ForestState& state) {
  const std::size_t n_measures = state.measures.size(), n_trees = state.options.n_trees;
  require_state(state.trees.size() == n_trees, "the state has ", state.trees.size(), " trees, the options say ",
                n_trees);
  check_points(state);
  check_arrivals(state);
  check_schedule(state);
  require_state(
      state.measure == kNoMeasure || (state.measure >= 0 && static_cast<std::size_t>(state.measure) < n_measures),
      "the forest's measure ", state.measure, " is outside [0, ", n_measures, ")");
  TreesOfMeasures trees_of(n_measures);
  for (std::size_t i = 0; i < state.trees.size(); ++i) {
    const TreeState& tree = state.trees[i];
    check_tree(tree, i, state.values.size(), n_measures);
    if (tree.measure != kNoMeasure) trees_of[static_cast<std::size_t>(tree.measure)].push_back(i);
  }
  for (std::size_t i = 0; i < n_measures; ++i) {
    const auto& measure = state.measures[i];
    require_state(!trees_of[i].empty() || state.measure == static_cast<MeasureIndex>(i), "measure ", i,
                  " is used neither by the forest nor by a tree");
    check_weights(measure.weights, state.options);
    MeasureNumber{"measures.discount_rate", measure.discount_rate}.require_between(0.0, kLargestDiscountRate);
    check_leaf_discount(measure.leaf_discount, state.options);
  }
  return trees_of;
}

}  // namespace onlineforest::mondrian
