// The arrivals that a forest keeps: which point each of them counts for. Must not know the points.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "samples/moves.hpp"

namespace onlineforest::mondrian {

// Equal samples count for one point. While there are none, arrival i counts for point i, which takes no memory.
class Arrivals {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Slot point(Slot arrival) const {
    return are_alone_ ? arrival : points_[static_cast<std::size_t>(arrival)];
  }

  struct Change {
    std::span<const Slot> leaving;      // arrivals that leave, in decreasing order
    std::span<const Move> moves;        // moves of the remaining arrivals, which close the gaps
    std::span<const Move> point_moves;  // moves of the remaining points
    std::span<const Slot> coming;       // the point of each new arrival, by its slot after the moves
  };

  // Makes room for n_more arrivals, so that change() cannot fail. `are_alone`: each new arrival is a point of its own.
  void reserve(std::size_t n_more, bool are_alone) {
    if (are_alone && are_alone_) return;
    const std::size_t n = size_ + n_more;
    if (n > points_.capacity()) points_.reserve(std::max(n, size_ + size_ / 4));
    if (!are_alone_) return;
    points_.resize(size_);
    std::iota(points_.begin(), points_.end(), Slot{0});
    are_alone_ = false;
  }

  void change(const Change& by) {
    size_ += by.coming.size();
    size_ -= by.leaving.size();
    if (are_alone_) return;
    for (const Move& move : by.moves) {
      points_[static_cast<std::size_t>(move.to)] = points_[static_cast<std::size_t>(move.from)];
    }
    points_.resize(points_.size() - by.leaving.size());
    if (by.point_moves.size() == 1) {
      std::ranges::replace(points_, by.point_moves.front().from, by.point_moves.front().to);
    } else if (!by.point_moves.empty()) {
      for (Slot& point : points_) point = moved(point, by.point_moves);
    }
    points_.insert(points_.end(), by.coming.begin(), by.coming.end());
  }

  // Removes the last n arrivals, whose points were not stored.
  void drop_last(std::size_t n) {
    size_ -= n;
    if (!are_alone_) points_.resize(size_);
  }

  // Releases memory if most of it is unused.
  void shrink() {
    if (size_ == 0) {
      *this = Arrivals();
    } else if (size_ < points_.capacity() / 4) {
      points_.shrink_to_fit();
    }
  }

  // The point of each arrival; empty if arrival i counts for point i. reserve() and change() restore it.
  [[nodiscard]] std::vector<Slot> points() const {
    bool are_in_order = true;
    for (std::size_t i = 0; i < points_.size(); ++i) are_in_order = are_in_order && points_[i] == static_cast<Slot>(i);
    return are_in_order ? std::vector<Slot>() : points_;
  }

  [[nodiscard]] std::size_t nbytes() const { return points_.capacity() * sizeof(Slot); }

 private:
  std::size_t size_ = 0;
  bool are_alone_ = true;     // arrival i counts for point i
  std::vector<Slot> points_;  // per arrival; empty if they are alone
};

}  // namespace onlineforest::mondrian
