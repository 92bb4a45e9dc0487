// How a forest forgets: finding points, removing them from trees and store. A stage of Forest.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "forest/forest.hpp"

namespace onlineforest {

namespace detail {

// If more than one in so many of the remaining points leave, regrowing the trees is faster than forgetting.
inline constexpr std::size_t kFewForgotten = 4;

// Stands for a missing value when rows are compared; no known value equals it.
inline constexpr float kMissing = std::numeric_limits<float>::infinity();

inline std::vector<float> with_infinity_for_nan(std::span<const float> rows) {
  std::vector<float> result(rows.begin(), rows.end());
  std::ranges::replace_if(result, [](float x) { return std::isnan(x); }, kMissing);
  return result;
}

}  // namespace detail

template <class Target, class Options>
struct Forest<Target, Options>::Leaving {
  Leaving(std::vector<Slot> leaving, std::size_t n_points) : slots(std::move(leaving)) {
    std::ranges::sort(slots, std::greater());
    moves = moves_after(slots, n_points);
  }

  std::vector<Slot> slots;
  std::vector<Move> moves;
};

template <class Target, class Options>
void Forest<Target, Options>::forget(std::span<const Serial> serials, const Call& call) {
  const auto pass = gate_.writing();
  std::vector<Slot> slots = tenure_.slots_of(serials);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoSlot) {
      throw std::invalid_argument("the point with serial " + std::to_string(serials[i]) + " is not stored");
    }
  }
  std::vector<Serial> sorted(serials.begin(), serials.end());
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw std::invalid_argument("the point with serial " + std::to_string(*twice) + " is given more than once");
  }
  bring_up_to_date(call);  // finishes what a stopped call left; slots stay
  forget_slots(std::move(slots), call);
}

template <class Target, class Options>
std::vector<std::size_t> Forest<Target, Options>::forget(std::span<const float> rows, std::span<const Value> values,
                                                         const Call& call) {
  const auto pass = gate_.writing();
  require_value_per_row(rows, values.size());
  bring_up_to_date(call);  // finishes what a stopped call left
  std::vector<Slot> slots = find_slots(rows, values, call.probe());
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoSlot) missing.push_back(i);
  }
  if (missing.empty()) forget_slots(std::move(slots), call);
  return missing;
}

template <class Target, class Options>
void Forest<Target, Options>::keep_latest(std::size_t n, const Call& call) {
  const auto pass = gate_.writing();
  bring_up_to_date(call);  // finishes what a stopped call left
  std::vector<Slot> slots = tenure_.all_but_latest(n);
  if (slots.empty()) return;
  tenure_.reset_turned_away();  // a window or reservoir fills up again from the points that stay
  forget_slots(std::move(slots), call);
}

template <class Target, class Options>
void Forest<Target, Options>::forget_slots(std::vector<Slot> slots, const Call& call) {
  if (slots.empty()) return;
  const Leaving leaving(std::move(slots), points_.size());
  std::exception_ptr failure;
  try {
    remove_points(leaving, call);
  } catch (...) {
    failure = std::current_exception();
  }
  points_.shrink();
  tenure_.shrink();
  schedule_.forget_down_to(points_.size());
  if (points_.size() == 0) {
    measure_.reset();
    schedule_.resume({});
    tenure_.reset_turned_away();
    on_emptied();
  }
  if (failure) std::rethrow_exception(failure);
  bring_up_to_date(call);  // regrows trees that were emptied
}

