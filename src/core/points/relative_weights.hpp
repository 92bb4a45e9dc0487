// How often each point counts, in units of the mean over all points. Must not know the points.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "points/point_store.hpp"

namespace onlineforest {

// What is estimated with these does not depend on the unit of weights. Without weights, each is 1.
class RelativeWeights {
 public:
  RelativeWeights() = default;
  // The result is a view of `buffer`.
  template <class Value>
  RelativeWeights(const PointStore<Value>& points, std::vector<double>& buffer) {
    buffer.clear();
    if (points.are_unweighted()) return;
    double sum = 0.0;
    for (std::size_t i = 0; i < points.size(); ++i) sum += points.multiplicity(static_cast<Slot>(i));
    const double mean = sum / static_cast<double>(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) buffer.push_back(points.multiplicity(static_cast<Slot>(i)) / mean);
    weights_ = buffer;
  }

  [[nodiscard]] double operator[](Slot slot) const {
    return weights_.empty() ? 1.0 : weights_[static_cast<std::size_t>(slot)];
  }

  // How many points of equal weight would say as much as these: (sum of weights)^2 / sum of their squares.
  [[nodiscard]] double effective_size(std::span<const Slot> slots) const {
    if (weights_.empty()) return static_cast<double>(slots.size());
    double sum = 0.0, squares = 0.0;
    for (const Slot slot : slots) {
      const double weight = (*this)[slot];
      sum += weight;
      squares += weight * weight;
    }
    return sum * sum / squares;
  }

 private:
  std::span<const double> weights_;  // per slot; none if each is 1
};

}  // namespace onlineforest
