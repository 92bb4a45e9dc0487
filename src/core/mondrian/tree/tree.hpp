// One Mondrian tree: its state and its interface. Must not know forests, threads or predictions.
//
// A tree is sampled from a set of points, extended by further sets, and restricted to fewer points; the distribution is
// the same in whatever order this happens. `Target` keeps the labels and decides which blocks pause.
//
// The paper's four growing algorithms (batch and online, each with and without pausing) are one recursion on a set of
// new points: a set on an empty tree is Algorithm 2, a set of one point on a tree is Algorithm 4. The recursion is a
// stack of tasks, because adversarial data can make a tree as deep as it has points.
//
// The order of draws is fixed: time, dimension, location; far side before near side, left before right.
//
// Stages have files of their own: grow.hpp, extend.hpp, boxes.hpp, recount.hpp, forget.hpp. stages.hpp includes all of
// them; code that calls a member whose body is there must include it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/compiler.hpp"
#include "base/memory.hpp"
#include "base/rng.hpp"
#include "base/stop.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/process/cut.hpp"
#include "mondrian/process/measure.hpp"
#include "mondrian/tree/links.hpp"
#include "mondrian/tree/node_store.hpp"
#include "mondrian/tree/paths.hpp"
#include "mondrian/tree/target.hpp"
#include "mondrian/tree/workspace.hpp"
#include "samples/moves.hpp"

namespace onlineforest::mondrian {

template <TreeTarget Target>
class Tree {
 public:
  Tree(std::size_t n_features, double lifetime, Target target, Rng rng)
      : lifetime_(lifetime), nodes_(n_features), target_(std::move(target)), rng_(std::move(rng)) {}

  [[nodiscard]] bool empty() const { return nodes_.size() == 0; }
  [[nodiscard]] double lifetime() const { return lifetime_; }
  [[nodiscard]] const NodeStore& nodes() const { return nodes_; }
  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] Target& target() { return target_; }
  [[nodiscard]] const Measure& measure() const { return *measure_; }
  [[nodiscard]] const MeasurePointer& measure_pointer() const { return measure_; }
  [[nodiscard]] const Rng& rng() const { return rng_; }
  [[nodiscard]] const TreeLinks& links() const { return links_; }

  // The tree holds the points of the slots [0, n_points).
  [[nodiscard]] std::size_t n_points() const { return next_.size(); }

  // The next point of the same leaf.
  [[nodiscard]] Slot next_point(Slot slot) const { return next_[static_cast<std::size_t>(slot)]; }

  // The box of a node. If it is not stored, it is computed into `buffer`.
  [[nodiscard]] BoxView box(NodeIndex j, const PointStore& points, BoxBuffer& buffer) const;

  // Replaces the measure by one of equal weights, so that all cuts remain valid.
  void set_measure(MeasurePointer measure) { measure_ = std::move(measure); }

  // Grows the tree from scratch from the points of `columns`. If stopped, the tree is unchanged.
  void grow(const PointStore& points, const Columns& columns, MeasurePointer measure, Workspace& work, StopProbe& stop);

  // Extends the tree, which must not be empty, by the points of the slots [n_points(), end) as one set. A stop takes
  // effect only while a giant paused leaf is cut, which may take long. After a stop, or if memory runs out, the tree is
  // empty and must be grown.
  void extend(const PointStore& points, std::size_t end, Workspace& work, StopProbe& stop);

  // Extends the tree by the points of the slots [n_points(), end), one after the other; faster than `extend` if they
  // are few compared with the tree. Stops and failures act as for `extend`.
  void extend_one_by_one(const PointStore& points, std::size_t end, Workspace& work, StopProbe& stop);

  // Extends the tree by the point of slot n_points(), whose path is given. Stops and failures act as for `extend`.
  void extend_along(Path& path, const PointStore& points, Workspace& work, StopProbe& stop);

  // Forgets points. The last remaining points take their slots, as in `moves`; `points` must still hold all points at
  // their old slots. The result has the distribution of a tree that never saw the points, provided they were chosen
  // independently of the tree: a Mondrian tree restricted to fewer points is a Mondrian tree on those. After a stop, or
  // if memory runs out, the tree is empty and must be grown.
  void forget(std::span<const Slot> slots, std::span<const Move> moves, const PointStore& points, Workspace& work,
              StopProbe& stop);

  // Follows points of the tree whose counts changed. No box and no cut depends on them. After a stop, or if memory runs
  // out, the tree is empty and must be grown.
  void recount(std::span<const Recounted> changes, const PointStore& points, StopProbe& stop);

