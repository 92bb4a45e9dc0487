// What an exchange of arrivals changes in the store of points: some are new, some leave, some count more or less often.
// Must not know trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/stop.hpp"
#include "base/types.hpp"
#include "points/arrivals.hpp"
#include "points/moves.hpp"
#include "points/point_store.hpp"
#include "points/slot_index.hpp"
#include "points/slot_weights.hpp"
#include "points/weight.hpp"

namespace onlineforest {

// Samples in the order in which they arrive. Rows have NaN for missing values.
template <class Value>
struct Samples {
  std::span<const float> rows;
  std::span<const Value> values;
  std::span<const Weight> weights = {};  // none if each counts once

  [[nodiscard]] std::size_t size() const { return values.size(); }
  [[nodiscard]] std::span<const float> row(std::size_t i, std::size_t width) const {
    return rows.subspan(i * width, width);
  }
  [[nodiscard]] Weight weight(std::size_t i) const { return weights.empty() ? kOne : weights[i]; }
  [[nodiscard]] Weight total_weight() const {
    if (weights.empty()) return static_cast<Weight>(size()) * kOne;
    return std::accumulate(weights.begin(), weights.end(), Weight{0});
  }
};

template <class Value>
class Exchange {
 public:
  // Of arrivals that are stored and leave, and of samples that come.
  Exchange(std::vector<Slot> arrivals_leaving, const Samples<Value>& coming, const Arrivals& arrivals,
           const PointStore<Value>& points, StopProbe stop)
      : coming_(coming), arrivals_leaving_(std::move(arrivals_leaving)) {
    std::ranges::sort(arrivals_leaving_, std::greater());
    arrival_moves_ = moves_after(arrivals_leaving_, arrivals.size());
    std::vector<Reweighed> changes;
    for (const Slot arrival : arrivals_leaving_) {
      changes.push_back({arrivals.point(arrival), -arrivals.weight(arrival)});
    }
    find_coming(points, changes, stop);
    find_changes(changes, points);
    const auto n_left = static_cast<Slot>(points.size() - leaving_.size());
    for (Slot& slot : points_coming_) {
      slot = slot < 0 ? n_left + ~slot : moved(slot, moves_);
    }
  }

  // The new points.
  [[nodiscard]] Samples<Value> fresh() const {
    const auto weights = are_weighted_ ? std::span(weights_) : std::span<const Weight>();
    if (are_alone()) return {coming_.rows, coming_.values, weights};
    return {rows_, values_, weights};
  }
  // Points that leave, in decreasing order, and the moves that close their gaps.
  [[nodiscard]] std::span<const Slot> leaving() const { return leaving_; }
  [[nodiscard]] std::span<const Move> moves() const { return moves_; }
  // Points that stay with another weight, by their slots after the moves.
  [[nodiscard]] std::span<const Reweighed> reweighed() const { return reweighed_; }

  // Whether points come, or stay, that do not count once.
  [[nodiscard]] bool are_weighted() const { return are_weighted_ || !reweighed_.empty(); }
  // Whether each sample that comes is a new point.
  [[nodiscard]] bool are_alone() const { return fresh_.size() == coming_.values.size(); }

  [[nodiscard]] Arrivals::Exchange of_arrivals() const {
    return {arrivals_leaving_, arrival_moves_, moves_, points_coming_, coming_.weights};
  }

 private:
  // Finds the point of each sample. New ones are numbered, ~0, ~1, ..., as long as their slots are not known.
  void find_coming(const PointStore<Value>& points, std::vector<Reweighed>& changes, StopProbe& stop) {
    const std::size_t n = coming_.values.size(), width = points.n_features();
    SlotIndex index;
    points_coming_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::span<const float> row = coming_.row(i, width);
      const Value value = coming_.values[i];
      stop.tick(4 * width);
      const std::uint64_t hash = PointStore<Value>::hash_of(row, value);
      if (const Slot slot = points.find(row, value, hash); slot != kNoSlot) {
        points_coming_.push_back(slot);
        changes.push_back({slot, coming_.weight(i)});
        continue;
      }
      Slot number = index.find(hash, [&](Slot k) { return is_fresh(k, row, value); });
      if (number == kNoSlot) {
        number = static_cast<Slot>(fresh_.size());
        index.push(hash);
        fresh_.push_back(i);
        weights_.push_back(0);
      }
      weights_[static_cast<std::size_t>(number)] += coming_.weight(i);
      points_coming_.push_back(~number);
    }
    if (!are_alone()) {
      for (const std::size_t i : fresh_) {
        const std::span<const float> row = coming_.row(i, width);
        rows_.insert(rows_.end(), row.begin(), row.end());
        values_.push_back(coming_.values[i]);
      }
    }
    are_weighted_ = std::ranges::any_of(weights_, [](Weight weight) { return weight != kOne; });
  }

  [[nodiscard]] bool is_fresh(Slot number, std::span<const float> row, Value value) const {
    const std::size_t i = fresh_[static_cast<std::size_t>(number)];
    return coming_.values[i] == value && std::ranges::equal(row, coming_.row(i, row.size()), [](float a, float b) {
             return a == b || (std::isnan(a) && std::isnan(b));
           });
  }

  // Sums up the changes of weights, point by point.
  void find_changes(std::vector<Reweighed>& changes, const PointStore<Value>& points) {
    std::ranges::sort(changes, {}, &Reweighed::slot);
    for (std::size_t i = 0; i < changes.size();) {
      Reweighed change{changes[i].slot, 0};
      for (; i < changes.size() && changes[i].slot == change.slot; ++i) change.by += changes[i].by;
      if (points.weight(change.slot) + change.by == 0) {
        leaving_.push_back(change.slot);
      } else if (change.by != 0) {
        reweighed_.push_back(change);
      }
    }
    std::ranges::reverse(leaving_);
    moves_ = moves_after(leaving_, points.size());
    for (Reweighed& change : reweighed_) change.slot = moved(change.slot, moves_);
  }

  Samples<Value> coming_;
  std::vector<Slot> arrivals_leaving_;
  std::vector<Move> arrival_moves_;
  std::vector<Slot> points_coming_;  // of each sample that comes
  std::vector<std::size_t> fresh_;   // the samples that are new points
  std::vector<Weight> weights_;      // of the new points
  std::vector<float> rows_;          // of these, and their values; none if they are all samples that come
  std::vector<Value> values_;
  bool are_weighted_ = false;
  std::vector<Slot> leaving_;
  std::vector<Move> moves_;
  std::vector<Reweighed> reweighed_;
};

}  // namespace onlineforest
