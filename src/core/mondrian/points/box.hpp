// Boxes: the smallest axis-aligned box around some points. Must not know trees.
//
// Bounds are stored as float32. Every length is computed in float64, because 3e38 - (-3e38) overflows float32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/simd.hpp"

namespace onlineforest::mondrian {

// A view of the bounds of one box; `lower` and `upper` have one entry per feature.
struct BoxView {
  const float* lower;
  const float* upper;
};

// Copies a box.
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

// Sets the box of n rows (at least one); row(i) is the i-th row.
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

// Grows a box to contain the box `other`. A row is the box (row, row).
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

// Appends the bounds of a box that a row touches.
inline void find_touched(BoxView box, const float* row, std::size_t n_features, std::vector<Bound>& bounds) {
  for (std::size_t d = 0; d < n_features; ++d) {
    if (row[d] == box.lower[d]) bounds.push_back({static_cast<std::uint32_t>(d), false});
    if (row[d] == box.upper[d]) bounds.push_back({static_cast<std::uint32_t>(d), true});
  }
}

// Shrinks a box to the hull of the boxes a and b. Appends the bounds that moved.
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

// Memory for one box.
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

[[nodiscard]] inline bool contains(BoxView box, const float* row, std::size_t n_features) {
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

[[nodiscard]] inline double length(float low, float high) {
  return static_cast<double>(high) - static_cast<double>(low);
}

}  // namespace onlineforest::mondrian
