// Boxes of the nodes of a tree: stored ones, those of few points, growing, and shrinking. Must not know cuts or
// targets.
//
// A node of more than kFewPoints points stores its box. The box of any other node is computed from its points.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mondrian/points/box.hpp"
#include "mondrian/tree/node_store.hpp"
#include "mondrian/tree/tree.hpp"

namespace onlineforest::mondrian {

template <TreeTarget Target>
inline BoxView Tree<Target>::box(NodeIndex j, const PointStore& points, BoxBuffer& buffer) const {
  if (nodes_.has_box(j)) return nodes_.stored_box(j);
  return small_block(j, points, buffer).box;
}

// The box of a node, and its number of points if that is small.
template <TreeTarget Target>
inline auto Tree<Target>::known_block(NodeIndex j, const PointStore& points, BoxBuffer& buffer) const -> SmallBlock {
  if (nodes_.has_box(j)) return {nodes_.stored_box(j), kFewPoints + 1};
  return small_block(j, points, buffer);
}

// The box of a node of at most kFewPoints points.
template <TreeTarget Target>
inline auto Tree<Target>::small_block(NodeIndex j, const PointStore& points, BoxBuffer& buffer) const -> SmallBlock {
  std::array<const float*, kFewPoints> rows;
  std::size_t n = 0;
  for_each_of_few(j, [&](Slot slot) { rows[n++] = points.row(slot); });
  if (n == 1) return {{rows[0], rows[0]}, 1};
  buffer.resize(n_features());
  set_hull(buffer.lower(), buffer.upper(), n, [&rows](std::size_t i) { return rows[i]; }, n_features());
  return {buffer.view(), static_cast<std::int32_t>(n)};
}

// Calls f(slot) for each point of a node of at most kFewPoints points, from left to right.
template <TreeTarget Target>
template <class F>
inline void Tree<Target>::for_each_of_few(NodeIndex j, F f) const {
  std::array<NodeIndex, kFewPoints> pending;  // large enough: each pending node holds a point
  std::size_t n_pending = 0;
  for (;;) {
    const Node& node = nodes_[j];
    if (!node.is_leaf()) {
      pending[n_pending++] = node.right();
      j = node.left;
      continue;
    }
    for (Slot slot = node.first_point; slot != kNoSlot; slot = next_point(slot)) f(slot);
    if (n_pending == 0) return;
    j = pending[--n_pending];
  }
}

// Whether a node has at most kFewPoints points.
template <TreeTarget Target>
bool Tree<Target>::has_few_points(NodeIndex j) const {
  std::array<NodeIndex, kFewPoints + 1> pending;
  std::size_t n_pending = 0;
  for (std::int32_t n = 0;;) {
    const Node& node = nodes_[j];
    if (!node.is_leaf()) {
      if (n_pending == kFewPoints) return false;
      pending[n_pending++] = node.right();
      j = node.left;
      continue;
    }
    n += node.n_points;
    if (n + static_cast<std::int32_t>(n_pending) > kFewPoints) return false;
    if (n_pending == 0) return true;
    j = pending[--n_pending];
  }
}

// Grows a box to contain the points.
template <TreeTarget Target>
inline void Tree<Target>::include_points(float* lower, float* upper, const PointStore& points,
                                         std::span<const Slot> slots, const Workspace& work, StopProbe& stop) const {
  for (const Slot slot : slots) {
    include(lower, upper, points.box(slot), n_features());
    if (work.may_stop) stop.tick(n_features());
  }
}

// Sets the stored box of a leaf from its points. Calls tick() for each point but the first.
template <TreeTarget Target>
template <class Tick>
inline void Tree<Target>::set_leaf_box(NodeIndex j, const PointStore& points, Tick tick) {
  Slot slot = nodes_[j].first_point;
  start_box(nodes_.lower(j), nodes_.upper(j), points.box(slot), n_features());
  while ((slot = next_point(slot)) != kNoSlot) {
    include(nodes_.lower(j), nodes_.upper(j), points.box(slot), n_features());
    tick();
  }
}

// Sets the stored box of an internal node.
template <TreeTarget Target>
inline void Tree<Target>::set_box_from_children(NodeIndex j, const PointStore& points, Workspace& work) {
  start_box(nodes_.lower(j), nodes_.upper(j), box(nodes_[j].left, points, work.inner), n_features());
  include(nodes_.lower(j), nodes_.upper(j), box(nodes_[j].right(), points, work.inner), n_features());
}

// Stores the box `outer` of a node that now has `n_points`, unless they are few.
template <TreeTarget Target>
inline void Tree<Target>::grow_box(NodeIndex j, std::int32_t n_points, BoxView outer) {
  if (n_points <= kFewPoints) return;
  nodes_.add_box(j);
  start_box(nodes_.lower(j), nodes_.upper(j), outer, n_features());
}

// Grows the boxes of the nodes [0, end) of `work.path` to contain the row. From `first` on its separation rate is
// positive. Further up the row may still lie outside a box: in a feature of weight 0, or by so little that the rate
// rounds to 0.
template <TreeTarget Target>
inline void Tree<Target>::grow_boxes_by_one(std::size_t first, std::size_t end, const float* row,
                                            const PointStore& points, Workspace& work) {
  for (std::size_t i = end; i > 0; --i) {
    const NodeIndex j = work.path[i - 1];
    if (!nodes_.has_box(j)) {
      const SmallBlock block = small_block(j, points, work.inner);
      if (block.n_points < kFewPoints) continue;
      nodes_.add_box(j);
      start_box(nodes_.lower(j), nodes_.upper(j), block.box, n_features());
    } else if (i <= first && contains(nodes_.stored_box(j), row, n_features())) {
      return;
    }
    include(nodes_.lower(j), nodes_.upper(j), {row, row}, n_features());
  }
}

// Shrinks the box of a leaf that has lost a point of this row. Returns whether the leaf still stores a box; then
// `work.moved_bounds` has the bounds that moved.
template <TreeTarget Target>
bool Tree<Target>::shrink_leaf_box(NodeIndex leaf, const float* row, const PointStore& points, Workspace& work) {
  if (nodes_[leaf].n_points <= kFewPoints) {
    nodes_.release_box(leaf);
    return false;
  }
  std::vector<Bound>& bounds = work.moved_bounds;
  find_touched(nodes_.stored_box(leaf), row, n_features(), bounds);
  // Another point touches most of these bounds too, often one of the first in the list.
  for (Slot slot = nodes_[leaf].first_point; slot != kNoSlot && !bounds.empty(); slot = next_point(slot)) {
    std::erase_if(bounds, [&](Bound bound) { return points.row(slot)[bound.dimension] == row[bound.dimension]; });
  }
  float *lower = nodes_.lower(leaf), *upper = nodes_.upper(leaf);
  for (const auto& [d, is_upper] : bounds) (is_upper ? upper : lower)[d] = points.row(nodes_[leaf].first_point)[d];
  if (bounds.empty()) return true;
  for (Slot slot = nodes_[leaf].first_point; slot != kNoSlot; slot = next_point(slot)) {
    for (const auto& [d, is_upper] : bounds) {
      const float x = points.row(slot)[d];
      if (is_upper) {
        upper[d] = std::max(upper[d], x);
      } else {
        lower[d] = std::min(lower[d], x);
      }
    }
  }
  return true;
}

// Shrinks the box of an internal node to the boxes of its children. Sets `work.moved_bounds` to the bounds that moved.
template <TreeTarget Target>
void Tree<Target>::shrink_whole_box(NodeIndex j, const PointStore& points, Workspace& work) {
  work.moved_bounds.clear();
  const BoxView left = box(nodes_[j].left, points, work.inner), right = box(nodes_[j].right(), points, work.outer);
  shrink_to_hull(nodes_.lower(j), nodes_.upper(j), left, right, n_features(), work.moved_bounds);
}

// Shrinks the box of an internal node in `work.moved_bounds`, the bounds that moved in one of its children. Only bounds
// that the row touched can move. Erases from `work.moved_bounds` those that did not move here.
template <TreeTarget Target>
void Tree<Target>::shrink_box(NodeIndex j, const float* row, const PointStore& points, Workspace& work) {
  constexpr std::size_t one_in = 8;  // if more than 1 / one_in of all bounds moved, a pass over the whole box is faster
  if (work.moved_bounds.size() * one_in > 2 * n_features()) {
    shrink_whole_box(j, points, work);
    return;
  }
  float *lower = nodes_.lower(j), *upper = nodes_.upper(j);
  const BoxView left = box(nodes_[j].left, points, work.inner), right = box(nodes_[j].right(), points, work.outer);
  std::erase_if(work.moved_bounds, [&](Bound bound) {
    const std::size_t d = bound.dimension;
    float& old = bound.is_upper ? upper[d] : lower[d];
    if (old != row[d]) return true;
    const float now =
        bound.is_upper ? std::max(left.upper[d], right.upper[d]) : std::min(left.lower[d], right.lower[d]);
    return std::exchange(old, now) == now;
  });
}

}  // namespace onlineforest::mondrian
