// An additive trend of the values over the features, which trees then refine by residuals. Knows nothing of trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/stop.hpp"
#include "points/box.hpp"
#include "points/point_store.hpp"

namespace onlineforest {

inline constexpr std::size_t kMostKnots = 16;  // per feature
inline constexpr std::size_t kTrendColumns =
    256;  // fitted at most: knots minus one per feature, summed over the features

// A sum of functions of one feature each, linear between knots and constant outside the first and last knot, because
// linear extrapolation is unbounded. A feature without knots contributes nothing.
struct Trend {
  double intercept = 0.0;
  std::vector<std::int32_t>
      ends;                     // per feature: the end of its knots, where those of the next begin; empty if constant
  std::vector<float> knots;     // increasing for each feature
  std::vector<double> heights;  // the contribution at each knot

  bool is_constant() const { return ends.empty(); }

  double at(const float* row) const {
    double sum = intercept;
    std::size_t begin = 0;
    for (std::size_t d = 0; d < ends.size(); ++d) {
      const std::size_t end = static_cast<std::size_t>(ends[d]);
      if (begin < end) sum += at(row[d], begin, end);
      begin = end;
    }
    return sum;
  }

  bool operator==(const Trend&) const = default;

 private:
  double at(float x, std::size_t begin, std::size_t end) const {
    const auto first = knots.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto above = std::upper_bound(first, knots.begin() + static_cast<std::ptrdiff_t>(end), x);
    const std::size_t right = static_cast<std::size_t>(above - knots.begin());
    if (right == begin) return heights[begin];
    if (right == end) return heights[end - 1];
    const double share = length(knots[right - 1], x) / length(knots[right - 1], knots[right]);
    return heights[right - 1] + share * (heights[right] - heights[right - 1]);
  }
};

// Fits a trend to at least one point by least squares, with up to `most_knots` knots per feature at quantiles of the
// points: 2 knots give a linear trend, 1 a constant. A small ridge keeps collinear features harmless.
Trend fit_trend(const PointStore<double>& points, std::span<const Slot> slots, std::size_t most_knots, StopProbe& stop);

// The leverage of each of some points, in [0, 1); `fitted` are the points the trend was fitted to. The leave-one-out
// residual of a point is its residual / (1 - leverage).
std::vector<double> leverages(const Trend& trend, const PointStore<double>& points, std::span<const Slot> fitted,
                              std::span<const Slot> slots, StopProbe& stop);

// The standard deviation of the residuals from a trend.
double deviation_from(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots);

// The standard deviation of the trend itself over some points.
double deviation_of(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots);

}  // namespace onlineforest
