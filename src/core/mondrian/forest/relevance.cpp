#include "mondrian/forest/relevance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/parallel.hpp"
#include "mondrian/labels/impurity.hpp"
#include "mondrian/points/relative_counts.hpp"

namespace onlineforest::mondrian {

namespace {

// Sends one scout through the points of `order`. Adds to `relevance` the decrease of impurity per feature, per point,
// scaled as if every feature had been tried at every node.
void scout(LabelImpurity& impurity, RelativeCounts counts, Coordinates at, std::span<Slot> order, Rng& rng,
           std::span<double> relevance, StopProbe& stop) {
  struct Block {
    std::size_t begin, end, depth;
  };
  constexpr std::size_t most_depth = 40;    // bounds the work where each cut separates only a few points (sparse data)
  constexpr double tie = 1e-10;             // so that rounding decides nothing
  constexpr std::size_t fewest_points = 3;  // any cut separates two different points: no evidence
  const std::size_t n_features = relevance.size();
  std::size_t n_tried = 1;  // the cube root of the square of the number of features, rounded up
  while (n_tried * n_tried * n_tried < n_features * n_features) ++n_tried;
  const double share = static_cast<double>(n_features) / static_cast<double>(n_tried * order.size());
  std::vector<Slot> spare;
  std::vector<Block> blocks{{0, order.size(), 0}};
  while (!blocks.empty()) {
    const Block block = blocks.back();
    blocks.pop_back();
    const std::span<Slot> slots = order.subspan(block.begin, block.end - block.begin);
    if (slots.size() < fewest_points || block.depth == most_depth) continue;
    const double n = counts.effective_size(slots);
    const double whole = impurity.start(slots);
    const double by_chance = whole / std::max(n - 1.0, 1.0);
    double best = -1.0;
    std::size_t dimension = 0;
    float location = 0.0f;
    // A constant feature cannot be cut: up to 2 x n_tried more are drawn instead.
    for (std::size_t i = 0, n_cuts = 0; whole > 0.0 && i < 3 * n_tried && n_cuts < n_tried; ++i) {
      const auto d = static_cast<std::size_t>(rng.uniform() * static_cast<double>(n_features));
      const Coordinates::Range range = at.range(d, slots);
      stop.tick(3 * slots.size());
      if (!(range.lower < range.upper)) continue;
      ++n_cuts;
      const float cut = rng.location(range.lower, range.upper);
      const double gain = at.with_feature(
          d, [&](auto value) { return impurity.gain(slots, [&](Slot slot) { return value(slot) <= cut; }); });
      relevance[d] += (gain - by_chance) * share;
      if (gain > best + tie * std::abs(best)) {
        best = gain;
        dimension = d;
        location = cut;
      }
    }
    impurity.finish(slots);
    if (best < 0.0) continue;
    const std::size_t middle = block.begin + at.partition(dimension, location, slots, spare);
    blocks.push_back({middle, block.end, block.depth + 1});
    blocks.push_back({block.begin, middle, block.depth + 1});
  }
}

}  // namespace

std::vector<Slot> draw_slots(std::size_t n_points, std::size_t n, Rng& rng) {
  std::vector<Slot> slots(n_points);
  std::iota(slots.begin(), slots.end(), Slot{0});
  n = std::min(n, n_points);
  for (std::size_t i = 0; i < n; ++i) {
    std::swap(slots[i], slots[i + static_cast<std::size_t>(rng.uniform() * static_cast<double>(n_points - i))]);
  }
  slots.resize(n);
  return slots;
}

std::vector<double> measure_relevance(const PointStore& points, const Columns& columns, std::int32_t n_classes,
                                      std::uint64_t seed, const Call& call) {
  constexpr std::size_t n_scouts = 30, most_points = std::size_t{1} << 14;
  const std::size_t n_features = columns.n_features();
  std::vector<double> buffer;
  const RelativeCounts counts(points, buffer);
  std::vector<double> relevance(n_features, 0.0);
  InOrder<std::vector<double>> scouts;
  call.parallel_for(n_scouts, [&] {
    return [&, impurity = LabelImpurity(points.labels(), n_classes, counts), found = std::vector<double>()](
               std::size_t i, StopProbe& stop) mutable {
      Rng rng(seed, i);
      std::vector<Slot> order = draw_slots(columns.n_points(), most_points, rng);
      std::ranges::sort(order);  // for the cache
      found.assign(n_features, 0.0);
      scout(impurity, counts, columns.coordinates(), order, rng, found, stop);
      scouts.hand_in(i, found, [&](std::size_t, const std::vector<double>& one) {
        for (std::size_t d = 0; d < n_features; ++d) relevance[d] += one[d] / static_cast<double>(n_scouts);
      });
    };
  });
  return relevance;
}

}  // namespace onlineforest::mondrian
