// A trend of values over the features, the same everywhere in space: what is expected of a value before looking at the
// points near it. Knows nothing of trees.
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

inline constexpr std::size_t kMostKnots = 16;      // per feature
inline constexpr std::size_t kTrendColumns = 256;  // that are fitted: knots less one per feature, of all features

// A sum of functions of one feature each, straight between knots and constant beyond the first and the last: a line
// that is followed beyond the data leads anywhere. A feature without knots adds nothing.
struct Trend {
  double intercept = 0.0;
  std::vector<std::int32_t> ends;  // per feature: where its knots end, and those of the next begin; none if constant
  std::vector<float> knots;        // increasing for each feature
  std::vector<double> heights;     // what a feature adds at each knot

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

// The trend of least squares through some points, at least one, with up to `most_knots` knots per feature where the
// points are; 2 make it linear, less constant. A little ridge is added, so that features that say the same do no harm.
Trend fit_trend(const PointStore<double>& points, std::span<const Slot> slots, std::size_t most_knots, StopProbe& stop);

// How much the value of each of some points has to say about a trend at that point, 0 to nearly 1; `fitted` are the
// points the trend was fitted to. Without the point, the trend would be off by its residual / (1 - leverage).
std::vector<double> leverages(const Trend& trend, const PointStore<double>& points, std::span<const Slot> fitted,
                              std::span<const Slot> slots, StopProbe& stop);

// The standard deviation of what a trend leaves.
double deviation_from(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots);

// The standard deviation of the trend itself over some points.
double deviation_of(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots);

}  // namespace onlineforest
