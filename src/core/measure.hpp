// The measure of the Mondrian process: what each feature weighs in the rate of cuts, the discount rate that goes
// with it, and when both are computed anew. Knows nothing of trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "box.hpp"

namespace onlineforest {

// Differs from the paper: it has no weights (all 1), and gamma is a parameter of its own.
struct Measure {
  Measure() = default;
  Measure(std::vector<double> feature_weights, double rate)
      : weights(std::move(feature_weights)),
        discount_rate(rate),
        n_weighted(static_cast<std::size_t>(std::ranges::count_if(weights, [](double w) { return w > 0.0; }))) {}

  std::vector<double> weights;  // w_d >= 0, one per feature
  double discount_rate = 0.0;   // gamma
  std::size_t n_weighted = 0;   // features of a weight above 0: those that are cut

  bool operator==(const Measure&) const = default;
};

using MeasurePointer = std::shared_ptr<const Measure>;

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

  // How many more points make it due; at least one.
  std::size_t n_until_due(std::size_t n_points) const {
    const std::size_t due = std::max<std::size_t>(2 * computed_from_, 1);
    return n_points < due ? due - n_points : 1;
  }

  // Brings `measure` (null: none yet) up to date with the box around all points. A change of no more than a few percent
  // is not worth growing the forest afresh: then the old measure stays.
  void refresh(MeasurePointer& measure, BoxView data, std::size_t n_points) {
    Measure fresh = compute(data);
    if (!measure || differs(*measure, fresh)) measure = std::make_shared<const Measure>(std::move(fresh));
    computed_from_ = n_points;
  }

 private:
  static constexpr double kTolerance = 0.1;
  static constexpr double kLargestDiscountRate = 1e300;  // finite, so that 0 time times it is 0

  Measure compute(BoxView data) const {
    std::vector<double> weights = given_;
    double total = 0.0;
    for (std::size_t d = 0; d < n_features_; ++d) {
      const double range = length(data.lower[d], data.upper[d]);
      if (rule_ == WeightRule::kRange) weights[d] = range > 0.0 ? 1.0 / range : 0.0;
      total += weights[d] * range;
    }
    if (rule_ == WeightRule::kUnit || !(total > 0.0)) total = static_cast<double>(n_features_);
    return {std::move(weights), std::min(discount_ * total, kLargestDiscountRate)};
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
