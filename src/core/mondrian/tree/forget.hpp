// Forgetting points: restricts a tree to fewer of them. Must not know how points are stored.
//
// Nodes and slots stay dense: the last two nodes take the place of a removed pair, and the last points take the slots
// of forgotten points. Work goes from the leaf upwards and ends where nothing changes.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/compiler.hpp"
#include "base/memory.hpp"
#include "mondrian/tree/boxes.hpp"
#include "mondrian/tree/paths.hpp"
#include "mondrian/tree/tree.hpp"

namespace onlineforest::mondrian {

template <TreeTarget Target>
void Tree<Target>::forget(std::span<const Slot> slots, std::span<const Move> moves, const PointStore& points,
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

template <TreeTarget Target>
ONLINEFOREST_ALWAYS_INLINE void Tree<Target>::prefetch_to_forget(Slot slot, int step, const PointStore& points) const {
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

// Removes a point from its leaf and updates the nodes above.
template <TreeTarget Target>
void Tree<Target>::forget_one(Slot slot, const PointStore& points, Workspace& work, StopProbe& stop) {
  const float* row = points.row(slot);
  NodeIndex j = leaf_of(slot, row);
  unlink(slot, j);
  bool knows_moved = false;
  work.moved_bounds.clear();
  if (nodes_[j].n_points > 0) {
    target_.remove_from_leaf(j, points, slot, nodes_[j].n_points);
    knows_moved = shrink_leaf_box(j, row, points, work);
  } else if (j == kRoot) {
    clear();
    return;
  } else {
    j = replace_by_sibling(j);
  }
  for (; j != kRoot && target_.may_join(nodes_, links_.parent(j), points); knows_moved = false) {
    j = join(links_.parent(j), points, work, stop);
  }
  if (j != kRoot) set_shrunk(links_.parent(j), knows_moved, row, points.label(slot), points, work);
}

// The leaf that holds a point.
template <TreeTarget Target>
NodeIndex Tree<Target>::leaf_of(Slot slot, const float* row) const {
  constexpr int most = 16;  // points to follow back in the list; in a longer list the path from the root is faster
  for (int i = 0; i < most; ++i) {
    slot = links_.before(slot);
    if (slot < 0) return ~slot;
  }
  return find_leaf(nodes_, row);
}

// Removes a point from the list of its leaf.
template <TreeTarget Target>
void Tree<Target>::unlink(Slot slot, NodeIndex leaf) {
  set_next(links_.before(slot), next_point(slot));
  --nodes_[leaf].n_points;
}

// Moves a point to another slot.
template <TreeTarget Target>
void Tree<Target>::relabel(const Move& move) {
  set_next(links_.before(move.from), move.to);
  set_next(move.to, next_point(move.from));
}

// Sets the point after `before` in the list of its leaf. If `before` is ~leaf, sets the first point of the leaf.
template <TreeTarget Target>
void Tree<Target>::set_next(Slot before, Slot slot) {
  (before < 0 ? nodes_[~before].first_point : next_[static_cast<std::size_t>(before)]) = slot;
  links_.set_before(slot, before);
}

// Removes an empty leaf: its sibling takes the place of their parent, with its own split time and the parent's birth
// time. Returns the new index of the sibling.
template <TreeTarget Target>
NodeIndex Tree<Target>::replace_by_sibling(NodeIndex leaf) {
  const NodeIndex j = links_.parent(leaf), pair = nodes_[j].left, sibling = leaf == pair ? pair + 1 : pair;
  target_.clear(leaf);
  target_.clear(j);
  nodes_.release_box(leaf);
  nodes_.release_box(j);
  move_node(sibling, j);
  return remove_pair(pair, j);
}

// Joins the two leaves below node j into one paused leaf in the place of j. Returns its new index.
template <TreeTarget Target>
NodeIndex Tree<Target>::join(NodeIndex j, const PointStore& points, Workspace& work, StopProbe& stop) {
  const NodeIndex pair = nodes_[j].left;
  std::vector<Slot>& slots = work.order;
  slots.clear();
  for (const NodeIndex child : {pair, pair + 1}) {
    find_points(child, slots);
    target_.clear(child);
    nodes_.release_box(child);
  }
  target_.clear(j);
  nodes_.release_box(j);
  start_leaf(j, points, slots, work, stop);
  return remove_pair(pair, j);
}

// Removes a pair of empty siblings; the last two nodes take their place. Returns the new index of node j.
template <TreeTarget Target>
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

// Updates node j and its ancestors after a point of this row and label was removed below them. If `knows_moved`,
// `work.moved_bounds` has the bounds that moved in the child of j.
template <TreeTarget Target>
void Tree<Target>::set_shrunk(NodeIndex j, bool knows_moved, const float* row, Label label, const PointStore& points,
                              Workspace& work) {
  for (bool is_target_done = false; j != kNoNode; j = links_.parent(j)) {
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
    if (!is_target_done) is_target_done = !target_.remove_one(j, nodes_[j].left, nodes_[j].right(), label);
    if (is_target_done && knows_moved && work.moved_bounds.empty()) return;
  }
}

}  // namespace onlineforest::mondrian
