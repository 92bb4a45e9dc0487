// The changes of points when arrivals leave and come: some points are new, some leave, some count more or less often.
// Must not know trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/stop.hpp"
#include "base/types.hpp"
#include "mondrian/points/arrivals.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/points/slot_index.hpp"
#include "samples/moves.hpp"

namespace onlineforest::mondrian {

// Samples in the order in which they arrive.
struct Samples {
  std::span<const float> rows;
  std::span<const Label> labels;

  [[nodiscard]] std::size_t size() const { return labels.size(); }
  [[nodiscard]] std::span<const float> row(std::size_t i, std::size_t width) const {
    return rows.subspan(i * width, width);
  }
};

class PointChanges {
 public:
  // Finds the changes when the stored arrivals `arrivals_leaving` leave, and the samples `coming` arrive.
  PointChanges(std::vector<Slot> arrivals_leaving, const Samples& coming, const Arrivals& arrivals,
               const PointStore& points, StopProbe stop)
      : coming_(coming), arrivals_leaving_(std::move(arrivals_leaving)) {
    std::ranges::sort(arrivals_leaving_, std::greater());
    arrival_moves_ = moves_after(arrivals_leaving_, arrivals.size());
    std::vector<Recounted> changes;
    for (const Slot arrival : arrivals_leaving_) changes.push_back({arrivals.point(arrival), -1});
    find_coming(points, changes, stop);
    find_changes(changes, points);
    const auto n_left = static_cast<Slot>(points.size() - leaving_.size());
    for (Slot& slot : points_coming_) {
      slot = slot < 0 ? n_left + ~slot : moved(slot, moves_);
    }
  }

  // The new points, and how often each of them counts; no counts if each counts once.
  [[nodiscard]] Samples fresh() const { return are_alone() ? coming_ : Samples{rows_, labels_}; }
  [[nodiscard]] std::span<const std::int32_t> counts() const {
    return are_alone() ? std::span<const std::int32_t>() : counts_;
  }
  // The slots of points that leave, in decreasing order, and the moves that close the gaps.
  [[nodiscard]] std::span<const Slot> leaving() const { return leaving_; }
  [[nodiscard]] std::span<const Move> moves() const { return moves_; }
  // Points that stay and change their counts, with their slots after the moves.
  [[nodiscard]] std::span<const Recounted> recounted() const { return recounted_; }

  // Whether a new point, or one that stays, may have another count than 1.
  [[nodiscard]] bool needs_counts() const { return !are_alone() || !recounted_.empty(); }
  // Whether each sample that comes is a new point.
  [[nodiscard]] bool are_alone() const { return fresh_.size() == coming_.size(); }

  [[nodiscard]] Arrivals::Change of_arrivals() const {
    return {arrivals_leaving_, arrival_moves_, moves_, points_coming_};
  }

 private:
  // Finds the point of each sample. New points have the numbers ~0, ~1, ... until their slots are known.
  void find_coming(const PointStore& points, std::vector<Recounted>& changes, StopProbe& stop) {
    const std::size_t n = coming_.size(), width = points.n_features();
    SlotIndex index;
    points_coming_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::span<const float> row = coming_.row(i, width);
      const Label label = coming_.labels[i];
      stop.tick(4 * width);
      const std::uint64_t hash = PointStore::hash_of(row, label);
      if (const Slot slot = points.find(row, label, hash); slot != kNoSlot) {
        points_coming_.push_back(slot);
        changes.push_back({slot, 1});
        continue;
      }
      Slot number = index.find(hash, [&](Slot k) { return is_fresh(k, row, label); });
      if (number == kNoSlot) {
        number = static_cast<Slot>(fresh_.size());
        index.push(hash);
        fresh_.push_back(i);
        counts_.push_back(0);
      }
      ++counts_[static_cast<std::size_t>(number)];
      points_coming_.push_back(~number);
    }
    if (are_alone()) return;
    for (const std::size_t i : fresh_) {
      const std::span<const float> row = coming_.row(i, width);
      rows_.insert(rows_.end(), row.begin(), row.end());
      labels_.push_back(coming_.labels[i]);
    }
  }

  [[nodiscard]] bool is_fresh(Slot number, std::span<const float> row, Label label) const {
    const std::size_t i = fresh_[static_cast<std::size_t>(number)];
    return coming_.labels[i] == label && std::ranges::equal(row, coming_.row(i, row.size()));
  }

  // Sums up the changes of counts, point by point.
  void find_changes(std::vector<Recounted>& changes, const PointStore& points) {
    std::ranges::sort(changes, {}, &Recounted::slot);
    for (std::size_t i = 0; i < changes.size();) {
      Recounted change{changes[i].slot, 0};
      for (; i < changes.size() && changes[i].slot == change.slot; ++i) change.by += changes[i].by;
      if (points.count(change.slot) + change.by == 0) {
        leaving_.push_back(change.slot);
      } else if (change.by != 0) {
        recounted_.push_back(change);
      }
    }
    std::ranges::reverse(leaving_);
    moves_ = moves_after(leaving_, points.size());
    for (Recounted& change : recounted_) change.slot = moved(change.slot, moves_);
  }

  Samples coming_;
  std::vector<Slot> arrivals_leaving_;
  std::vector<Move> arrival_moves_;
  std::vector<Slot> points_coming_;   // the point of each coming sample
  std::vector<std::size_t> fresh_;    // indices of the coming samples that are new points
  std::vector<std::int32_t> counts_;  // counts of the new points
  std::vector<float> rows_;           // rows of the new points; empty if all coming samples are new points
  std::vector<Label> labels_;         // labels of the new points, likewise
  std::vector<Slot> leaving_;
  std::vector<Move> moves_;
  std::vector<Recounted> recounted_;
};

}  // namespace onlineforest::mondrian
