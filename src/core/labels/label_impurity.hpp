// The Gini impurity of labels, for the estimate of relevance. Knows nothing of trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "labels/label_sets.hpp"

namespace onlineforest {

// The Gini impurity of labels, times the number of points: n G = n - sum_k c_k^2 / n.
class LabelImpurity {
 public:
  // The label of each slot.
  LabelImpurity(std::span<const Label> labels, std::int32_t n_classes)
      : labels_(labels),
        counts_(static_cast<std::size_t>(n_classes), 0),
        left_(static_cast<std::size_t>(n_classes), 0) {}

  // Starts with a set of points; returns its impurity.
  double start(std::span<const Slot> slots) {
    squares_ = 0;
    n_ = static_cast<double>(slots.size());
    for (const Slot slot : slots) squares_ += 2 * counts_[label(slot)]++ + 1;
    return n_ - static_cast<double>(squares_) / n_;
  }

  // Ends a set. Call it with the points of start().
  void finish(std::span<const Slot> slots) {
    for (const Slot slot : slots) counts_[label(slot)] = 0;
  }

  // The decrease of impurity by a cut. Neither side is empty.
  template <class IsLeft>
  double gain(std::span<const Slot> slots, IsLeft is_left) {
    std::int64_t n = 0, squares = 0, products = 0;
    for (const Slot slot : slots) {
      const std::size_t k = label(slot);
      const std::int64_t one = is_left(slot) ? 1 : 0;
      squares += one * (2 * left_[k] + 1);
      products += one * counts_[k];
      left_[k] += one;
      n += one;
    }
    for (const Slot slot : slots) left_[label(slot)] = 0;
    const double n_left = static_cast<double>(n);
    const double right = static_cast<double>(squares_ - 2 * products + squares);  // sum of (c_k - left_k)^2
    return static_cast<double>(squares) / n_left + right / (n_ - n_left) - static_cast<double>(squares_) / n_;
  }

 private:
  std::size_t label(Slot slot) const { return static_cast<std::size_t>(labels_[static_cast<std::size_t>(slot)]); }

  std::span<const Label> labels_;
  std::vector<std::int64_t> counts_, left_;
  std::int64_t squares_ = 0;
  double n_ = 0.0;
};

}  // namespace onlineforest