  // Prefetches what forgetting a point will read, in steps 0 to kForgetSteps - 1. A step reads what the step before
  // prefetched; other work in between hides the latency of memory.
  static constexpr int kForgetSteps = 4;
  ONLINEFOREST_ALWAYS_INLINE void prefetch_to_forget(Slot slot, int step, const PointStore& points) const;

  // Empties the tree, which must then be grown.
  void clear() {
    nodes_ = NodeStore(n_features());
    target_ = target_.empty_copy();
    measure_.reset();
    next_ = {};
    links_ = {};
  }

  [[nodiscard]] std::size_t nbytes() const {
    return nodes_.nbytes() + target_.nbytes() + next_.capacity() * sizeof(Slot) + links_.nbytes();
  }

 private:
  friend class Archive;

  using Task = Workspace::Task;
  using Block = Workspace::Block;

  static constexpr std::size_t kNoDimension = ~std::size_t{0};

  [[nodiscard]] std::size_t n_features() const { return nodes_.n_features(); }
  [[nodiscard]] const double* weights() const { return measure_->weights.data(); }

  static void start(Workspace& work) {
    work.tasks.clear();
    work.blocks.clear();
    work.unset.clear();
  }

  static std::span<Slot> slots_between(std::size_t begin, std::size_t end, Workspace& work) {
    return std::span(work.order).subspan(begin, end - begin);
  }

  // Nodes and leaves.

  NodeIndex add_nodes(std::size_t n) {
    const NodeIndex first = nodes_.add(n);
    target_.reserve_nodes(nodes_.size());
    return first;
  }

  void resize_points(std::size_t n) {
    resize_tightly(next_, n, kNoSlot);
    links_.resize(n);
  }

  void combine(NodeIndex j) { target_.combine(j, nodes_[j].left, nodes_[j].right()); }

  // Makes node j an internal node with these children.
  void cut_node(NodeIndex j, const Cut& cut, NodeIndex left) {
    Node& node = nodes_[j];
    node.left = left;
    node.split_dimension = static_cast<std::int32_t>(cut.dimension);
    node.split_location = cut.location;
    nodes_.split_time(j) = cut.time;
    links_.set_node(j, node);
  }

  // Makes node j a leaf without points.
  void start_leaf(NodeIndex j) {
    Node& leaf = nodes_[j];
    leaf.first_point = kNoSlot;
    leaf.split_dimension = Node::kLeaf;
    leaf.n_points = 0;
    nodes_.split_time(j) = lifetime_;
  }

  // Makes node j a leaf of these points, with its box.
  void start_leaf(NodeIndex j, const PointStore& points, std::span<const Slot> slots, Workspace& work,
                  StopProbe& stop) {
    start_leaf(j);
    add_to_leaf(j, points, slots);
    if (slots.size() > kFewPoints) {
      nodes_.add_box(j);
      set_leaf_box(j, points, [&] {
        if (work.may_stop) stop.tick(n_features());
      });
    }
  }

  // Adds the points to the list of a leaf and to the target. The caller updates the box.
  void add_to_leaf(NodeIndex j, const PointStore& points, std::span<const Slot> slots) {
    Node& leaf = nodes_[j];
    target_.add_to_leaf(j, leaf.n_points, points, slots);
    for (const Slot slot : slots) {
      next_[static_cast<std::size_t>(slot)] = leaf.first_point;
      links_.set_before(leaf.first_point, slot);
      leaf.first_point = slot;
    }
    links_.set_before(leaf.first_point, ~j);
    leaf.n_points += static_cast<std::int32_t>(slots.size());
  }

  // Appends the points of a leaf, oldest first.
  void find_points(NodeIndex leaf, std::vector<Slot>& slots) const {
    const auto first = static_cast<std::ptrdiff_t>(slots.size());
    for (Slot slot = nodes_[leaf].first_point; slot != kNoSlot; slot = next_point(slot)) slots.push_back(slot);
    std::reverse(slots.begin() + first, slots.end());
  }

  // Moves the contents of a node to an empty node. The caller updates the link from the parent.
  void move_node(NodeIndex from, NodeIndex to) {
    nodes_[to] = nodes_[from];
    nodes_.split_time(to) = nodes_.split_time(from);
    target_.move(from, to);
    links_.set_node(to, nodes_[to]);
  }

  // Growing: grow.hpp.

  static constexpr std::size_t kSmallBlock = 256;  // values: points times features of positive weight

