// Archive::restore: a state to a forest.
#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/allowance.hpp"
#include "base/call.hpp"
#include "state/archive.hpp"
#include "state/check_state.hpp"
#include "state/require.hpp"
#include "state/tree_builder.hpp"

namespace onlineforest {

namespace {

constexpr std::size_t kBytesBesideRow = 48;  // of a point: value, expectation, weight, place in the index
constexpr std::size_t kBytesOfArrival = 48;  // serial, position in the heap, point, weight

// Sets what a prior expects of the points. Rejects values that are too far from it to be computed with.
void set_expected(const LabelPrior&, PointStore<Label>&) {}

void set_expected(const GaussianPrior& prior, PointStore<double>& points) {
  constexpr double largest = 1e10 * kLargestResidual;
  points.set_expected(0, [&prior](const float* row) { return prior.trend.at(row); });
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    const double residual = prior.residual(points.value(slot), points.expected(slot));
    require_state(std::abs(residual) <= largest, "the residual of point ", i, " is ", residual, ", outside [", -largest,
                  ", ", largest, "]: its value is ", points.value(slot), ", measures.scale is ", prior.scale);
  }
}

template <class Forest>
void restore_arrivals(const ForestState<Forest>& state, Arrivals& arrivals) {
  std::vector<Slot> points = state.sample_of;
  if (points.empty()) {
    points.resize(state.serials.size());
    std::iota(points.begin(), points.end(), Slot{0});
  }
  arrivals.reserve(points.size(), state.sample_of.empty(), !state.weights.empty());
  arrivals.exchange({{}, {}, {}, points, state.weights});
}

// Equal samples are one point.
template <class Value>
void require_distinct(const PointStore<Value>& points) {
  std::vector<float> row(points.n_features());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    points.copy_given(slot, row);
    const Slot found = points.find(row, points.value(slot), points.hash(slot));
    require_state(found == slot, "point ", i, " equals point ", found);
  }
}

}  // namespace

template <class Forest>
std::unique_ptr<Forest> Archive<Forest>::restore(const State& state, const Call& call, std::size_t max_bytes) {
  const TreesOfMeasures trees_of = check_state(state);
  Allowance memory(max_bytes);
  std::unique_ptr<Forest> forest = restore_points(state, memory);
  const auto restore_trees = [&](std::size_t index) {
    const MeasureState<Prior>& saved = state.measures[index];
    auto measure = std::make_shared<const MeasureWith<Prior>>(saved.weights, saved.discount_rate, saved.prior);
    set_expected(measure->prior, forest->points_);
    const std::vector<std::size_t>& trees = trees_of[index];
    call.parallel_for(trees.size(), [&] {
      return [&](std::size_t i, StopProbe& stop) {
        TreeBuilder(state.trees[trees[i]], trees[i], *forest, measure).build(memory, stop);
      };
    });
    return measure;
  };
  // Trees share the forest's measure, unless a call was stopped. The forest's measure comes last, because the points
  // keep what it expects of them.
  for (std::size_t i = 0; i < state.measures.size(); ++i) {
    if (static_cast<MeasureIndex>(i) != state.measure) restore_trees(i);
  }
  if (state.measure != kNoMeasure) forest->measure_ = restore_trees(static_cast<std::size_t>(state.measure));
  for (std::size_t i = 0; i < state.trees.size(); ++i) forest->trees_[i].rng_ = Rng(state.trees[i].rng);
  return forest;
}

template <class Forest>
std::unique_ptr<Forest> Archive<Forest>::restore_points(const State& state, Allowance& memory) {
  memory.take(state.rows.size() * sizeof(float) + state.values.size() * kBytesBesideRow);
  memory.take(state.serials.size() * kBytesOfArrival);
  memory.take(state.missing_words.size() * sizeof(state.missing_words[0]));
  memory.take(state.trees.size() * sizeof(TargetTree));
  auto forest = std::make_unique<Forest>(state.options);
  restore_arrivals(state, forest->arrivals_);
  std::vector<Weight> weights(state.values.size(), 0);
  for (std::size_t i = 0; i < state.serials.size(); ++i) {
    const Slot arrival = static_cast<Slot>(i);
    weights[static_cast<std::size_t>(forest->arrivals_.point(arrival))] += forest->arrivals_.weight(arrival);
    forest->total_weight_ += forest->arrivals_.weight(arrival);
  }
  const bool are_one = std::ranges::all_of(weights, [](Weight weight) { return weight == kOne; });
  forest->points_.append(state.rows, state.values, are_one ? std::span<const Weight>() : weights);
  forest->points_.set_missing(state.missing_features, state.missing_words);
  require_distinct(forest->points_);
  try {
    forest->tenure_.restore(state.serials, state.n_seen, state.turned_away);
    forest->restore(state.extra);
  } catch (const std::invalid_argument& error) {
    fail_state(error.what());
  }
  forest->schedule_.resume(state.schedule);
  return forest;
}

template std::unique_ptr<LabelForest> Archive<LabelForest>::restore(const State&, const Call&, std::size_t);
template std::unique_ptr<GaussianForest> Archive<GaussianForest>::restore(const State&, const Call&, std::size_t);

}  // namespace onlineforest
