// The measure of the Mondrian process: what each feature weighs in the rate of cuts, the discount rate that goes
// with it, the prior of the target, and when all of them are computed anew. Knows nothing of trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
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

// A measure, and what is believed about a target before any point is seen.
template <class Prior>
struct MeasureWith : Measure {
  MeasureWith() = default;
  MeasureWith(std::vector<double> feature_weights, double rate, Prior of_target)
      : Measure(std::move(feature_weights), rate), prior(std::move(of_target)) {}

  Prior prior;

  bool operator==(const MeasureWith&) const = default;
};

template <class Prior>
using MeasurePointer = std::shared_ptr<const MeasureWith<Prior>>;

enum class WeightRule {
  kUnit,     // w = 1, gamma = discount x D
  kFixed,    // the user's weights; gamma follows the range of the data
  kRange,    // w_d = 1 / range of the data, 0 for a constant feature; gamma likewise
  kLearned,  // w_d = share / range, the share learned from the values
};

inline bool is_known(WeightRule rule) { return rule >= WeightRule::kUnit && rule <= WeightRule::kLearned; }

// The largest weight a feature may have: beyond, the rate of a box could overflow.
inline constexpr double kLargestWeight = 1e200;

// What the values of the points tell about the measure.
template <class Prior>
struct Learned {
  std::vector<double> shares;  // per feature: how often it is cut where all ranges are the same; 1 on average
  double discount = 0.0;       // the discount rate for a total of weights times ranges of 1
  Prior prior;
};

// w_d = share_d / range_d, 0 for a constant feature.
inline std::vector<double> weights_of(std::span<const double> shares, BoxView data) {
  std::vector<double> weights(shares.size(), 0.0);
  for (std::size_t d = 0; d < shares.size(); ++d) {
    const double range = length(data.lower[d], data.upper[d]);
    if (range > 0.0) weights[d] = std::min(shares[d] / range, kLargestWeight);
  }
  return weights;
}

// Computes the measure from the data seen and freezes it: with a frozen measure online learning is exact. It is
// due again when as many points have come since as it was computed from; half as many if it is learned.
class MeasureSchedule {
 public:
  MeasureSchedule(WeightRule rule, std::vector<double> weights, std::size_t n_features)
      : rule_(rule), n_features_(n_features), given_(std::move(weights)) {
    if (rule_ != WeightRule::kFixed) given_.assign(n_features, 1.0);
  }

  WeightRule rule() const { return rule_; }
  const std::vector<double>& given_weights() const { return given_; }
  std::size_t computed_from() const { return computed_from_; }
  void resume(std::size_t computed_from) { computed_from_ = computed_from; }

  bool is_due(std::size_t n_points) const { return n_points > 0 && n_points - computed_from_ >= wait(); }

  // How many more points make it due; at least one.
  std::size_t n_until_due(std::size_t n_points) const {
    const std::size_t due = std::max<std::size_t>(computed_from_ + wait(), 1);
    return n_points < due ? due - n_points : 1;
  }

  // Brings `measure` (null: none yet) up to date with the box around all points. A change of no more than a few percent
  // is not worth growing the forest afresh: then the old weights stay, and the discount rate that goes with them if
  // the discount is the same.
  template <class Prior>
  void refresh(MeasurePointer<Prior>& measure, BoxView data, Learned<Prior> learned, std::size_t n_points) {
    MeasureWith<Prior> fresh = compute(data, learned);
    if (measure && !differs(*measure, fresh, data)) {
      fresh.weights = measure->weights;
      fresh.n_weighted = measure->n_weighted;
      if (!moved(measure->discount_rate, fresh.discount_rate)) fresh.discount_rate = measure->discount_rate;
    }
    if (!measure || !(*measure == fresh)) measure = std::make_shared<const MeasureWith<Prior>>(std::move(fresh));
    computed_from_ = n_points;
  }

 private:
  static constexpr double kTolerance = 0.1;
  static constexpr double kLargestDiscountRate = 1e300;  // finite, so that 0 time times it is 0

  // How many points must have come since. What is learned gets better with every point, a range hardly.
  std::size_t wait() const { return rule_ == WeightRule::kLearned ? (computed_from_ + 1) / 2 : computed_from_; }

  template <class Prior>
  MeasureWith<Prior> compute(BoxView data, Learned<Prior>& learned) const {
    std::vector<double> weights = given_;
    if (rule_ == WeightRule::kRange) weights = weights_of(given_, data);  // all shares are 1
    if (rule_ == WeightRule::kLearned) weights = weights_of(learned.shares, data);
    double total = 0.0;
    for (std::size_t d = 0; d < n_features_; ++d) total += weights[d] * length(data.lower[d], data.upper[d]);
    if (rule_ == WeightRule::kUnit || !(total > 0.0)) total = static_cast<double>(n_features_);
    return {std::move(weights), std::min(learned.discount * total, kLargestDiscountRate), std::move(learned.prior)};
  }

  static bool moved(double from, double to) { return std::abs(to - from) > kTolerance * from; }

  bool differs(const Measure& old, const Measure& fresh, BoxView data) const {
    if (rule_ == WeightRule::kLearned) {  // noisy: what counts is how many cuts would be others
      double change = 0.0, total = 0.0;
      for (std::size_t d = 0; d < n_features_; ++d) {
        const double range = length(data.lower[d], data.upper[d]);
        if (old.weights[d] == 0.0 && fresh.weights[d] > 0.0) return true;  // it was constant
        change += std::abs(fresh.weights[d] - old.weights[d]) * range;
        total += fresh.weights[d] * range;
      }
      return change > kTolerance * total;
    }
    for (std::size_t d = 0; d < old.weights.size(); ++d) {
      if (moved(old.weights[d], fresh.weights[d])) return true;
    }
    return false;
  }

  WeightRule rule_;
  std::size_t n_features_;
  std::vector<double> given_;
  std::size_t computed_from_ = 0;
};

}  // namespace onlineforest
