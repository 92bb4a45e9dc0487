// How a tree forgets points: the part of Tree that restricts it to fewer of them. Included by tree.hpp.
//
// Nodes and slots stay dense: the last two nodes take the place of two that are gone, and the store's last points that
// of points forgotten. The way goes from the leaf up, and only as far as something changes.
#pragma once

#include <utility>

#include "tree/tree.hpp"

namespace onlineforest {

template <class Target>
void Tree<Target>::forget(std::span<const Slot> slots, std::span<const Move> moves, const Points& points,
                          Workspace& work, StopProbe& stop) {
  work.may_stop = true;
  try {
    if (!links_.are_there()) links_.make(nodes_, next_);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      for (int step = 0; step < kForgetSteps; ++step) {
        const std::size_t ahead = i + 2 * static_cast<std::size_t>(kForgetSteps - step);
        if (ahead < slots.size()) prefetch_to_forget(slots[ahead], step, points);
      }
      forget_one(slots[i], points, work, stop);
      if (empty()) return;
      stop.tick(n_features() * kUsualDepth);
    }
    for (const Move& move : moves) relabel(move);
    next_.resize(next_.size() - slots.size());
    links_.shrink(next_.size());
  } catch (...) {
    clear();
    throw;
  }
}

// Asks for what forgetting a point will need; a step needs what the one before has asked for.
template <class Target>
[[gnu::always_inline]] inline void Tree<Target>::prefetch_to_forget(Slot slot, int step, const Points& points) const {
  if (!links_.are_there()) return;
  if (step == 0) {
    links_.prefetch(slot);
    prefetch(points.row(slot));
    return;
  }
  const Slot before = links_.before(slot);
  if (before >= 0) return;
  const NodeIndex leaf = ~before;
  if (step == 1) {
    prefetch(&nodes_[leaf]);
    links_.prefetch_parent(leaf);
    return;
  }
  const NodeIndex parent = links_.parent(leaf);
  if (parent == kNoNode) return;
  if (step == 2) {
    prefetch(&nodes_[parent]);
    links_.prefetch_parent(parent);
  } else {
    prefetch(&nodes_[nodes_[parent].left]);
    nodes_.prefetch_box(parent, 64);
  }
}

// Takes a point out of its leaf, and sees to the nodes above.
template <class Target>
void Tree<Target>::forget_one(Slot slot, const Points& points, Workspace& work, StopProbe& stop) {
  const float* row = points.row(slot);
  NodeIndex j = leaf_of(slot, row);
  unlink(slot, j);
  bool knows_moved = false;
  work.moved_bounds.clear();
  if (nodes_[j].n_points > 0) {
    target_.remove_from_leaf(j, points, points.value(slot), nodes_[j].n_points, [&] {
      find_points(j, work.spare);
      stop.tick(8 * work.spare.size());
      return std::span<const Slot>(work.spare);
    });
    knows_moved = shrink_leaf_box(j, row, points, work);
  } else if (j == kRoot) {
    clear();
    return;
  } else {
    j = replace_by_sibling(j);
  }
  for (; j != kRoot && may_join(links_.parent(j), points); knows_moved = false) {
    j = join(links_.parent(j), points, work, stop);
  }
  if (j != kRoot) set_shrunk(links_.parent(j), knows_moved, row, points.value(slot), points, work);
}

// The leaf that holds a point.
template <class Target>
NodeIndex Tree<Target>::leaf_of(Slot slot, const float* row) const {
  constexpr int most = 16;  // points to go back in a list; then the way from the root may be shorter
  for (int i = 0; i < most; ++i) {
    slot = links_.before(slot);
    if (slot < 0) return ~slot;
  }
  return find_leaf(nodes_, row);
}

// Takes a point out of the list of its leaf.
template <class Target>
void Tree<Target>::unlink(Slot slot, NodeIndex leaf) {
  set_next(links_.before(slot), next_point(slot));
  --nodes_[leaf].n_points;
}

// Puts the point of one slot into another.
template <class Target>
void Tree<Target>::relabel(const Move& move) {
  set_next(links_.before(move.from), move.to);
  set_next(move.to, next_point(move.from));
}

// Sets what comes after a point in the list of its leaf, or, for ~leaf, what comes first.
template <class Target>
void Tree<Target>::set_next(Slot before, Slot slot) {
  (before < 0 ? nodes_[~before].first_point : next_[static_cast<std::size_t>(before)]) = slot;
  links_.set_before(slot, before);
}

// The parent of a leaf that holds nothing becomes what its other child is: born when the parent was, not when that was
// cut. Returns where it then is.
template <class Target>
NodeIndex Tree<Target>::replace_by_sibling(NodeIndex leaf) {
  const NodeIndex j = links_.parent(leaf), pair = nodes_[j].left, sibling = leaf == pair ? pair + 1 : pair;
  target_.clear(leaf);
  target_.clear(j);
  nodes_.release_box(leaf);
  nodes_.release_box(j);
  move_node(sibling, j);
  return remove_pair(pair, j);
}

