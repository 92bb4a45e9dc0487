// Archive::restore: a state to a forest.
#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/allowance.hpp"
#include "base/call.hpp"
#include "mondrian/state/archive.hpp"
#include "mondrian/state/check_state.hpp"
#include "mondrian/state/require.hpp"
#include "mondrian/state/tree_builder.hpp"

namespace onlineforest::mondrian {

namespace {

constexpr std::size_t kBytesBesideRow = 32;  // per point: label, count, place in the index
constexpr std::size_t kBytesOfArrival = 40;  // per arrival: serial, position in the heap, point

void restore_arrivals(const ForestState& state, Arrivals& arrivals) {
  std::vector<Slot> points = state.sample_of;
  if (points.empty()) {
    points.resize(state.serials.size());
    std::iota(points.begin(), points.end(), Slot{0});
  }
  arrivals.reserve(points.size(), state.sample_of.empty());
  arrivals.change({{}, {}, {}, points});
}

// Equal samples are one point.
void require_distinct(const PointStore& points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    const Slot found = points.find(points.row_of(slot), points.label(slot), points.hash(slot));
    require_state(found == slot, "point ", i, " equals point ", found);
  }
}

}  // namespace

std::unique_ptr<Forest> Archive::restore(const ForestState& state, const Call& call, std::size_t max_bytes) {
  const TreesOfMeasures trees_of = check_state(state);
  Allowance memory(max_bytes);
  std::unique_ptr<Forest> forest = restore_points(state, memory);
  const auto restore_trees = [&](std::size_t index) {
    const MeasureState& saved = state.measures[index];
    auto measure = std::make_shared<const Measure>(saved.weights, saved.discount_rate, saved.leaf_discount);
    const std::vector<std::size_t>& trees = trees_of[index];
    call.parallel_for(trees.size(), [&] {
      return [&](std::size_t i, StopProbe& stop) {
        TreeBuilder(state.trees[trees[i]], trees[i], *forest, measure).build(memory, stop);
      };
    });
    return measure;
  };
  // Trees share the forest's measure, unless a call was stopped.
  for (std::size_t i = 0; i < state.measures.size(); ++i) {
    MeasurePointer measure = restore_trees(i);
    if (static_cast<MeasureIndex>(i) == state.measure) forest->measure_ = std::move(measure);
  }
  for (std::size_t i = 0; i < state.trees.size(); ++i) forest->trees_[i].rng_ = Rng(state.trees[i].rng);
  return forest;
}

std::unique_ptr<Forest> Archive::restore_points(const ForestState& state, Allowance& memory) {
  memory.take(state.rows.size() * sizeof(float) + state.values.size() * kBytesBesideRow);
  memory.take(state.serials.size() * kBytesOfArrival);
  memory.take(state.trees.size() * sizeof(Tree<LabelTarget>));
  auto forest = std::make_unique<Forest>(state.options);
  forest->n_classes_ = state.n_classes;
  restore_arrivals(state, forest->arrivals_);
  std::vector<std::int32_t> counts(state.sample_of.empty() ? 0 : state.values.size(), 0);
  for (const Slot point : state.sample_of) ++counts[static_cast<std::size_t>(point)];
  const bool are_one = std::ranges::all_of(counts, [](std::int32_t count) { return count == 1; });
  forest->points_.append(state.rows, state.values, are_one ? std::span<const std::int32_t>() : counts);
  require_distinct(forest->points_);
  try {
    forest->tenure_.restore(state.serials, state.n_seen, state.turned_away);
  } catch (const std::invalid_argument& error) {
    fail_state(error.what());
  }
  forest->schedule_.resume(state.schedule);
  return forest;
}

}  // namespace onlineforest::mondrian
