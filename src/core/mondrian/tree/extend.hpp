// Extending a tree by new points: the paper's Algorithm 4 (ExtendMondrianBlock), with pausing Algorithm 10, for a set
// of points and for one point. Must not know how points are forgotten.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "base/memory.hpp"
#include "base/rng.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/process/cut.hpp"
#include "mondrian/process/rates.hpp"
#include "mondrian/tree/boxes.hpp"
#include "mondrian/tree/grow.hpp"
#include "mondrian/tree/paths.hpp"
#include "mondrian/tree/tree.hpp"

namespace onlineforest::mondrian {

template <TreeTarget Target>
inline void Tree<Target>::extend(const PointStore& points, std::size_t end, Workspace& work, StopProbe& stop) {
  extend_or_clear(work, [&] { learn_set(points, end, work, stop); });
}

template <TreeTarget Target>
inline void Tree<Target>::extend_one_by_one(const PointStore& points, std::size_t end, Workspace& work,
                                            StopProbe& stop) {
  extend_or_clear(work, [&] {
    while (n_points() < end) {
      learn_side_by_side(points, std::min(n_points() + kSideBySide, end), work, stop);
    }
  });
}

template <TreeTarget Target>
inline void Tree<Target>::extend_along(Path& path, const PointStore& points, Workspace& work, StopProbe& stop) {
  extend_or_clear(work, [&] {
    const Slot slot = static_cast<Slot>(n_points());
    resize_points(n_points() + 1);
    work.path.swap(path);
    learn_one(slot, points, work, stop);
  });
}

// Calls learn(). If it throws, the tree is empty afterwards and repeats its draws when it is grown.
template <TreeTarget Target>
template <class Learn>
inline void Tree<Target>::extend_or_clear(Workspace& work, Learn learn) {
  work.may_stop = false;
  Rng before = rng_.copy();
  try {
    learn();
  } catch (...) {
    clear();
    rng_ = std::move(before);
    throw;
  }
}

// Extends the tree by the points of the slots [n_points(), end) as one set.
template <TreeTarget Target>
inline void Tree<Target>::learn_set(const PointStore& points, std::size_t end, Workspace& work, StopProbe& stop) {
  const std::size_t first = n_points(), n = end - first;
  resize_points(end);
  work.order.resize(n);
  std::iota(work.order.begin(), work.order.end(), static_cast<Slot>(first));
  start(work);
  work.tasks.push_back({kRoot, 0, n, 0.0, rng_.exponential()});
  while (!work.tasks.empty()) {
    const Task task = work.tasks.back();
    work.tasks.pop_back();
    if (task.end - task.begin == 1) {
      work.path.clear();
      find_path(nodes_, task.node, points.row(work.order[task.begin]), work.path);
      extend_by_one(task, points, work, stop);
    } else {
      extend_block(task, points, work, stop);
    }
  }
  finish(points, work, stop);
}

// Extends the tree by a few points, one after the other. Their paths are found side by side beforehand, which hides the
// latency of memory. If a point changes the path of a later one, the end of that path is found again.
template <TreeTarget Target>
inline void Tree<Target>::learn_side_by_side(const PointStore& points, std::size_t end, Workspace& work,
                                             StopProbe& stop) {
  const std::size_t first = n_points(), n = end - first;
  resize_points(end);
  std::array<Search, kSideBySide> searches;
  for (std::size_t i = 0; i < n; ++i) {
    work.paths[i].clear();
    searches[i] = {&nodes_, points.row(static_cast<Slot>(first + i)), &work.paths[i]};
  }
  find_paths(std::span<const Search>(searches).first(n), [&](const Search& search) {
    prefetch(points.row(nodes_[search.path->back()].first_point));
    prefetch_end(nodes_, *search.path);
  });
  std::array<Change, kSideBySide> changes;
  for (std::size_t i = 0; i < n; ++i) {
    const Slot slot = static_cast<Slot>(first + i);
    work.path.swap(work.paths[i]);
    for (const Change& change : std::span(changes).first(i)) {
      if (change.depth >= work.path.size() || work.path[change.depth] != change.node) continue;
      work.path.resize(change.depth);
      find_path(nodes_, change.node, points.row(slot), work.path);
    }
    changes[i] = learn_one(slot, points, work, stop);
  }
}

// Extends the tree by one point, whose path is `work.path`.
template <TreeTarget Target>
inline auto Tree<Target>::learn_one(Slot slot, const PointStore& points, Workspace& work, StopProbe& stop) -> Change {
  work.order.assign(1, slot);
  start(work);
  const Change change = extend_by_one({kRoot, 0, 1, 0.0, rng_.exponential()}, points, work, stop);
  finish(points, work, stop);
  return change;
}

// Carries out a task for a set of points.
// Differs from the paper: the new points are a set, not one; and one clock of rate 1 runs down along a path, where the
// paper draws a time at each node. The distribution is the same, because the exponential has no memory.
template <TreeTarget Target>
inline void Tree<Target>::extend_block(const Task& task, const PointStore& points, Workspace& work, StopProbe& stop) {
  const NodeIndex j = task.node;
  const std::span<Slot> slots = slots_between(task.begin, task.end, work);
  if (extend_paused_leaf(task, points, work, stop)) return;

  const std::size_t n = n_features();
  const SmallBlock block = known_block(j, points, work.inner);
  work.outer.assign(block.box, n);
  include_points(work.outer.lower(), work.outer.upper(), points, slots, work, stop);
  const BoxView outer = work.outer.view();
  const double rate = extension_rate(weights(), block.box, outer, 0, n);
  const double split_time = nodes_.split_time(j);
  const double time = rate > 0.0 ? task.birth_time + task.clock / rate : kInfinity;
  if (time < split_time) {
    cut_above(task, time, rate, block, points, work, stop);
    return;
  }

  grow_box(j, block.n_points + static_cast<std::int32_t>(slots.size()), outer);
  if (nodes_[j].is_leaf()) {
    add_to_leaf(j, points, slots);
    return;
  }
  target_.absorb(j, points, slots);
  const Node node = nodes_[j];
  const std::size_t d = static_cast<std::size_t>(node.split_dimension);
  const std::size_t middle = task.begin + Coordinates::of(points).partition(d, node.split_location, slots, work.spare);
  const double clock = run_down(task.clock, rate, split_time - task.birth_time);
  const bool both = task.begin < middle && middle < task.end;
  if (middle < task.end) {
    work.tasks.push_back({node.right(), middle, task.end, split_time, both ? rng_.exponential() : clock});
  }
  if (task.begin < middle) work.tasks.push_back({node.left, task.begin, middle, split_time, clock});
}

// Carries out a task for one point, along `work.path`, up to the first cut. Boxes are nested along a path, so only
// those at its end, which the point lies outside of, have a rate or must grow.
template <TreeTarget Target>
inline auto Tree<Target>::extend_by_one(const Task& task, const PointStore& points, Workspace& work, StopProbe& stop)
    -> Change {
  const Slot slot = work.order[task.begin];
  const float* row = points.row(slot);
  Path& path = work.path;
  const NodeIndex leaf = path.back();
  const bool is_paused = target_.is_paused(leaf, nodes_[leaf].n_points);
  if (is_paused) path.pop_back();  // extend_paused_leaf handles it

  work.rates.resize(path.size());
  const std::size_t first = work.separation.find_rates(weights(), row, n_features(), work.rates,
                                                       [&](std::size_t k) { return box(path[k], points, work.inner); });
  double birth_time = first == 0 ? task.birth_time : nodes_.split_time(path[first - 1]);
  double clock = task.clock;
  std::size_t end = first;  // the point passes the nodes [0, end) of the path
  for (; end < path.size(); ++end) {
    const double rate = work.rates[end], split_time = nodes_.split_time(path[end]);
    const double time = birth_time + clock / rate;
    if (time < split_time) {
      grow_boxes_by_one(first, end, row, points, work);
      cut_above_by_one(path[end], time, rate, slot, points, work);
      set_passed(end, points.label(slot), work);
      return {end, path[end]};
    }
    clock = run_down(clock, rate, split_time - birth_time);
    birth_time = split_time;
  }
  grow_boxes_by_one(first, end, row, points, work);
  if (is_paused) {
    if (!path.empty()) birth_time = nodes_.split_time(path.back());
    set_passed(path.size(), points.label(slot), work);
    extend_paused_leaf({leaf, task.begin, task.end, birth_time, clock}, points, work, stop);
  } else {
    add_to_leaf(leaf, points, std::span(&slot, 1));
    path.pop_back();
    set_passed(path.size(), points.label(slot), work);
  }
  return {path.size(), leaf};  // the leaf may have been cut
}

// Updates the target for one more label below the nodes [0, end) of `work.path`.
template <TreeTarget Target>
inline void Tree<Target>::set_passed(std::size_t end, Label label, Workspace& work) {
  while (end > 0 && target_.absorb_one(work.path[end - 1], label)) --end;
}

// The clock after a node of this rate and duration.
template <TreeTarget Target>
inline double Tree<Target>::run_down(double clock, double rate, double duration) {
  return rate > 0.0 ? std::max(clock - rate * duration, 0.0) : clock;
}

// Adds the points of the task to a paused leaf, and cuts the leaf if its pause ends. Returns false, and does nothing,
// if the node is not a paused leaf.
template <TreeTarget Target>
inline bool Tree<Target>::extend_paused_leaf(const Task& task, const PointStore& points, Workspace& work,
                                             StopProbe& stop) {
  const NodeIndex j = task.node;
  if (!nodes_[j].is_leaf() || !target_.is_paused(j, nodes_[j].n_points)) return false;
  const std::span<const Slot> slots = slots_between(task.begin, task.end, work);
  if (target_.stays_paused(j, nodes_[j], points, slots)) {
    add_to_leaf(j, points, slots);
    if (nodes_.has_box(j)) {
      include_points(nodes_.lower(j), nodes_.upper(j), points, slots, work, stop);
    } else if (nodes_[j].n_points > kFewPoints) {
      nodes_.add_box(j);
      set_leaf_box(j, points, [&] {
        if (work.may_stop) stop.tick(n_features());
      });
    }
    return true;
  }
  const std::size_t begin = work.order.size();
  for (Slot slot = nodes_[j].first_point; slot != kNoSlot; slot = next_point(slot)) work.order.push_back(slot);
  for (std::size_t i = task.begin; i < task.end; ++i) {
    const Slot slot = work.order[i];
    work.order.push_back(slot);
  }
  const std::size_t end = work.order.size();
  target_.clear(j);
  if ((end - begin) * n_features() >= kGiantBlock) work.may_stop = true;
  sample_block(j, begin, end, task.birth_time, points, work, stop);
  work.order.resize(begin);
  return true;
}

// Cuts outside the box of the task's node at `time`, and puts a new node with this cut above it. The points on the far
// side become the other child. Those on the near side continue with the old node, which is now born at `time`.
template <TreeTarget Target>
inline void Tree<Target>::cut_above(const Task& task, double time, double rate, const SmallBlock& block,
                                    const PointStore& points, Workspace& work, StopProbe& stop) {
  const GapCut cut = sample_gap_cut(rng_, *measure_, block.box, work.outer.view(), rate, time);
  const auto [near, far] = lift(task.node, cut);
  const std::span<Slot> slots = slots_between(task.begin, task.end, work);
  if (block.n_points + static_cast<std::int32_t>(slots.size()) > kFewPoints) nodes_.add_box(task.node);
  work.unset.push_back(task.node);

  const std::size_t middle =
      task.begin + Coordinates::of(points).partition(cut.dimension, cut.location, slots, work.spare);
  const std::size_t far_begin = cut.is_upper ? middle : task.begin, far_end = cut.is_upper ? task.end : middle;
  const std::size_t near_begin = cut.is_upper ? task.begin : middle, near_end = cut.is_upper ? middle : task.end;
  sample_block(far, far_begin, far_end, time, points, work, stop);
  if (near_begin < near_end) work.tasks.push_back({near, near_begin, near_end, time, rng_.exponential()});
}

// Cuts between node j and one point at `time`, and puts a new node with this cut above j. The point becomes the other
// child.
template <TreeTarget Target>
inline void Tree<Target>::cut_above_by_one(NodeIndex j, double time, double rate, Slot slot, const PointStore& points,
                                           Workspace& work) {
  const SmallBlock block = known_block(j, points, work.inner);
  const NodeIndex far = lift(j, sample_gap_cut(rng_, *measure_, block.box, points.row(slot), rate, time)).far;
  start_leaf(far);
  add_to_leaf(far, points, std::span(&slot, 1));
  if (block.n_points + 1 > kFewPoints) {
    nodes_.add_box(j);
    start_box(nodes_.lower(j), nodes_.upper(j), block.box, n_features());
    include(nodes_.lower(j), nodes_.upper(j), points.box(slot), n_features());
  }
  combine(j);
}

// Moves the contents of node j one level down and puts a cut in its place, so that links to j remain valid. The stored
// box moves with the contents.
template <TreeTarget Target>
inline auto Tree<Target>::lift(NodeIndex j, const GapCut& cut) -> Children {
  const NodeIndex left = add_nodes(2);
  const NodeIndex near = cut.is_upper ? left : left + 1, far = cut.is_upper ? left + 1 : left;
  move_node(j, near);
  nodes_[j] = Node();
  cut_node(j, cut, left);
  return {near, far};
}

}  // namespace onlineforest::mondrian