// Whether a node's children are leaves whose points together may pause. If they may, each may alone: so it is enough
// to look at leaves.
template <class Target>
bool Tree<Target>::may_join(NodeIndex j, const Points& points) const {
  const Node &left = nodes_[nodes_[j].left], &right = nodes_[nodes_[j].right()];
  if (!left.is_leaf() || !right.is_leaf()) return false;
  if (target_.is_small(static_cast<std::size_t>(left.n_points) + static_cast<std::size_t>(right.n_points))) return true;
  return !target_.is_mixed(nodes_[j].left) && !target_.is_mixed(nodes_[j].right()) &&
         points.value(left.first_point) == points.value(right.first_point);
}

// Makes two leaves one, where their parent was: a paused block has not been cut yet. Returns where it then is.
template <class Target>
NodeIndex Tree<Target>::join(NodeIndex j, const Points& points, Workspace& work, StopProbe& stop) {
  const NodeIndex pair = nodes_[j].left;
  std::vector<Slot>& slots = work.order;
  slots.clear();
  for (const NodeIndex child : {pair, pair + 1}) {
    find_points(child, work.spare);
    slots.insert(slots.end(), work.spare.begin(), work.spare.end());
    target_.clear(child);
    nodes_.release_box(child);
  }
  target_.clear(j);
  nodes_.release_box(j);
  start_leaf(j, points, slots, work, stop);
  return remove_pair(pair, j);
}

// Gives what a node holds to another, which holds nothing. Links from above are another matter.
template <class Target>
void Tree<Target>::move_node(NodeIndex from, NodeIndex to) {
  nodes_[to] = nodes_[from];
  nodes_.split_time(to) = nodes_.split_time(from);
  target_.move(from, to);
  links_.set_node(to, nodes_[to]);
}

// Takes two nodes away, that hold nothing; the last two take their place. Returns where node j then is.
template <class Target>
NodeIndex Tree<Target>::remove_pair(NodeIndex pair, NodeIndex j) {
  const NodeIndex last = static_cast<NodeIndex>(nodes_.size()) - 2;
  if (pair != last) {
    const NodeIndex parent = links_.parent(last);
    nodes_[parent].left = pair;
    links_.set_node(parent, nodes_[parent]);
    for (const NodeIndex i : {0, 1}) move_node(last + i, pair + i);
  }
  nodes_.remove_last_two();
  target_.truncate(nodes_.size());
  return j < last ? j : pair + (j - last);
}

// Shrinks the box of a leaf that has lost a point of this row. Returns whether it has a box still; then
// `work.moved_bounds` has those of its bounds that moved.
template <class Target>
bool Tree<Target>::shrink_leaf_box(NodeIndex leaf, const float* row, const Points& points, Workspace& work) {
  if (nodes_[leaf].n_points <= kFewPoints) {
    nodes_.release_box(leaf);
    return false;
  }
  std::vector<Bound>& bounds = work.moved_bounds;
  find_touched(nodes_.stored_box(leaf), row, n_features(), bounds);
  // Most of them are touched by another point, too, and often by the next one.
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

// Sets node j, and what is above it, which have lost a point of this row and value, from their children. If it
// `knows_moved`, `work.moved_bounds` has the bounds that moved below.
template <class Target>
void Tree<Target>::set_shrunk(NodeIndex j, bool knows_moved, const float* row, const Value& value, const Points& points,
                              Workspace& work) {
  for (bool is_told = false; j != kNoNode; j = links_.parent(j)) {
    if (knows_moved) {
      if (!work.moved_bounds.empty()) shrink_box(j, row, points, work);
    } else if (nodes_.has_box(j)) {
      if (has_few_points(j)) {
        nodes_.release_box(j);
      } else {
        shrink_whole_box(j, points, work);
        knows_moved = true;
      }
    }
    if (!is_told) is_told = !target_.remove_one(j, nodes_[j].left, nodes_[j].right(), value);
    if (is_told && knows_moved && work.moved_bounds.empty()) return;
  }
}

// Shrinks a box to those of its children; then `work.moved_bounds` has the bounds that moved.
template <class Target>
void Tree<Target>::shrink_whole_box(NodeIndex j, const Points& points, Workspace& work) {
  work.moved_bounds.clear();
  const BoxView left = box(nodes_[j].left, points, work.inner), right = box(nodes_[j].right(), points, work.outer);
  shrink_to_hull(nodes_.lower(j), nodes_.upper(j), left, right, n_features(), work.moved_bounds);
}

// Shrinks a box where one of its children has: sets `work.moved_bounds` from the children's, as far as the row touches
// them, and leaves there those that moved.
template <class Target>
void Tree<Target>::shrink_box(NodeIndex j, const float* row, const Points& points, Workspace& work) {
  constexpr std::size_t one_in = 8;  // bounds picked from a box, rather than taken one after the other
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

template <class Target>
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

}  // namespace onlineforest
