// Draws the cuts of a Mondrian process: of a block with given points, and of a box that is extended. Knows nothing of
// trees.
//
// The order of draws is fixed: time, then dimension (and side), then location.
#pragma once

#include <cstddef>
#include <span>

#include "base/rng.hpp"
#include "base/stop.hpp"
#include "points/box.hpp"
#include "points/columns.hpp"
#include "process/bounds.hpp"
#include "process/measure.hpp"
#include "process/rates.hpp"

namespace onlineforest {

struct Cut {
  double time = kInfinity;  // none
  std::size_t dimension = 0;
  float location = 0.0f;
};

// A cut outside a box. The points on its far side lie in the gap between the box and a larger one around it.
struct GapCut : Cut {
  bool is_upper = false;  // the gap is above the box: the far side is the right one
};

// A cut of a block, and the range of its points in that dimension.
struct BlockCut : Cut {
  Coordinates::Range range{};
};

namespace detail {
inline constexpr std::size_t kStretch = 16;  // features looked at together when one is chosen
}

// The first cut of the block of some points that is born at `time`, none if it would come after the lifetime. The cuts
// of a block are those among the cuts of its bounds that pass through its box; so they are proposed from the bounds
// until one does. Of the box only the dimensions proposed need be known, which tightens the bounds there.
// Calls on_scan(n) after looking at a coordinate of n points.
// Differs from the paper: it computes the whole box.
template <class OnScan>
BlockCut sample_cut(Rng& rng, Bounds& bounds, const Coordinates& at, std::span<const Slot> slots, double time,
                    double lifetime, OnScan on_scan) {
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

// The first cut of a block whose box is known.
inline BlockCut sample_cut(Rng& rng, const Measure& measure, BoxView box, double birth_time, double lifetime) {
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

// Where the cut at `time` passes that separates a box from points outside; `outer` is the box around all of them, and
// `rate` the rate at which it extends the box, which is positive.
inline GapCut sample_gap_cut(Rng& rng, const Measure& measure, BoxView box, BoxView outer, double rate, double time) {
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

// The same for one point outside.
inline GapCut sample_gap_cut(Rng& rng, const Measure& measure, BoxView box, const float* row, double rate,
                             double time) {
  const double* weights = measure.weights.data();
  const auto sum = [&](std::size_t begin, std::size_t end) { return separation_rate(weights, box, row, begin, end); };
  const auto weight = [&](std::size_t d) { return weights[d] * distance_to(box.lower[d], box.upper[d], row[d]); };
  const std::size_t d = rng.choose<detail::kStretch>(rate, measure.weights.size(), sum, weight).index;
  const bool is_upper = row[d] > box.upper[d];
  const float location = is_upper ? rng.location(box.upper[d], row[d]) : rng.location(row[d], box.lower[d]);
  return {{time, d, location}, is_upper};
}

}  // namespace onlineforest
