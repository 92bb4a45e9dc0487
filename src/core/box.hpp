// Boxes: the smallest axis-aligned rectangle around some points, and the rates that follow from it.
// Knows nothing of trees. Bounds are stored as float32; every range and rate is computed in float64,
// because 3e38 - (-3e38) overflows float32.
#pragma once

#include <algorithm>
#include <cstddef>

namespace onlineforest {

// A view of the bounds of one box; `lower` and `upper` have one entry per feature.
struct BoxView {
  const float* lower;
  const float* upper;
};

inline void start_box(float* lower, float* upper, const float* row, std::size_t n_features) {
  std::copy_n(row, n_features, lower);
  std::copy_n(row, n_features, upper);
}

// Grows the box to contain the box `other`; a row is the box (row, row).
inline void include(float* lower, float* upper, BoxView other, std::size_t n_features) {
  for (std::size_t d = 0; d < n_features; ++d) {
    lower[d] = std::min(lower[d], other.lower[d]);
    upper[d] = std::max(upper[d], other.upper[d]);
  }
}

inline double length(float low, float high) { return static_cast<double>(high) - static_cast<double>(low); }

// Sum over d of w_d (u_d - l_d): the rate at which a Mondrian process cuts the box.
inline double linear_dimension(const double* weights, BoxView box, std::size_t n_features) {
  double rate = 0.0;
  for (std::size_t d = 0; d < n_features; ++d) rate += weights[d] * length(box.lower[d], box.upper[d]);
  return rate;
}

// The weighted length of one of the 2 D gaps between a box and a larger one around it:
// gap 2 d lies below the box in dimension d, gap 2 d + 1 above it.
inline double gap_weight(const double* weights, BoxView box, BoxView outer, std::size_t gap) {
  const std::size_t d = gap / 2;
  return gap % 2 == 0 ? weights[d] * length(outer.lower[d], box.lower[d])
                      : weights[d] * length(box.upper[d], outer.upper[d]);
}

// Sum of all gap weights: the rate at which a Mondrian process on `outer` cuts outside `box`.
inline double extension_rate(const double* weights, BoxView box, BoxView outer, std::size_t n_features) {
  double rate = 0.0;
  for (std::size_t gap = 0; gap < 2 * n_features; ++gap) rate += gap_weight(weights, box, outer, gap);
  return rate;
}

// eta_j(x) of the paper's appendix B: the rate at which a point outside the box is cut off from it.
inline double separation_rate(const double* weights, BoxView box, const float* row, std::size_t n_features) {
  double rate = 0.0;
  for (std::size_t d = 0; d < n_features; ++d) {
    const double x = row[d];
    rate += weights[d] * (std::max(x - box.upper[d], 0.0) + std::max(box.lower[d] - x, 0.0));
  }
  return rate;
}

}  // namespace onlineforest
