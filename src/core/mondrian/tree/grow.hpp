// Growing a tree from a set of points: the paper's Algorithm 2 (SampleMondrianBlock), with pausing Algorithm 9. Must
// not know how a tree is extended or restricted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "mondrian/points/box.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/process/bounds.hpp"
#include "mondrian/process/cut.hpp"
#include "mondrian/tree/boxes.hpp"
#include "mondrian/tree/tree.hpp"

namespace onlineforest::mondrian {

template <TreeTarget Target>
inline void Tree<Target>::grow(const PointStore& points, const Columns& columns, MeasurePointer measure,
                               Workspace& work, StopProbe& stop) {
  Tree fresh(nodes_.n_features(), lifetime_, target_.empty_copy(), rng_.copy());
  fresh.measure_ = std::move(measure);
  fresh.next_.assign(columns.n_points(), kNoSlot);
  const std::size_t n_nodes = std::min(work.n_nodes_expected, 2 * columns.n_points());
  fresh.nodes_.expect(n_nodes);
  fresh.target_.expect_nodes(n_nodes);
  fresh.add_nodes(1);
  work.may_stop = true;
  work.order.resize(columns.n_points());
  std::iota(work.order.begin(), work.order.end(), Slot{0});
  fresh.start(work);
  work.bounds.start(fresh.weights(), columns.box(), fresh.n_features());
  fresh.sample_blocks({kRoot, 0, columns.n_points(), 0.0, 0, kNoDimension, {}}, columns.coordinates(), points, work,
                      stop);
  fresh.finish(points, work, stop);
  work.n_nodes_expected = fresh.nodes_.size() + fresh.nodes_.size() / 32;
  *this = std::move(fresh);
}

// Samples a block from its points, and all blocks below it. `work.bounds` must contain the box of the points.
template <TreeTarget Target>
inline void Tree<Target>::sample_blocks(Block first, Coordinates at, const PointStore& points, Workspace& work,
                                        StopProbe& stop) {
  work.blocks.push_back(first);
  while (!work.blocks.empty()) {
    const Block block = work.blocks.back();
    work.blocks.pop_back();
    const std::span<Slot> slots = slots_between(block.begin, block.end, work);
    BlockCut cut;
    if (!target_.may_pause(points, slots)) {
      if (is_small(slots.size())) {
        work.inner.resize(n_features());
        set_hull(
            work.inner.lower(), work.inner.upper(), slots.size(), [&](std::size_t i) { return points.row(slots[i]); },
            n_features());
        cut = sample_cut(rng_, *measure_, work.inner.view(), block.birth_time, lifetime_);
      } else {
        work.bounds.rewind(block.mark);
        if (block.dimension != kNoDimension) work.bounds.set(block.dimension, block.range.lower, block.range.upper);
        cut = sample_cut(rng_, work.bounds, at, slots, block.birth_time, lifetime_, [&](std::size_t n) {
          if (work.may_stop) stop.tick(n);
        });
      }
    }
    if (!(cut.time < lifetime_)) {
      start_leaf(block.node, points, slots, work, stop);
      continue;
    }
    const NodeIndex left = split(block.node, cut);
    if (slots.size() > kFewPoints) nodes_.add_box(block.node);
    work.unset.push_back(block.node);
    const std::size_t d = cut.dimension;
    const std::size_t middle = block.begin + at.partition(d, cut.location, slots, work.spare);
    const Bounds::Mark mark = work.bounds.mark();
    work.blocks.push_back({left + 1, middle, block.end, cut.time, mark, d, {cut.location, cut.range.upper}});
    work.blocks.push_back({left, block.begin, middle, cut.time, mark, d, {cut.range.lower, cut.location}});
  }
}

// Samples a block inside an existing tree, from points that are new or that leave a pause.
template <TreeTarget Target>
inline void Tree<Target>::sample_block(NodeIndex j, std::size_t begin, std::size_t end, double birth_time,
                                       const PointStore& points, Workspace& work, StopProbe& stop) {
  const std::span<const Slot> slots = slots_between(begin, end, work);
  if (!is_small(slots.size())) {
    work.inner.assign(points.box(slots.front()), n_features());
    include_points(work.inner.lower(), work.inner.upper(), points, slots.subspan(1), work, stop);
    work.bounds.start(weights(), work.inner.view(), n_features());
  }
  sample_blocks({j, begin, end, birth_time, 0, kNoDimension, {}}, Coordinates::of(points), points, work, stop);
}

// Makes node j an internal node with two new children. Returns the left child.
template <TreeTarget Target>
inline NodeIndex Tree<Target>::split(NodeIndex j, const Cut& cut) {
  const NodeIndex left = add_nodes(2);
  cut_node(j, cut, left);
  return left;
}

// Computes the internal nodes in `work.unset` from their children, children first.
template <TreeTarget Target>
inline void Tree<Target>::finish(const PointStore& points, Workspace& work, StopProbe& stop) {
  for (auto j = work.unset.rbegin(); j != work.unset.rend(); ++j) {
    if (nodes_.has_box(*j)) set_box_from_children(*j, points, work);
    combine(*j);
    if (work.may_stop) stop.tick(n_features());
  }
}

}  // namespace onlineforest::mondrian
