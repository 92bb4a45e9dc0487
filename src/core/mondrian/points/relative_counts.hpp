// How often each point counts, relative to the mean over all points. Must not know the points.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "mondrian/points/point_store.hpp"

namespace onlineforest::mondrian {

// Estimates that use these stay the same if every sample arrives twice. If each point counts once, each is 1.
class RelativeCounts {
 public:
  RelativeCounts() = default;
  // The result is a view of `buffer`.
  RelativeCounts(const PointStore& points, std::vector<double>& buffer) {
    buffer.clear();
    if (points.all_count_once()) return;
    double sum = 0.0;
    for (std::size_t i = 0; i < points.size(); ++i) sum += points.count(static_cast<Slot>(i));
    const double mean = sum / static_cast<double>(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) buffer.push_back(points.count(static_cast<Slot>(i)) / mean);
    counts_ = buffer;
  }

  [[nodiscard]] double operator[](Slot slot) const {
    return counts_.empty() ? 1.0 : counts_[static_cast<std::size_t>(slot)];
  }

  // How many points of equal count would say as much as these: (sum of counts)^2 / sum of their squares.
  [[nodiscard]] double effective_size(std::span<const Slot> slots) const {
    if (counts_.empty()) return static_cast<double>(slots.size());
    double sum = 0.0, squares = 0.0;
    for (const Slot slot : slots) {
      const double count = (*this)[slot];
      sum += count;
      squares += count * count;
    }
    return sum * sum / squares;
  }

 private:
  std::span<const double> counts_;  // per slot; none if each is 1
};

}  // namespace onlineforest::mondrian
