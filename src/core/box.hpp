// Boxes: the smallest axis-aligned rectangle around some points, and the rates that follow from it.
// Knows nothing of trees. Bounds are stored as float32; every range and rate is computed in float64,
// because 3e38 - (-3e38) overflows float32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "simd.hpp"

namespace onlineforest {

// A view of the bounds of one box; `lower` and `upper` have one entry per feature.
struct BoxView {
  const float* lower;
  const float* upper;
};

inline void start_box(float* lower, float* upper, BoxView box, std::size_t n_features) {
  std::size_t d = 0;
  for (; d + simd::kWidth <= n_features; d += simd::kWidth) {
    simd::store(lower + d, simd::load(box.lower + d));
    simd::store(upper + d, simd::load(box.upper + d));
  }
  for (; d < n_features; ++d) {
    lower[d] = box.lower[d];
    upper[d] = box.upper[d];
  }
}

// Sets the box around n rows, at least one; row(i) is the i-th of them.
template <class Row>
void set_hull(float* lower, float* upper, std::size_t n, Row row, std::size_t n_features) {
  std::size_t d = 0;
  for (; d + simd::kWidth <= n_features; d += simd::kWidth) {
    simd::Float4 low = simd::load(row(0) + d), high = low;
    for (std::size_t i = 1; i < n; ++i) {
      const simd::Float4 x = simd::load(row(i) + d);
      low = simd::min(low, x);
      high = simd::max(high, x);
    }
    simd::store(lower + d, low);
    simd::store(upper + d, high);
  }
  for (; d < n_features; ++d) {
    lower[d] = upper[d] = row(0)[d];
    for (std::size_t i = 1; i < n; ++i) {
      lower[d] = simd::min(lower[d], row(i)[d]);
      upper[d] = simd::max(upper[d], row(i)[d]);
    }
  }
}

// Grows the box to contain the box `other`; a row is the box (row, row).
inline void include(float* lower, float* upper, BoxView other, std::size_t n_features) {
  std::size_t d = 0;
  for (; d + simd::kWidth <= n_features; d += simd::kWidth) {
    simd::store(lower + d, simd::min(simd::load(lower + d), simd::load(other.lower + d)));
    simd::store(upper + d, simd::max(simd::load(upper + d), simd::load(other.upper + d)));
  }
  for (; d < n_features; ++d) {
    lower[d] = std::min(lower[d], other.lower[d]);
    upper[d] = std::max(upper[d], other.upper[d]);
  }
}

// One side of a box.
struct Bound {
  std::uint32_t dimension;
  bool is_upper;
};

// Appends the bounds of a box that a row lies on.
inline void find_touched(BoxView box, const float* row, std::size_t n_features, std::vector<Bound>& bounds) {
  for (std::size_t d = 0; d < n_features; ++d) {
    if (row[d] == box.lower[d]) bounds.push_back({static_cast<std::uint32_t>(d), false});
    if (row[d] == box.upper[d]) bounds.push_back({static_cast<std::uint32_t>(d), true});
  }
}

// Shrinks a box to the hull of two others; appends the bounds that moved.
inline void shrink_to_hull(float* lower, float* upper, BoxView a, BoxView b, std::size_t n_features,
                           std::vector<Bound>& moved) {
  const auto set = [&](std::size_t d) {
    const float low = std::min(a.lower[d], b.lower[d]), high = std::max(a.upper[d], b.upper[d]);
    if (low != lower[d]) moved.push_back({static_cast<std::uint32_t>(d), false});
    if (high != upper[d]) moved.push_back({static_cast<std::uint32_t>(d), true});
    lower[d] = low;
    upper[d] = high;
  };
  std::size_t d = 0;
  for (; d + simd::kWidth <= n_features; d += simd::kWidth) {
    if (!simd::differ(simd::min(simd::load(a.lower + d), simd::load(b.lower + d)), simd::load(lower + d)) &&
        !simd::differ(simd::max(simd::load(a.upper + d), simd::load(b.upper + d)), simd::load(upper + d))) {
      continue;
    }
    for (std::size_t i = d; i < d + simd::kWidth; ++i) set(i);
  }
  for (; d < n_features; ++d) set(d);
}

// Room for a box.
class BoxBuffer {
 public:
  BoxView assign(BoxView box, std::size_t n_features) {
    resize(n_features);
    start_box(lower(), upper(), box, n_features);
    return view();
  }

  void resize(std::size_t n_features) {
    n_features_ = n_features;
    bounds_.resize(2 * n_features);
  }

  float* lower() { return bounds_.data(); }
  float* upper() { return bounds_.data() + n_features_; }
  BoxView view() const { return {bounds_.data(), bounds_.data() + n_features_}; }

