// The Gini impurity of labels, for the estimate of relevance. Knows nothing of trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/points/relative_counts.hpp"

namespace onlineforest::mondrian {

// The Gini impurity of labels, times the number of points: n G = n - sum_k c_k^2 / n. If each point counts once, all
// sums are whole numbers, without rounding.
class LabelImpurity {
 public:
  // The label of each slot, and how often it counts.
  LabelImpurity(std::span<const Label> labels, std::int32_t n_classes, RelativeCounts of_points = {})
      : labels_(labels),
        of_points_(of_points),
        counts_(static_cast<std::size_t>(n_classes), 0.0),
        left_(static_cast<std::size_t>(n_classes), 0.0) {}

  // Starts with a set of points; returns its impurity.
  double start(std::span<const Slot> slots) {
    squares_ = n_ = 0.0;
    for (const Slot slot : slots) {
      const double more = of_points_[slot];
      double& count = counts_[label(slot)];
      squares_ += more * (2.0 * count + more);
      count += more;
      n_ += more;
    }
    return n_ - squares_ / n_;
  }

  // Ends a set. Call it with the points of start().
  void finish(std::span<const Slot> slots) {
    for (const Slot slot : slots) counts_[label(slot)] = 0.0;
  }

  // The decrease of impurity by a cut. Neither side is empty.
  template <class IsLeft>
  double gain(std::span<const Slot> slots, IsLeft is_left) {
    double n_left = 0.0, squares = 0.0, products = 0.0;
    for (const Slot slot : slots) {
      const std::size_t k = label(slot);
      const double more = is_left(slot) ? of_points_[slot] : 0.0;
      squares += more * (2.0 * left_[k] + more);
      products += more * counts_[k];
      left_[k] += more;
      n_left += more;
    }
    for (const Slot slot : slots) left_[label(slot)] = 0.0;
    const double right = squares_ - 2.0 * products + squares;  // sum of (c_k - left_k)^2
    return squares / n_left + right / (n_ - n_left) - squares_ / n_;
  }

 private:
  std::size_t label(Slot slot) const { return static_cast<std::size_t>(labels_[static_cast<std::size_t>(slot)]); }

  std::span<const Label> labels_;
  RelativeCounts of_points_;
  std::vector<double> counts_, left_;
  double squares_ = 0.0, n_ = 0.0;
};

}  // namespace onlineforest::mondrian
