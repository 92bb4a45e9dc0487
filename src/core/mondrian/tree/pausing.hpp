// The pausing rule: which blocks stay uncut for now. Must not know what a target keeps of the labels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/tree/node_store.hpp"

namespace onlineforest::mondrian {

// A block pauses if all its labels are equal, or if it has fewer than min_samples_split points. The rule depends only
// on the set of points, and each subset of a block that pauses pauses too. So pausing only postpones draws. Differs
// from the paper: there only equal labels pause.
//
// A target derives from this and offers
//   is_mixed(leaf)            whether the leaf holds different labels,
//   holds_only(leaf, label)   whether all labels of the leaf equal `label`.
template <class Target>
class PausingRule {
 public:
  explicit PausingRule(std::int32_t min_samples_split) : min_samples_split_(min_samples_split) {}

  [[nodiscard]] std::int32_t min_samples_split() const { return min_samples_split_; }

  [[nodiscard]] bool is_small(std::size_t n_points) const {
    return n_points < static_cast<std::size_t>(min_samples_split_);
  }

  // Whether a block of these points may pause.
  [[nodiscard]] bool may_pause(const PointStore& points, std::span<const Slot> slots) const {
    return is_small(slots.size()) || all_equal(points, slots, points.label(slots.front()));
  }

  // Whether a leaf of `n_points` is paused.
  [[nodiscard]] bool is_paused(NodeIndex leaf, std::int32_t n_points) const {
    return is_small(static_cast<std::size_t>(n_points)) || !target().is_mixed(leaf);
  }

  // Whether a paused leaf may stay paused when it receives the points `more`.
  [[nodiscard]] bool stays_paused(NodeIndex leaf, const Node& node, const PointStore& points,
                                  std::span<const Slot> more) const {
    if (is_small(static_cast<std::size_t>(node.n_points) + more.size())) return true;
    const Label label = points.label(more.front());
    return target().holds_only(leaf, label) && all_equal(points, more, label);
  }

  // Whether the children of node j are leaves whose points together may pause. Subsets of a block that pauses pause, so
  // joining leaves pair by pair finds every block that may pause.
  [[nodiscard]] bool may_join(const NodeStore& nodes, NodeIndex j, const PointStore& points) const {
    const Node &left = nodes[nodes[j].left], &right = nodes[nodes[j].right()];
    if (!left.is_leaf() || !right.is_leaf()) return false;
    if (is_small(static_cast<std::size_t>(left.n_points) + static_cast<std::size_t>(right.n_points))) return true;
    return !target().is_mixed(nodes[j].left) && !target().is_mixed(nodes[j].right()) &&
           points.label(left.first_point) == points.label(right.first_point);
  }

 private:
  static bool all_equal(const PointStore& points, std::span<const Slot> slots, Label label) {
    return std::ranges::all_of(slots, [&](Slot slot) { return points.label(slot) == label; });
  }

  const Target& target() const { return static_cast<const Target&>(*this); }

  std::int32_t min_samples_split_;
};

}  // namespace onlineforest::mondrian
