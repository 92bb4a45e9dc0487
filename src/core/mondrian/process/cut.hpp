// Samples the cuts of a Mondrian process: in a block of points, and outside a box that is extended. Must not know
// trees.
//
// The order of draws is fixed: time, then dimension (and side), then location.
#pragma once

#include <cstddef>
#include <span>

#include "base/rng.hpp"
#include "base/stop.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/process/bounds.hpp"
#include "mondrian/process/measure.hpp"
#include "mondrian/process/rates.hpp"

namespace onlineforest::mondrian {

struct Cut {
  double time = kInfinity;  // infinite: no cut
  std::size_t dimension = 0;
  float location = 0.0f;
};

// A cut outside a box, in the gap between the box and a larger one around it. The box lies on the near side.
struct GapCut : Cut {
  bool is_upper = false;  // the gap lies above the box, so the far side is the right side
};

// A cut of a block, and the range of the block's points in the dimension of the cut.
struct BlockCut : Cut {
  Coordinates::Range range{};
};

namespace detail {
inline constexpr std::size_t kStretch = 16;  // features per stretch of Rng::choose
}

// Samples the first cut of a block that is born at `time`; no cut if it comes after the lifetime. The cuts of a block
// are those cuts of its bounds that pass through its box. So cuts are proposed from the bounds until one passes through
// the box. Only the ranges of the proposed dimensions are computed; they narrow the bounds. Calls on_scan(n) after
// reading one coordinate of n points. Differs from the paper: there the whole box is computed.
template <class OnScan>
[[nodiscard]] BlockCut sample_cut(Rng& rng, Bounds& bounds, const Coordinates& at, std::span<const Slot> slots,
                                  double time, double lifetime, OnScan on_scan) {
  for (;;) {
    const double rate = bounds.total();
    time += rng.exponential(rate);
    if (!(time < lifetime)) return {};
    const std::size_t d = bounds.choose_dimension(rng, rate);
    const double location = rng.between(bounds.lower(d), bounds.upper(d));
    const Coordinates::Range range = at.range(d, slots);
    bounds.set(d, range.lower, range.upper);
    on_scan(slots.size());
    if (range.lower <= location && location < range.upper) {
      return {{time, d, Rng::stored_location(location, range.lower, range.upper)}, range};
    }
  }
}

// Samples the first cut of a block with a given box.
[[nodiscard]] inline BlockCut sample_cut(Rng& rng, const Measure& measure, BoxView box, double birth_time,
                                         double lifetime) {
  const double* weights = measure.weights.data();
  const std::size_t n = measure.weights.size();
  const double rate = linear_dimension(weights, box, n);
  const double time = birth_time + rng.exponential(rate);
  if (!(time < lifetime)) return {};
  const auto sum = [&](std::size_t begin, std::size_t end) { return linear_dimension(weights, box, begin, end); };
  const auto weight = [&](std::size_t d) { return weights[d] * length(box.lower[d], box.upper[d]); };
  const std::size_t d = rng.choose<detail::kStretch>(rate, n, sum, weight).index;
  return {{time, d, rng.location(box.lower[d], box.upper[d])}, {box.lower[d], box.upper[d]}};
}

// Samples dimension and location of the cut at `time` that separates a box from points outside it. `outer` is the box
// of all points; `rate` > 0 is the extension rate from `box` to `outer`.
[[nodiscard]] inline GapCut sample_gap_cut(Rng& rng, const Measure& measure, BoxView box, BoxView outer, double rate,
                                           double time) {
  const double* weights = measure.weights.data();
  const auto sum = [&](std::size_t begin, std::size_t end) { return extension_rate(weights, box, outer, begin, end); };
  const auto below = [&](std::size_t d) { return length(outer.lower[d], box.lower[d]); };
  const auto above = [&](std::size_t d) { return length(box.upper[d], outer.upper[d]); };
  const auto weight = [&](std::size_t d) { return weights[d] * (below(d) + above(d)); };
  const auto [d, rest] = rng.choose<detail::kStretch>(rate, measure.weights.size(), sum, weight);
  const bool is_upper = !(below(d) > 0.0) || (above(d) > 0.0 && rest >= weights[d] * below(d));
  const float location =
      is_upper ? rng.location(box.upper[d], outer.upper[d]) : rng.location(outer.lower[d], box.lower[d]);
  return {{time, d, location}, is_upper};
}

// Samples dimension and location of the cut at `time` that separates a box from one row outside it. `rate` > 0 is the
// separation rate.
[[nodiscard]] inline GapCut sample_gap_cut(Rng& rng, const Measure& measure, BoxView box, const float* row, double rate,
                                           double time) {
  const double* weights = measure.weights.data();
  const auto sum = [&](std::size_t begin, std::size_t end) { return separation_rate(weights, box, row, begin, end); };
  const auto weight = [&](std::size_t d) { return weights[d] * distance_to(box.lower[d], box.upper[d], row[d]); };
  const std::size_t d = rng.choose<detail::kStretch>(rate, measure.weights.size(), sum, weight).index;
  const bool is_upper = row[d] > box.upper[d];
  const float location = is_upper ? rng.location(box.upper[d], row[d]) : rng.location(row[d], box.lower[d]);
  return {{time, d, location}, is_upper};
}

}  // namespace onlineforest::mondrian
