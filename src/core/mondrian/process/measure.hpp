// The measure of the Mondrian process: feature weights and discounts. Must not know trees, nor when a measure is
// refreshed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "mondrian/points/box.hpp"

namespace onlineforest::mondrian {

// Feature d contributes w_d times its range to the rate of cuts.
// Differs from the paper: there all weights are 1, and gamma is an independent parameter.
struct Measure {
  Measure() = default;
  Measure(std::vector<double> feature_weights, double rate, double of_leaf)
      : weights(std::move(feature_weights)),
        discount_rate(rate),
        leaf_discount(of_leaf),
        n_weighted(static_cast<std::size_t>(std::ranges::count_if(weights, [](double w) { return w > 0.0; }))) {}

  std::vector<double> weights;  // w_d >= 0, one per feature
  double discount_rate = 0.0;   // gamma
  double leaf_discount = 0.0;   // lower bound on d_j of a leaf
  std::size_t n_weighted = 0;   // number of features of positive weight; only these are cut

  bool operator==(const Measure&) const = default;
};

using MeasurePointer = std::shared_ptr<const Measure>;

enum class WeightRule {
  kUnit,     // w = 1, gamma = discount x D
  kFixed,    // w is given; gamma = discount x sum of w_d x range_d of the data
  kRange,    // w_d = 1 / range_d of the data, 0 for a constant feature; gamma as for kFixed
  kLearned,  // w_d = share_d / range_d, the share from the relevance of the feature; gamma as for kFixed
};

[[nodiscard]] inline bool is_known(WeightRule rule) {
  return rule >= WeightRule::kUnit && rule <= WeightRule::kLearned;
}

inline constexpr double kLargestDiscountRate = 1e300;  // finite, so that its product with a duration of 0 is 0
// Larger weights could make the rate of a box overflow.
inline constexpr double kLargestWeight = 1e200;

// Estimates from the stored points that a measure is computed from.
struct Learned {
  std::vector<double> shares;  // per feature, mean 1: relative frequency of its cuts if all ranges were equal
  double discount = 0.0;       // discount rate if the sum of w_d x range_d were 1
  double leaf_discount = 0.0;
};

// w_d = share_d / range_d, at most kLargestWeight; 0 for a constant feature.
[[nodiscard]] inline std::vector<double> weights_of(std::span<const double> shares, BoxView data) {
  std::vector<double> weights(shares.size(), 0.0);
  for (std::size_t d = 0; d < shares.size(); ++d) {
    const double range = length(data.lower[d], data.upper[d]);
    if (range > 0.0) weights[d] = std::min(shares[d] / range, kLargestWeight);
  }
  return weights;
}

}  // namespace onlineforest::mondrian