 private:
  std::size_t n_features_ = 0;
  std::vector<float> bounds_;
};

inline bool contains(BoxView box, const float* row, std::size_t n_features) {
  std::size_t d = 0;
  for (; d + simd::kWidth <= n_features; d += simd::kWidth) {
    const simd::Float4 x = simd::load(row + d);
    if (simd::differ(x, simd::clamp(x, simd::load(box.lower + d), simd::load(box.upper + d)))) return false;
  }
  for (; d < n_features; ++d) {
    if (row[d] < box.lower[d] || row[d] > box.upper[d]) return false;
  }
  return true;
}

inline double length(float low, float high) { return static_cast<double>(high) - static_cast<double>(low); }

// How far x lies outside [low, high].
inline double distance_to(float low, float high, float x) {
  return std::abs(static_cast<double>(x) - static_cast<double>(std::min(std::max(x, low), high)));
}

// A box of a smaller rate than this may never be cut: the time of its cut can be infinite.
inline constexpr double kNoRate = 1e-290;

// Sum over d in [begin, end) of w_d (u_d - l_d): the rate at which a Mondrian process cuts the box there.
inline double linear_dimension(const double* weights, BoxView box, std::size_t begin, std::size_t end) {
  simd::Double4 lanes = simd::zero();
  std::size_t d = begin;
  for (; d + simd::kWidth <= end; d += simd::kWidth) {
    lanes = simd::add(lanes,
                      simd::scale(simd::distance(simd::load(box.upper + d), simd::load(box.lower + d)), weights + d));
  }
  double rate = simd::total(lanes);
  for (; d < end; ++d) rate += weights[d] * length(box.lower[d], box.upper[d]);
  return rate;
}

inline double linear_dimension(const double* weights, BoxView box, std::size_t n_features) {
  return linear_dimension(weights, box, 0, n_features);
}

// The weighted length of one of the 2 D gaps between a box and a larger one around it:
// gap 2 d lies below the box in dimension d, gap 2 d + 1 above it.
inline double gap_weight(const double* weights, BoxView box, BoxView outer, std::size_t gap) {
  const std::size_t d = gap / 2;
  return gap % 2 == 0 ? weights[d] * length(outer.lower[d], box.lower[d])
                      : weights[d] * length(box.upper[d], outer.upper[d]);
}

// Sum of the gap weights of the dimensions [begin, end): the rate at which a Mondrian process on `outer` cuts
// outside `box` there.
inline double extension_rate(const double* weights, BoxView box, BoxView outer, std::size_t begin, std::size_t end) {
  simd::Double4 lanes = simd::zero();
  std::size_t d = begin;
  for (; d + simd::kWidth <= end; d += simd::kWidth) {
    const simd::Double4 below = simd::distance(simd::load(box.lower + d), simd::load(outer.lower + d));
    const simd::Double4 above = simd::distance(simd::load(outer.upper + d), simd::load(box.upper + d));
    lanes = simd::add(lanes, simd::scale(simd::add(below, above), weights + d));
  }
  double rate = simd::total(lanes);
  for (; d < end; ++d) {
    rate += weights[d] * (length(outer.lower[d], box.lower[d]) + length(box.upper[d], outer.upper[d]));
  }
  return rate;
}

// eta_j(x) of the paper's appendix B, the part of the dimensions [begin, end): the rate at which a point outside the
// box is cut off from it. The extension rate of the box by the point, too.
inline double separation_rate(const double* weights, BoxView box, const float* row, std::size_t begin,
                              std::size_t end) {
  simd::Double4 lanes = simd::zero();
  std::size_t d = begin;
  for (; d + simd::kWidth <= end; d += simd::kWidth) {
    const simd::Float4 x = simd::load(row + d);
    const simd::Float4 nearest = simd::clamp(x, simd::load(box.lower + d), simd::load(box.upper + d));
    lanes = simd::add(lanes, simd::scale(simd::distance(x, nearest), weights + d));
  }
  double rate = simd::total(lanes);
  for (; d < end; ++d) rate += weights[d] * distance_to(box.lower[d], box.upper[d], row[d]);
  return rate;
}

inline double separation_rate(const double* weights, BoxView box, const float* row, std::size_t n_features) {
  return separation_rate(weights, box, row, 0, n_features);
}

// The separation rates of one row from boxes that each lie in the next. A dimension in which the row is inside one
// box it is inside all further ones: those are looked at no more, which saves most of the work where there are many
// dimensions.
class NestedSeparation {
 public:
  // The row must stay in place until the last call of next_rate().
  void start(const double* weights, const float* row, std::size_t n_features) {
    weights_ = weights;
    row_ = row;
    n_features_ = n_features;
    groups_.resize(n_features / simd::kWidth);
    std::iota(groups_.begin(), groups_.end(), std::uint32_t{0});
    n_groups_ = groups_.size();
  }

  double next_rate(BoxView box) {
    if (n_features_ < kFewFeatures) return separation_rate(weights_, box, row_, n_features_);
    // Copied, for what is written to `groups` might be any of them as far as the compiler knows.
    std::uint32_t* const groups = groups_.data();
    const float* const row = row_;
    const double* const weights = weights_;
    const std::size_t n_groups = n_groups_;
    simd::Double4 lanes = simd::zero();
    std::size_t n_left = 0;
    for (std::size_t i = 0; i < n_groups; ++i) {
      const std::uint32_t group = groups[i];
      const std::size_t d = group * simd::kWidth;
      const simd::Float4 x = simd::load(row + d);
      const simd::Float4 nearest = simd::clamp(x, simd::load(box.lower + d), simd::load(box.upper + d));
      lanes = simd::add(lanes, simd::scale(simd::distance(x, nearest), weights + d));
      groups[n_left] = group;
      n_left += simd::differ(x, nearest);
    }
    n_groups_ = n_left;
    double rate = simd::total(lanes);
    for (std::size_t d = groups_.size() * simd::kWidth; d < n_features_; ++d) {
      rate += weights_[d] * distance_to(box.lower[d], box.upper[d], row_[d]);
    }
    return rate;
  }

 private:
  static constexpr std::size_t kFewFeatures = 32;

  const double* weights_ = nullptr;
  const float* row_ = nullptr;
  std::size_t n_features_ = 0;
  std::vector<std::uint32_t> groups_;
  std::size_t n_groups_ = 0;
};

}  // namespace onlineforest