// Removes points from the trees, then from the store. A tree that cannot forget them all is emptied. If this is
// stopped, the points are gone all the same before the exception leaves.
template <class Target, class Options>
void Forest<Target, Options>::remove_points(const Leaving& leaving, const Call& call) {
  // No structured binding: lambdas cannot capture one with Clang before 16.
  const std::vector<Slot>& slots = leaving.slots;
  const std::vector<Move>& moves = leaving.moves;
  if (slots.empty()) return;
  const std::size_t n_left = points_.size() - slots.size();
  std::exception_ptr failure;
  if (slots.size() <= n_left / detail::kFewForgotten) {
    try {
      // A single point is looked up in several trees side by side, because one lookup waits for memory at every step.
      const std::size_t together = slots.size() == 1 ? kSideBySide : 1;
      call.parallel_for((trees_.size() + together - 1) / together, [&] {
        return [&, work = workspaces_.lend()](std::size_t group, StopProbe& stop) {
          const std::size_t begin = group * together, n = std::min(together, trees_.size() - begin);
          const std::span<TargetTree> trees = std::span(trees_).subspan(begin, n);
          for (int step = 0; together > 1 && step < TargetTree::kForgetSteps; ++step) {
            for (const TargetTree& tree : trees) tree.prefetch_to_forget(slots.front(), step, points_);
          }
          for (TargetTree& tree : trees) tree.forget(slots, moves, points_, *work, stop);
        };
      });
    } catch (...) {
      failure = std::current_exception();
    }
  }
  for (TargetTree& tree : trees_) {
    if (tree.n_points() != n_left) tree.clear();
  }
  points_.remove(slots, moves);
  tenure_.remove(slots, moves);
  if (failure) std::rethrow_exception(failure);
}

// The slot of one point for each row and value, kNoSlot if there is none; no slot twice. All trees are up to date.
// Points are looked for in their leaf of the first tree; a row with missing values is compared with all points, because
// its leaf depends on what was filled in.
template <class Target, class Options>
std::vector<Slot> Forest<Target, Options>::find_slots(std::span<const float> rows, std::span<const Value> values,
                                                      StopProbe stop) const {
  struct Wanted {
    NodeIndex leaf;  // kNoNode if values of the row are missing
    Value value;
    std::span<const float> row;
    std::size_t index;
  };
  const auto is_before = [](const Wanted& a, const Wanted& b) {
    if (a.leaf != b.leaf) return a.leaf < b.leaf;
    if (a.value != b.value) return a.value < b.value;
    return std::ranges::lexicographical_compare(a.row, b.row);
  };
  const std::size_t n = values.size(), width = options_.n_features;
  std::vector<Slot> slots(n, kNoSlot);
  if (points_.size() == 0) return slots;
  const TargetTree& tree = trees_.front();
  std::vector<Wanted> wanted;
  const std::vector<float> comparable = detail::with_infinity_for_nan(rows);
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = std::span(comparable).subspan(i * width, width);
    const bool is_whole = std::ranges::count(row, detail::kMissing) == 0;
    wanted.push_back({is_whole ? find_leaf(tree.nodes(), row.data()) : kNoNode, values[i], row, i});
    stop.tick(kUsualDepth);
  }
  std::ranges::stable_sort(wanted, is_before);
  // Each leaf is searched once. Matches are sorted by the first entry of `wanted` that they match, then by age.
  struct Found {
    std::size_t first;
    Serial serial;
    Slot slot;

    auto operator<=>(const Found&) const = default;
  };
  std::vector<Found> found;
  std::vector<float> stored(width);
  for (std::size_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && wanted[end].leaf == wanted[begin].leaf;) ++end;
    const std::span<const Wanted> here = std::span(wanted).subspan(begin, end - begin);
    const NodeIndex leaf = here.front().leaf;
    const auto compare = [&](Slot slot) {
      for (std::size_t d = 0; d < width; ++d) {
        stored[d] = points_.is_missing(slot, d) ? detail::kMissing : points_.row(slot)[d];
      }
      const Wanted point{leaf, points_.value(slot), stored, 0};
      const auto first = std::ranges::lower_bound(here, point, is_before);
      if (first != here.end() && !is_before(point, *first)) {
        found.push_back({begin + static_cast<std::size_t>(first - here.begin()),
                         tenure_.serials()[static_cast<std::size_t>(slot)], slot});
      }
      stop.tick(width);
    };
    if (leaf == kNoNode) {
      for (std::size_t i = 0; i < points_.size(); ++i) compare(static_cast<Slot>(i));
    } else {
      for (Slot slot = tree.nodes()[leaf].first_point; slot != kNoSlot; slot = tree.next_point(slot)) compare(slot);
    }
  }
  std::ranges::sort(found);
  for (std::size_t i = 0, k = 0; i < found.size(); ++i) {
    const std::size_t first = found[i].first;
    k = i > 0 && found[i - 1].first == first ? k + 1 : first;
    if (k < n && !is_before(wanted[first], wanted[k])) slots[wanted[k].index] = found[i].slot;
  }
  return slots;
}

}  // namespace onlineforest
