// The measure of the Mondrian process: what each feature weighs in the rate of cuts, the discount rate that goes
// with it, and when both are computed anew. Knows nothing of trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "box.hpp"

namespace onlineforest {

// Differs from the paper: it has no weights (all 1), and gamma is a parameter of its own.
struct Measure {
  std::vector<double> weights;  // w_d >= 0, one per feature
  double discount_rate = 0.0;   // gamma
};

enum class WeightRule {
  kUnit,   // w = 1, gamma = discount x D
  kFixed,  // the user's weights; gamma follows the range of the data
  kRange,  // w_d = 1 / range of the data, 0 for a constant feature; gamma likewise
};

// Computes the measure from the data seen and freezes it: with a frozen measure online learning is exact. It is
// due again when as many points have come since as it was computed from.
class MeasureSchedule {
 public:
  MeasureSchedule(WeightRule rule, std::vector<double> weights, double discount, std::size_t n_features)
      : rule_(rule), discount_(discount), n_features_(n_features), given_(std::move(weights)) {
    if (rule_ != WeightRule::kFixed) given_.assign(n_features, 1.0);
  }

  WeightRule rule() const { return rule_; }
  double discount() const { return discount_; }
  const std::vector<double>& given_weights() const { return given_; }
  std::size_t computed_from() const { return computed_from_; }
  void resume(std::size_t computed_from) { computed_from_ = computed_from; }

  bool is_due(std::size_t n_points) const { return n_points > 0 && n_points - computed_from_ >= computed_from_; }

  // Brings `measure` up to date with the box around all points. A change of no more than a few percent is not
  // worth growing the forest afresh: then the old measure stays.
  void refresh(Measure& measure, BoxView data, std::size_t n_points) {
    Measure fresh = compute(data);
    if (measure.weights.empty() || differs(measure, fresh)) measure = std::move(fresh);
    computed_from_ = n_points;
  }

 private:
  static constexpr double kTolerance = 0.05;
  static constexpr double kLargestDiscountRate = 1e300;  // finite, so that 0 time times it is 0

  Measure compute(BoxView data) const {
    Measure measure{given_, 0.0};
    double total = 0.0;
    for (std::size_t d = 0; d < n_features_; ++d) {
      const double range = length(data.lower[d], data.upper[d]);
      if (rule_ == WeightRule::kRange) measure.weights[d] = range > 0.0 ? 1.0 / range : 0.0;
      total += measure.weights[d] * range;
    }
    if (rule_ == WeightRule::kUnit || !(total > 0.0)) total = static_cast<double>(n_features_);
    measure.discount_rate = std::min(discount_ * total, kLargestDiscountRate);
    return measure;
  }

  static bool moved(double from, double to) { return std::abs(to - from) > kTolerance * from; }

  static bool differs(const Measure& old, const Measure& fresh) {
    if (moved(old.discount_rate, fresh.discount_rate)) return true;
    for (std::size_t d = 0; d < old.weights.size(); ++d) {
      if (moved(old.weights[d], fresh.weights[d])) return true;
    }
    return false;
  }

  WeightRule rule_;
  double discount_;
  std::size_t n_features_;
  std::vector<double> given_;
  std::size_t computed_from_ = 0;
};

}  // namespace onlineforest
