// The variance of numbers, for the estimate of relevance. Knows nothing of trees.
#pragma once

#include <cstddef>
#include <span>

#include "base/types.hpp"
#include "points/relative_weights.hpp"

namespace onlineforest {

// The variance of numbers, times the weight of the points: sum y^2 - (sum y)^2 / n.
class VarianceImpurity {
 public:
  // The value of each slot, roughly standardised, and how often it counts.
  explicit VarianceImpurity(std::span<const double> values, RelativeWeights weights = {})
      : values_(values), weights_(weights) {}

  double start(std::span<const Slot> slots) {
    n_ = mean_ = 0.0;
    for (const Slot slot : slots) {
      n_ += weights_[slot];
      mean_ += weights_[slot] * value(slot);
    }
    mean_ /= n_;
    double squares = 0.0;
    for (const Slot slot : slots) squares += weights_[slot] * ((value(slot) - mean_) * (value(slot) - mean_));
    return squares;
  }

  void finish(std::span<const Slot>) {}

  template <class IsLeft>
  double gain(std::span<const Slot> slots, IsLeft is_left) {
    double n = 0.0, sum = 0.0;
    for (const Slot slot : slots) {
      const double weight = is_left(slot) ? weights_[slot] : 0.0;
      n += weight;
      sum += weight * (value(slot) - mean_);
    }
    return sum * sum / n + sum * sum / (n_ - n);  // deviations sum to 0, so the right sum is -sum
  }

 private:
  double value(Slot slot) const { return values_[static_cast<std::size_t>(slot)]; }

  std::span<const double> values_;
  RelativeWeights weights_;
  double n_ = 0.0, mean_ = 0.0;
};

}  // namespace onlineforest
