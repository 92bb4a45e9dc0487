// The pausing rule: which blocks stay uncut for now. Must not know what a target keeps of its values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.hpp"
#include "points/point_store.hpp"
#include "tree/node_store.hpp"

namespace onlineforest {

// A block pauses if all its values are equal, or if it has fewer than min_samples_split points. The rule depends only
// on the set of points, and each subset of a block that pauses pauses too. So pausing only postpones draws. Differs
// from the paper: there only equal labels pause.
//
// A target derives from this and offers
//   is_mixed(leaf)                          whether the leaf holds different values,
//   holds_only(leaf, node, points, value)   whether all values of the leaf equal `value`.
template <class Target>
class PausingRule {
 public:
  explicit PausingRule(std::int32_t min_samples_split) : min_samples_split_(min_samples_split) {}

  [[nodiscard]] std::int32_t min_samples_split() const { return min_samples_split_; }

  [[nodiscard]] bool is_small(std::size_t n_points) const {
    return n_points < static_cast<std::size_t>(min_samples_split_);
  }

  // Whether a block of these points may pause.
  template <class Value>
  [[nodiscard]] bool may_pause(const PointStore<Value>& points, std::span<const Slot> slots) const {
    return is_small(slots.size()) || all_equal(points, slots, points.value(slots.front()));
  }

  // Whether a leaf of `n_points` is paused.
  [[nodiscard]] bool is_paused(NodeIndex leaf, std::int32_t n_points) const {
    return is_small(static_cast<std::size_t>(n_points)) || !target().is_mixed(leaf);
  }

  // Whether a paused leaf may stay paused when it receives the points `more`.
  template <class Value>
  [[nodiscard]] bool stays_paused(NodeIndex leaf, const Node& node, const PointStore<Value>& points,
                                  std::span<const Slot> more) const {
    if (is_small(static_cast<std::size_t>(node.n_points) + more.size())) return true;
    const Value value = points.value(more.front());
    return target().holds_only(leaf, node, points, value) && all_equal(points, more, value);
  }

  // Whether the children of node j are leaves whose points together may pause. Subsets of a block that pauses pause, so
  // joining leaves pair by pair finds every block that may pause.
  template <class Value>
  [[nodiscard]] bool may_join(const NodeStore& nodes, NodeIndex j, const PointStore<Value>& points) const {
    const Node &left = nodes[nodes[j].left], &right = nodes[nodes[j].right()];
    if (!left.is_leaf() || !right.is_leaf()) return false;
    if (is_small(static_cast<std::size_t>(left.n_points) + static_cast<std::size_t>(right.n_points))) return true;
    return !target().is_mixed(nodes[j].left) && !target().is_mixed(nodes[j].right()) &&
           points.value(left.first_point) == points.value(right.first_point);
  }

 private:
  template <class Value>
  static bool all_equal(const PointStore<Value>& points, std::span<const Slot> slots, const Value& value) {
    return std::ranges::all_of(slots, [&](Slot slot) { return points.value(slot) == value; });
  }

  const Target& target() const { return static_cast<const Target&>(*this); }

  std::int32_t min_samples_split_;
};

}  // namespace onlineforest
