// Rates at which a Mondrian process cuts a box, extends it, or separates a row from it. Must not know trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/simd.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/process/grouped_rate.hpp"

namespace onlineforest::mondrian {

// Distance of x from the interval [low, high].
[[nodiscard]] inline double distance_to(float low, float high, float x) {
  return std::abs(static_cast<double>(x) - static_cast<double>(std::min(std::max(x, low), high)));
}

// Below this rate the time of a cut can overflow to infinity, so such a box may stay uncut.
inline constexpr double kNoRate = 1e-290;

// Sum over d in [begin, end) of w_d (u_d - l_d): the rate at which a Mondrian process cuts the box in these dimensions.
[[nodiscard]] inline double linear_dimension(const double* weights, BoxView box, std::size_t begin, std::size_t end) {
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

[[nodiscard]] inline double linear_dimension(const double* weights, BoxView box, std::size_t n_features) {
  return linear_dimension(weights, box, 0, n_features);
}

// The weighted length of one of the 2 D gaps between a box and a larger one around it:
// gap 2 d lies below the box in dimension d, gap 2 d + 1 above it.
[[nodiscard]] inline double gap_weight(const double* weights, BoxView box, BoxView outer, std::size_t gap) {
  const std::size_t d = gap / 2;
  return gap % 2 == 0 ? weights[d] * length(outer.lower[d], box.lower[d])
                      : weights[d] * length(box.upper[d], outer.upper[d]);
}

// Sum of the gap weights of the dimensions [begin, end): the rate at which a Mondrian process on `outer` cuts outside
// `box` in these dimensions.
[[nodiscard]] inline double extension_rate(const double* weights, BoxView box, BoxView outer, std::size_t begin,
                                           std::size_t end) {
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

// eta_j(x) of the paper's appendix B, summed over the dimensions [begin, end): the rate at which a row outside the box
// is separated from it. Equals the extension rate of the box by the row.
[[nodiscard]] inline double separation_rate(const double* weights, BoxView box, const float* row, std::size_t begin,
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

[[nodiscard]] inline double separation_rate(const double* weights, BoxView box, const float* row,
                                            std::size_t n_features) {
  return separation_rate(weights, box, row, 0, n_features);
}

// Separation rates of one row from nested boxes, the innermost first. A dimension in which the row is inside one box
// can be skipped for all boxes around it. With many dimensions this saves most of the work.
class NestedSeparation {
 public:
  // Weights and row must outlive all calls of next_rate().
  void start(const double* weights, const float* row, std::size_t n_features) {
    weights_ = weights;
    row_ = row;
    n_features_ = n_features;
    if (n_features < kFewFeatures) return;
    groups_.resize(n_features / simd::kWidth);
    std::iota(groups_.begin(), groups_.end(), std::uint32_t{0});
    n_groups_ = groups_.size();
  }

  // The rate of the next box, which contains the one before.
  double next_rate(BoxView box) {
    if (n_features_ < kFewFeatures) return separation_rate(weights_, box, row_, n_features_);
    double rate = grouped_rate_(weights_, box, row_, groups_.data(), n_groups_);
    for (std::size_t d = groups_.size() * simd::kWidth; d < n_features_; ++d) {
      rate += weights_[d] * distance_to(box.lower[d], box.upper[d], row_[d]);
    }
    return rate;
  }

  // Finds the rates of a path of nested boxes from its last box upwards, until one is 0: then the row is inside all
  // boxes further up. box_of(k) returns the box of step k; it is called for decreasing k, and its result is used at
  // once. Returns the first step of positive rate; from there on `rates` is set.
  template <class BoxOf>
  std::size_t find_rates(const double* weights, const float* row, std::size_t n_features, std::span<double> rates,
                         BoxOf box_of) {
    start(weights, row, n_features);
    std::size_t first = rates.size();
    while (first > 0) {
      const double rate = next_rate(box_of(first - 1));
      if (!(rate > 0.0)) break;
      rates[--first] = rate;
    }
    return first;
  }

 private:
  static constexpr std::size_t kFewFeatures = 32;

  const double* weights_ = nullptr;
  const float* row_ = nullptr;
  std::size_t n_features_ = 0;
  std::vector<std::uint32_t> groups_;  // groups of simd::kWidth dimensions; the first n_groups_ are still needed
  std::size_t n_groups_ = 0;
  GroupedRate grouped_rate_ = grouped_rates().back();
};

}  // namespace onlineforest::mondrian
