// How a forest forgets: finding arrivals, and removing points or some of their counts from trees and store.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mondrian/forest/forest.hpp"
#include "mondrian/forest/point_changes.hpp"
#include "mondrian/tree/stages.hpp"

namespace onlineforest::mondrian {

namespace {

// If more than 1 / kFewForgotten of the remaining points leave, regrowing the trees is faster than forgetting.
constexpr std::size_t kFewForgotten = 4;

}  // namespace

void Forest::forget(std::span<const Serial> serials, const Call& call) {
  const auto pass = gate_.writing();
  std::vector<Slot> leaving = tenure_.slots_of(serials);
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    if (leaving[i] == kNoSlot) {
      throw std::invalid_argument("the point with serial " + std::to_string(serials[i]) + " is not stored");
    }
  }
  std::vector<Serial> sorted(serials.begin(), serials.end());
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw std::invalid_argument("the point with serial " + std::to_string(*twice) + " is given more than once");
  }
  bring_up_to_date(call);  // finishes what a stopped call left; slots stay
  forget_arrivals(std::move(leaving), call);
}

std::vector<std::size_t> Forest::forget(std::span<const float> rows, std::span<const Label> labels, const Call& call) {
  const auto pass = gate_.writing();
  require_label_per_row(rows, labels.size());
  bring_up_to_date(call);  // finishes what a stopped call left
  std::vector<Slot> leaving = find_arrivals({rows, labels}, call.probe());
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    if (leaving[i] == kNoSlot) missing.push_back(i);
  }
  if (missing.empty()) forget_arrivals(std::move(leaving), call);
  return missing;
}

void Forest::keep_latest(std::size_t n, const Call& call) {
  const auto pass = gate_.writing();
  bring_up_to_date(call);  // finishes what a stopped call left
  std::vector<Slot> leaving = tenure_.all_but_latest(n);
  if (leaving.empty()) return;
  tenure_.reset_turned_away();  // a window or reservoir fills up again from what stays
  forget_arrivals(std::move(leaving), call);
}

void Forest::forget_arrivals(std::vector<Slot> leaving, const Call& call) {
  if (leaving.empty()) return;
  const PointChanges changes(std::move(leaving), {}, arrivals_, points_, call.probe());
  if (changes.needs_counts()) points_.reserve_counts(0);
  std::exception_ptr failure;
  try {
    change_points(changes, call);
  } catch (...) {
    failure = std::current_exception();
  }
  points_.shrink();
  arrivals_.shrink();
  tenure_.shrink();
  schedule_.forget_down_to(points_.size());
  if (points_.size() == 0) {
    measure_.reset();
    schedule_.resume({});
    tenure_.reset_turned_away();
  }
  if (failure) std::rethrow_exception(failure);
  bring_up_to_date(call);  // regrows trees that were emptied
}

// Changes all but what is new: removes points that leave, and counts others anew, in the trees and in the store. If
// this is stopped, the change is made all the same before the exception leaves.
void Forest::change_points(const PointChanges& changes, const Call& call) {
  const Arrivals::Change of_arrivals = changes.of_arrivals();
  std::exception_ptr failure;
  try {
    remove_points(changes, call);
  } catch (...) {
    failure = std::current_exception();
  }
  arrivals_.change(of_arrivals);
  tenure_.remove(of_arrivals.leaving, of_arrivals.moves);
  try {
    recount_points(changes.recounted(), call);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
}

// A tree that cannot follow all changes is emptied.
void Forest::recount_points(std::span<const Recounted> changes, const Call& call) {
  if (changes.empty()) return;
  for (const auto& [slot, by] : changes) points_.set_count(slot, points_.count(slot) + by);
  std::vector<std::uint8_t> is_done;
  try {
    is_done.resize(trees_.size(), 0);
    call.parallel_for(trees_.size(), [&] {
      return [&](std::size_t i, StopProbe& stop) {
        if (!trees_[i].empty()) trees_[i].recount(changes, points_, stop);
        is_done[i] = 1;
      };
    });
  } catch (...) {
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      if (is_done.empty() || is_done[i] == 0) trees_[i].clear();
    }
    throw;
  }
}

// Removes points from the trees, then from the store. A tree that cannot forget them all is emptied. If this is
// stopped, the points are gone all the same before the exception leaves.
void Forest::remove_points(const PointChanges& changes, const Call& call) {
  const std::span<const Slot> slots = changes.leaving();
  const std::span<const Move> moves = changes.moves();
  if (slots.empty()) return;
  const std::size_t n_left = points_.size() - slots.size();
  std::exception_ptr failure;
  if (slots.size() <= n_left / kFewForgotten) {
    try {
      // A single point is looked up in several trees side by side, because one lookup waits for memory at every step.
      const std::size_t together = slots.size() == 1 ? kSideBySide : 1;
      call.parallel_for((trees_.size() + together - 1) / together, [&] {
        return [&, work = workspaces_.lend()](std::size_t group, StopProbe& stop) {
          const std::size_t begin = group * together, n = std::min(together, trees_.size() - begin);
          const std::span<LabelTree> trees = std::span(trees_).subspan(begin, n);
          for (int step = 0; together > 1 && step < LabelTree::kForgetSteps; ++step) {
            for (const LabelTree& tree : trees) tree.prefetch_to_forget(slots.front(), step, points_);
          }
          for (LabelTree& tree : trees) tree.forget(slots, moves, points_, *work, stop);
        };
      });
    } catch (...) {
      failure = std::current_exception();
    }
  }
  for (LabelTree& tree : trees_) {
    if (tree.n_points() != n_left) tree.clear();
  }
  points_.remove(slots, moves);
  if (failure) std::rethrow_exception(failure);
}

// One arrival for each sample, the oldest that is left; kNoSlot if there is none.
std::vector<Slot> Forest::find_arrivals(const Samples& samples, StopProbe stop) const {
  std::vector<Slot> found(samples.size(), kNoSlot);
  std::vector<std::uint8_t> is_asked(points_.size(), 0);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::span<const float> row = samples.row(i, options_.n_features);
    found[i] = points_.find(row, samples.labels[i], PointStore::hash_of(row, samples.labels[i]));
    if (found[i] != kNoSlot) is_asked[static_cast<std::size_t>(found[i])] = 1;
    stop.tick(options_.n_features);
  }
  std::unordered_map<Slot, std::vector<Slot>> arrivals;  // arrivals of the requested points, the oldest last
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const Slot arrival = static_cast<Slot>(i), point = arrivals_.point(arrival);
    if (is_asked[static_cast<std::size_t>(point)] != 0) arrivals[point].push_back(arrival);
  }
  for (auto& [point, list] : arrivals) {
    std::ranges::sort(list, std::greater(), [this](Slot i) { return tenure_.serials()[static_cast<std::size_t>(i)]; });
  }
  for (Slot& each : found) {
    if (each == kNoSlot) continue;
    std::vector<Slot>& list = arrivals[each];
    each = kNoSlot;
    if (list.empty()) continue;
    each = list.back();
    list.pop_back();
  }
  return found;
}

}  // namespace onlineforest::mondrian
