// The schedule of the measure: computes it, and decides when it must be refreshed. Must not know trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mondrian/points/box.hpp"
#include "mondrian/process/measure.hpp"

namespace onlineforest::mondrian {

// The measure is computed from the stored points and then frozen: with a frozen measure, online learning has exactly
// the distribution of batch learning. A measure computed from n points is due for a refresh after n further points;
// after n / 2 if its weights are learned.
class MeasureSchedule {
 public:
  MeasureSchedule(WeightRule rule, std::vector<double> weights, std::size_t n_features)
      : rule_(rule), n_features_(n_features), given_(std::move(weights)) {}

  [[nodiscard]] WeightRule rule() const { return rule_; }

  // The saved state.
  struct State {
    std::uint64_t computed_from = 0;  // number of points of the last refresh; 0 forces a refresh
    std::uint64_t n_since = 0;        // number of points added since
    std::uint64_t n_refreshes = 0;    // number of refreshes so far

    bool operator==(const State&) const = default;
  };

  [[nodiscard]] const State& state() const { return state_; }
  void resume(const State& state) { state_ = state; }

  [[nodiscard]] std::uint64_t n_refreshes() const { return state_.n_refreshes; }

  void add_points(std::size_t n) { state_.n_since += n; }
  // Forces a refresh that replaces the measure even if the new one is close to the old one.
  void make_due() { state_.computed_from = 0; }
  // Call after forgetting: with only `n` points left, the next refresh is due after at most `n` further points.
  void forget_down_to(std::size_t n) {
    state_.computed_from = std::min<std::uint64_t>(state_.computed_from, std::max<std::size_t>(n, 1));
  }

  [[nodiscard]] bool is_due() const { return state_.n_since >= wait(); }

  // Number of further points after which a refresh is due; at least 1.
  [[nodiscard]] std::size_t n_until_due() const {
    return static_cast<std::size_t>(std::max<std::uint64_t>(wait(), state_.n_since + 1) - state_.n_since);
  }

  // Refreshes `measure` (null before the first refresh); `data` is the box of all points. New weights make all trees
  // grow from scratch. So the old weights stay if the change is within kTolerance, and so does the old discount rate,
  // unless the refresh was forced.
  void refresh(MeasurePointer& measure, BoxView data, const Learned& learned, std::size_t n_points) {
    Measure fresh = compute(data, learned);
    if (measure && state_.computed_from > 0 && !differs(*measure, fresh, data)) {
      fresh.weights = measure->weights;
      fresh.n_weighted = measure->n_weighted;
      if (!moved(measure->discount_rate, fresh.discount_rate)) fresh.discount_rate = measure->discount_rate;
    }
    if (!measure || !(*measure == fresh)) measure = std::make_shared<const Measure>(std::move(fresh));
    state_ = {n_points, 0, state_.n_refreshes + 1};
  }

 private:
  static constexpr double kTolerance = 0.1;  // relative change

  // Number of points between refreshes. Learned weights improve with every point, ranges hardly do.
  std::uint64_t wait() const {
    return rule_ == WeightRule::kLearned ? (state_.computed_from + 1) / 2 : state_.computed_from;
  }

  Measure compute(BoxView data, const Learned& learned) const {
    std::vector<double> weights = rule_ == WeightRule::kFixed ? given_ : std::vector<double>(n_features_, 1.0);
    if (rule_ == WeightRule::kRange) weights = weights_of(weights, data);  // every share is 1
    if (rule_ == WeightRule::kLearned) weights = weights_of(learned.shares, data);
    double total = 0.0;
    for (std::size_t d = 0; d < n_features_; ++d) total += weights[d] * length(data.lower[d], data.upper[d]);
    if (rule_ == WeightRule::kUnit || !(total > 0.0)) total = static_cast<double>(n_features_);
    return {std::move(weights), std::min(learned.discount * total, kLargestDiscountRate), learned.leaf_discount};
  }

  static bool moved(double from, double to) { return std::abs(to - from) > kTolerance * from; }

  bool differs(const Measure& old, const Measure& fresh, BoxView data) const {
    if (rule_ == WeightRule::kLearned) {  // noisy: compare the share of cuts that would change
      double change = 0.0, total = 0.0;
      for (std::size_t d = 0; d < n_features_; ++d) {
        const double range = length(data.lower[d], data.upper[d]);
        if (old.weights[d] == 0.0 && fresh.weights[d] > 0.0) return true;  // the feature was constant
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

}  // namespace onlineforest::mondrian
