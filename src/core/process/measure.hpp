// The measure of the Mondrian process: what each feature weighs in the rate of cuts, the discount rate that goes
// with it, the prior of the target, and when all of them are computed anew. Knows nothing of trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "points/box.hpp"

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

inline constexpr double kLargestDiscountRate = 1e300;  // finite, so that 0 time times it is 0
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
      : rule_(rule), n_features_(n_features), given_(std::move(weights)) {}

  WeightRule rule() const { return rule_; }

  // What is saved of it.
  struct State {
    std::uint64_t computed_from = 0;  // so many points; 0: it is to be computed whether due or not
    std::uint64_t n_since = 0;        // so many have come since
    std::uint64_t n_refreshes = 0;    // how often it was computed

    bool operator==(const State&) const = default;
  };

  const State& state() const { return state_; }
  void resume(const State& state) { state_ = state; }

  // How often the measure was computed.
  std::uint64_t n_refreshes() const { return state_.n_refreshes; }

  void add_points(std::size_t n) { state_.n_since += n; }
  // The measure is to be computed of what is there, however close it comes to the old one.
  void make_due() { state_.computed_from = 0; }
  // Only `n` points are left: it is due the sooner.
  void forget_down_to(std::size_t n) {
    state_.computed_from = std::min<std::uint64_t>(state_.computed_from, std::max<std::size_t>(n, 1));
  }

  bool is_due() const { return state_.n_since >= wait(); }

  // How many more points make it due; at least one.
  std::size_t n_until_due() const {
    return static_cast<std::size_t>(std::max<std::uint64_t>(wait(), state_.n_since + 1) - state_.n_since);
  }

  // Brings `measure` (null: none yet) up to date with the box around all points. When its time has come, a change of no
  // more than a few percent is not worth growing the forest afresh: then the old weights stay, and the discount rate
  // that goes with them if the discount is the same.
  template <class Prior>
  void refresh(MeasurePointer<Prior>& measure, BoxView data, Learned<Prior> learned, std::size_t n_points) {
    MeasureWith<Prior> fresh = compute(data, learned);
    if (measure && state_.computed_from > 0 && !differs(*measure, fresh, data)) {
      fresh.weights = measure->weights;
      fresh.n_weighted = measure->n_weighted;
      if (!moved(measure->discount_rate, fresh.discount_rate)) fresh.discount_rate = measure->discount_rate;
    }
    if (!measure || !(*measure == fresh)) measure = std::make_shared<const MeasureWith<Prior>>(std::move(fresh));
    state_ = {n_points, 0, state_.n_refreshes + 1};
  }

 private:
  static constexpr double kTolerance = 0.1;

  // How many points must have come since. What is learned gets better with every point, a range hardly.
  std::uint64_t wait() const {
    return rule_ == WeightRule::kLearned ? (state_.computed_from + 1) / 2 : state_.computed_from;
  }

  template <class Prior>
  MeasureWith<Prior> compute(BoxView data, Learned<Prior>& learned) const {
    std::vector<double> weights = rule_ == WeightRule::kFixed ? given_ : std::vector<double>(n_features_, 1.0);
    if (rule_ == WeightRule::kRange) weights = weights_of(weights, data);  // all shares are 1
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
  std::vector<double> given_;  // for WeightRule::kFixed
  State state_;
};

}  // namespace onlineforest
