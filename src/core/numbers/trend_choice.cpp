#include "numbers/trend_choice.hpp"

#include <algorithm>
#include <utility>

#include "base/rng.hpp"
#include "forest/trial.hpp"
#include "numbers/trend.hpp"

namespace onlineforest {

namespace {

constexpr std::size_t kKnots[] = {2, 4, 8, kMostKnots};  // candidates, per feature
constexpr std::size_t kPointsPerColumn = 6;              // at least, so fewer knots where there are few points

}  // namespace

std::size_t best_knots(const PointStore<double>& points, std::uint64_t seed, StopProbe& stop) {
  Rng rng(seed ^ kSeedOfTrend, points.size());
  const Split split(points.size(), kTrialPoints, rng);
  const double unit = deviation_from(fit_trend(points, split.learned(), 1, stop), points, split.learned());
  if (!(unit > 0.0)) return 1;
  const auto losses_with = [&](std::size_t n_knots) {
    const Trend trend = fit_trend(points, split.learned(), n_knots, stop);
    Losses losses;
    for (const Slot slot : split.tested()) {
      const double error = (points.value(slot) - trend.at(points.row(slot))) / unit;
      losses.add(error * error, points.multiplicity(slot));
    }
    return losses;
  };
  // A curve over a single feature is left to the trees: unlike a trend, they know where data are sparse.
  const std::size_t n_columns = std::min(kTrendColumns, split.slots.size() / kPointsPerColumn);
  const std::size_t most = points.n_features() == 1 ? 2 : 1 + n_columns / points.n_features();
  std::size_t best = 1;
  Losses least = losses_with(best);
  for (const std::size_t n_knots : kKnots) {
    if (n_knots > most || n_columns < points.n_features()) break;
    Losses losses = losses_with(n_knots);
    if (!losses.clearly_less_than(least)) continue;
    best = n_knots;
    least = std::move(losses);
  }
  return best;
}

}  // namespace onlineforest