  // Whether the box of a block is computed, because that is cheap; otherwise it is only bounded.
  [[nodiscard]] bool is_small(std::size_t n_points) const { return n_points * measure_->n_weighted <= kSmallBlock; }
  void sample_blocks(Block first, Coordinates at, const PointStore& points, Workspace& work, StopProbe& stop);
  void sample_block(NodeIndex j, std::size_t begin, std::size_t end, double birth_time, const PointStore& points,
                    Workspace& work, StopProbe& stop);
  NodeIndex split(NodeIndex j, const Cut& cut);
  void finish(const PointStore& points, Workspace& work, StopProbe& stop);

  // Extending: extend.hpp.

  // Where a tree was changed: `node`, at this depth of its path, may have new children.
  struct Change {
    std::size_t depth;
    NodeIndex node;
  };
  struct Children {
    NodeIndex near, far;
  };
  struct SmallBlock {
    BoxView box;
    std::int32_t n_points;  // kFewPoints + 1 if there are more than kFewPoints
  };

  static constexpr std::size_t kGiantBlock = std::size_t{1} << 24;  // values: points times features

  template <class Learn>
  void extend_or_clear(Workspace& work, Learn learn);
  void learn_set(const PointStore& points, std::size_t end, Workspace& work, StopProbe& stop);
  void learn_side_by_side(const PointStore& points, std::size_t end, Workspace& work, StopProbe& stop);
  Change learn_one(Slot slot, const PointStore& points, Workspace& work, StopProbe& stop);
  void extend_block(const Task& task, const PointStore& points, Workspace& work, StopProbe& stop);
  Change extend_by_one(const Task& task, const PointStore& points, Workspace& work, StopProbe& stop);
  bool extend_paused_leaf(const Task& task, const PointStore& points, Workspace& work, StopProbe& stop);
  void cut_above(const Task& task, double time, double rate, const SmallBlock& block, const PointStore& points,
                 Workspace& work, StopProbe& stop);
  void cut_above_by_one(NodeIndex j, double time, double rate, Slot slot, const PointStore& points, Workspace& work);
  Children lift(NodeIndex j, const GapCut& cut);
  void set_passed(std::size_t end, Label label, Workspace& work);
  static double run_down(double clock, double rate, double duration);

  // Boxes: boxes.hpp.

  [[nodiscard]] SmallBlock known_block(NodeIndex j, const PointStore& points, BoxBuffer& buffer) const;
  [[nodiscard]] SmallBlock small_block(NodeIndex j, const PointStore& points, BoxBuffer& buffer) const;
  template <class F>
  void for_each_of_few(NodeIndex j, F f) const;
  [[nodiscard]] bool has_few_points(NodeIndex j) const;
  void include_points(float* lower, float* upper, const PointStore& points, std::span<const Slot> slots,
                      const Workspace& work, StopProbe& stop) const;
  template <class Tick>
  void set_leaf_box(NodeIndex j, const PointStore& points, Tick tick);
  void set_box_from_children(NodeIndex j, const PointStore& points, Workspace& work);
  void grow_box(NodeIndex j, std::int32_t n_points, BoxView outer);
  void grow_boxes_by_one(std::size_t first, std::size_t end, const float* row, const PointStore& points,
                         Workspace& work);
  bool shrink_leaf_box(NodeIndex leaf, const float* row, const PointStore& points, Workspace& work);
  void shrink_whole_box(NodeIndex j, const PointStore& points, Workspace& work);
  void shrink_box(NodeIndex j, const float* row, const PointStore& points, Workspace& work);

  // Forgetting: forget.hpp.

  void forget_one(Slot slot, const PointStore& points, Workspace& work, StopProbe& stop);
  [[nodiscard]] NodeIndex leaf_of(Slot slot, const float* row) const;
  void unlink(Slot slot, NodeIndex leaf);
  void relabel(const Move& move);
  void set_next(Slot before, Slot slot);
  NodeIndex replace_by_sibling(NodeIndex leaf);
  NodeIndex join(NodeIndex j, const PointStore& points, Workspace& work, StopProbe& stop);
  NodeIndex remove_pair(NodeIndex pair, NodeIndex j);
  void set_shrunk(NodeIndex j, bool knows_moved, const float* row, Label label, const PointStore& points,
                  Workspace& work);

  double lifetime_;
  NodeStore nodes_;
  Target target_;
  MeasurePointer measure_;
  Rng rng_;
  std::vector<Slot> next_;  // per slot: the next point of the same leaf
  TreeLinks links_;
};

}  // namespace onlineforest::mondrian
