// One Mondrian tree: sampled from a set of points at once, extended by further sets, and restricted to fewer points,
// with the same law.
// Knows nothing of forests, threads or predictions; `Target` says what is kept about labels and when to pause.
//
// The paper's four growing algorithms (batch and online, each with and without pausing) are one recursion on a set
// of new points: a set on an empty tree is Algorithm 2, a set of one on a tree is Algorithm 4. The recursion is a
// stack of tasks, because hostile data make trees as deep as they have points.
//
// The order of draws is fixed: time, dimension, location; far before near, left before right.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "base/stop.hpp"
#include "points/box.hpp"
#include "points/columns.hpp"
#include "points/point_store.hpp"
#include "process/bounds.hpp"
#include "process/cut.hpp"
#include "process/measure.hpp"
#include "process/rates.hpp"
#include "tree/links.hpp"
#include "tree/node_store.hpp"
#include "tree/paths.hpp"

namespace onlineforest {

inline constexpr std::size_t kUsualDepth = 32;  // for a rough guess of the numbers that are touched

// Scratch memory of one worker, reused from tree to tree.
struct Workspace {
  // A node that is to be extended by the points order[begin, end); `birth_time` is the split time of its parent.
  // `clock` is exponential of rate 1: what is left of it when the parents' rates and durations have run it down.
  struct Task {
    NodeIndex node;
    std::size_t begin, end;
    double birth_time, clock;
  };
  // A node whose block is to be sampled from order[begin, end), within `mark` of the bounds, clipped once more.
  struct Block {
    NodeIndex node;
    std::size_t begin, end;
    double birth_time;
    Bounds::Mark mark;
    std::size_t dimension;
    Coordinates::Range range;
  };
  // An internal node that is yet to be set from its children; its box too, if it is new.
  struct Unset {
    NodeIndex node;
    bool is_new;
  };

  std::vector<Slot> order, spare;
  std::vector<Unset> unset;  // parents before children
  std::vector<Task> tasks;
  std::vector<Block> blocks;
  Path path;
  std::array<Path, kSideBySide> paths;
  std::vector<double> rates;  // along the path
  NestedSeparation separation;
  BoxBuffer inner, outer;
  std::vector<Bound> moved_bounds;
  Bounds bounds;
  std::size_t n_nodes_expected = 0;  // of the next tree of a forest: a little more than the last one had
  bool may_stop = false;             // whether the work at hand may be thrown away half done
};

template <class Target>
class Tree {
 public:
  using Value = typename Target::Value;
  using Points = PointStore<Value>;
  using TargetMeasure = MeasureWith<typename Target::Prior>;
  using TargetMeasurePointer = MeasurePointer<typename Target::Prior>;

  Tree(std::size_t n_features, double lifetime, Target target, Rng rng)
      : lifetime_(lifetime), nodes_(n_features), target_(std::move(target)), rng_(rng) {}

  bool empty() const { return nodes_.size() == 0; }
  double lifetime() const { return lifetime_; }
  const NodeStore& nodes() const { return nodes_; }
  const Target& target() const { return target_; }
  const TargetMeasure& measure() const { return *measure_; }
  const TargetMeasurePointer& measure_pointer() const { return measure_; }
  const Rng& rng() const { return rng_; }

  // The tree holds the points of the slots [0, n_points).
  std::size_t n_points() const { return next_.size(); }

  const TreeLinks& links() const { return links_; }

  Slot next_point(Slot slot) const { return next_[static_cast<std::size_t>(slot)]; }

  // The box of a node; `buffer` is where one that is not stored is put.
  BoxView box(NodeIndex j, const Points& points, BoxBuffer& buffer) const {
    if (nodes_.has_box(j)) return nodes_.stored_box(j);
    return small_block(j, points, buffer).box;
  }

  Target& target() { return target_; }

  // A measure of the same weights: the cuts stay what they are.
  void set_measure(TargetMeasurePointer measure, const Points& points) {
    if (measure_ == measure) return;
    measure_ = std::move(measure);
    target_.set_measure(*measure_);
    if constexpr (Target::kFromChildren) {
      try {
        set_target(points);
      } catch (...) {  // out of memory: an empty tree is grown afresh
        clear();
        throw;
      }
    }
  }

  // Grows the tree afresh from the points of `columns`. If stopped, the tree is as it was.
  void grow(const Points& points, const Columns& columns, TargetMeasurePointer measure, Workspace& work,
            StopProbe& stop) {
    Tree fresh(nodes_.n_features(), lifetime_, target_.empty_copy(), rng_);
    fresh.measure_ = std::move(measure);
    fresh.target_.set_measure(*fresh.measure_);
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

  // Learns the points of the slots [n_points(), end) as one set; the tree must not be empty. Cannot be stopped, for
  // half of it would be no tree, unless a giant leaf is taken out of its pause, which may take long: then a stop
  // leaves the tree empty, to be grown afresh. So does running out of memory.
  void extend(const Points& points, std::size_t end, Workspace& work, StopProbe& stop) {
    extend_or_clear(work, [&] { learn_set(points, end, work, stop); });
  }

  // The same, but point by point: quicker where a set is small beside the tree.
  void extend_one_by_one(const Points& points, std::size_t end, Workspace& work, StopProbe& stop) {
    extend_or_clear(work, [&] {
      while (n_points() < end) {
        learn_side_by_side(points, std::min(n_points() + kSideBySide, end), work, stop);
      }
    });
  }

  // The same for one point more, whose path is known.
  void extend_along(Path& path, const Points& points, Workspace& work, StopProbe& stop) {
    extend_or_clear(work, [&] {
      const Slot slot = static_cast<Slot>(n_points());
      resize_points(n_points() + 1);
      work.path.swap(path);
      learn_one(slot, points, work, stop);
    });
  }

  // Forgets points; the last of the others take their slots, as in `moves`. What is left has the law of a tree that
  // never saw them, if they were chosen without looking at the tree: a Mondrian tree restricted to fewer points is one
  // on those points. The store must still hold everything where it was. A stop leaves the tree empty, to be grown
  // afresh; so does running out of memory.
  void forget(std::span<const Slot> slots, std::span<const Move> moves, const Points& points, Workspace& work,
              StopProbe& stop);

  // Asks for what forgetting a point will need, step by step from 0, as if to let memory come in between.
  static constexpr int kForgetSteps = 4;
  [[gnu::always_inline]] void prefetch_to_forget(Slot slot, int step, const Points& points) const;

  // Empties the tree, to be grown afresh.
  void clear() {
    nodes_ = NodeStore(n_features());
    target_ = target_.empty_copy();
    measure_.reset();
    next_ = {};
    links_ = {};
  }

  std::size_t nbytes() const {
    return nodes_.nbytes() + target_.nbytes() + next_.capacity() * sizeof(Slot) + links_.nbytes();
  }

 private:
  template <class Forest>
  friend class Archive;

  using Task = Workspace::Task;
  using Block = Workspace::Block;

  // Where a tree was changed: this node, on a path of this depth, may have other children now.
  struct Change {
    std::size_t depth;
    NodeIndex node;
  };

  static constexpr std::size_t kGiantBlock = std::size_t{1} << 24;  // numbers: points times features
  static constexpr std::size_t kNoDimension = ~std::size_t{0};
  // Up to this many numbers, points times features of weight, a block's box is computed rather than bounded.
  static constexpr std::size_t kSmallBlock = 256;

  bool is_small(std::size_t n_points) const { return n_points * measure_->n_weighted <= kSmallBlock; }
  std::size_t n_features() const { return nodes_.n_features(); }
  const double* weights() const { return measure_->weights.data(); }

  NodeIndex add_nodes(std::size_t n) {
    const NodeIndex first = nodes_.add(n);
    target_.reserve_nodes(nodes_.size());
    return first;
  }

  void resize_points(std::size_t n) {
    resize_tightly(next_, n, kNoSlot);
    links_.resize(n);
  }

  static void start(Workspace& work) {
    work.tasks.clear();
    work.blocks.clear();
    work.unset.clear();
  }

  template <class Learn>
  void extend_or_clear(Workspace& work, Learn learn) {
    work.may_stop = false;
    const Rng before = rng_;
    try {
      learn();
    } catch (...) {
      clear();
      rng_ = before;
      throw;
    }
  }

  void learn_set(const Points& points, std::size_t end, Workspace& work, StopProbe& stop) {
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

  // Learns a few points one after the other. Their ways down are found side by side beforehand, for one alone waits
  // for memory at every step; where a point has changed the way of a later one, the end of that is found again.
  void learn_side_by_side(const Points& points, std::size_t end, Workspace& work, StopProbe& stop) {
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

  // Learns one point, which takes `work.path`.
  Change learn_one(Slot slot, const Points& points, Workspace& work, StopProbe& stop) {
    work.order.assign(1, slot);
    start(work);
    const Change change = extend_by_one({kRoot, 0, 1, 0.0, rng_.exponential()}, points, work, stop);
    finish(points, work, stop);
    return change;
  }

  // See tree_forget.hpp.
  void forget_one(Slot slot, const Points& points, Workspace& work, StopProbe& stop);
  NodeIndex leaf_of(Slot slot, const float* row) const;
  void unlink(Slot slot, NodeIndex leaf);
  void relabel(const Move& move);
  void set_next(Slot before, Slot slot);
  NodeIndex replace_by_sibling(NodeIndex leaf);
  bool may_join(NodeIndex j, const Points& points) const;
  NodeIndex join(NodeIndex j, const Points& points, Workspace& work, StopProbe& stop);
  void move_node(NodeIndex from, NodeIndex to);
  NodeIndex remove_pair(NodeIndex pair, NodeIndex j);
  bool shrink_leaf_box(NodeIndex leaf, const float* row, const Points& points, Workspace& work);
  void set_shrunk(NodeIndex j, bool knows_moved, const float* row, const Value& value, const Points& points,
                  Workspace& work);
  void shrink_whole_box(NodeIndex j, const Points& points, Workspace& work);
  void shrink_box(NodeIndex j, const float* row, const Points& points, Workspace& work);
  bool has_few_points(NodeIndex j) const;

  // Sets internal nodes from their children.
  void finish(const Points& points, Workspace& work, StopProbe& stop) {
    for (auto unset = work.unset.rbegin(); unset != work.unset.rend(); ++unset) {
      const NodeIndex j = unset->node;
      if (unset->is_new && nodes_.has_box(j)) set_box_from_children(j, points, work);
      combine(j);
      if (work.may_stop) stop.tick(n_features());
    }
  }

  void set_box_from_children(NodeIndex j, const Points& points, Workspace& work) {
    start_box(nodes_.lower(j), nodes_.upper(j), box(nodes_[j].left, points, work.inner), n_features());
    include(nodes_.lower(j), nodes_.upper(j), box(nodes_[j].right(), points, work.inner), n_features());
  }

  void combine(NodeIndex j) { target_.combine(j, nodes_[j].left, nodes_[j].right()); }

  // Sets what the target keeps of each node anew.
  void set_target(const Points& points) {
    if (empty()) return;
    const std::vector<NodeIndex> order = parents_first(nodes_);
    std::vector<Slot> slots;
    for (auto j = order.rbegin(); j != order.rend(); ++j) {
      target_.set_time(*j, nodes_.split_time(*j));
      if (!nodes_[*j].is_leaf()) {
        combine(*j);
        continue;
      }
      target_.clear(*j);
      find_points(*j, slots);
      target_.add_to_leaf(*j, 0, kNoSlot, points, slots);
    }
  }

  // The points of a leaf, the oldest first: so what is added up is the same as when they came, to the last bit.
  void find_points(NodeIndex leaf, std::vector<Slot>& slots) const {
    slots.clear();
    for (Slot slot = nodes_[leaf].first_point; slot != kNoSlot; slot = next_point(slot)) slots.push_back(slot);
    std::ranges::reverse(slots);
  }

  static std::span<Slot> slots_between(std::size_t begin, std::size_t end, Workspace& work) {
    return std::span(work.order).subspan(begin, end - begin);
  }

  // Algorithm 2, with pausing Algorithm 9: samples a block from its points, and all blocks below it. `work.bounds`
  // must contain the points' box.
  void sample_blocks(Block first, Coordinates at, const Points& points, Workspace& work, StopProbe& stop) {
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
      work.unset.push_back({block.node, true});
      const std::size_t d = cut.dimension;
      const std::size_t middle = block.begin + at.partition(d, cut.location, slots, work.spare);
      const Bounds::Mark mark = work.bounds.mark();
      work.blocks.push_back({left + 1, middle, block.end, cut.time, mark, d, {cut.location, cut.range.upper}});
      work.blocks.push_back({left, block.begin, middle, cut.time, mark, d, {cut.range.lower, cut.location}});
    }
  }

  // Algorithm 2 somewhere in a tree, from points that are new or come out of a pause.
  void sample_block(NodeIndex j, std::size_t begin, std::size_t end, double birth_time, const Points& points,
                    Workspace& work, StopProbe& stop) {
    const std::span<const Slot> slots = slots_between(begin, end, work);
    if (!is_small(slots.size())) {
      work.inner.assign(points.box(slots.front()), n_features());
      include_points(work.inner.lower(), work.inner.upper(), points, slots.subspan(1), work, stop);
      work.bounds.start(weights(), work.inner.view(), n_features());
    }
    sample_blocks({j, begin, end, birth_time, 0, kNoDimension, {}}, Coordinates::of(points), points, work, stop);
  }

  // Algorithm 4, with pausing Algorithm 10, for a set of points.
  // Differs from the paper: for a set of new points, not one; and one clock of rate 1 runs down the tree, where the
  // paper draws a time at each node. The same law: an exponential that has not rung is as good as new.
  void extend_block(const Task& task, const Points& points, Workspace& work, StopProbe& stop) {
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
    if constexpr (Target::kFromChildren) {
      work.unset.push_back({j, false});
    } else {
      target_.absorb(j, points, slots);
    }
    const Node node = nodes_[j];
    const std::size_t d = static_cast<std::size_t>(node.split_dimension);
    const std::size_t middle =
        task.begin + Coordinates::of(points).partition(d, node.split_location, slots, work.spare);
    const double clock = run_down(task.clock, rate, split_time - task.birth_time);
    const bool both = task.begin < middle && middle < task.end;
    if (middle < task.end) {
      work.tasks.push_back({node.right(), middle, task.end, split_time, both ? rng_.exponential() : clock});
    }
    if (task.begin < middle) work.tasks.push_back({node.left, task.begin, middle, split_time, clock});
  }

  // The same for one point, which goes down one path, `work.path`, and ends at the first cut. Boxes lie in one another
  // along a path: only those at its end, which the point is outside of, count or change.
  Change extend_by_one(const Task& task, const Points& points, Workspace& work, StopProbe& stop) {
    const Slot slot = work.order[task.begin];
    const float* row = points.row(slot);
    std::vector<NodeIndex>& path = work.path;
    const NodeIndex leaf = path.back();
    const bool is_paused = target_.is_paused(leaf, nodes_[leaf].n_points);
    if (is_paused) path.pop_back();  // it sees to itself

    const std::size_t first = find_rates(row, points, work);
    double birth_time = first == 0 ? task.birth_time : nodes_.split_time(path[first - 1]);
    double clock = task.clock;
    std::size_t end = first;  // of the nodes that the point passes
    for (; end < path.size(); ++end) {
      const double rate = work.rates[end], split_time = nodes_.split_time(path[end]);
      const double time = birth_time + clock / rate;
      if (time < split_time) {
        grow_boxes_by_one(first, end, row, points, work);
        cut_above_by_one(path[end], time, rate, slot, points, work);
        set_passed(end, points.value(slot), work);
        return {end, path[end]};
      }
      clock = run_down(clock, rate, split_time - birth_time);
      birth_time = split_time;
    }
    grow_boxes_by_one(first, end, row, points, work);
    if (is_paused) {
      if (!path.empty()) birth_time = nodes_.split_time(path.back());
      if constexpr (Target::kFromChildren) {  // the children of the leaf to be are not set before the end
        for (const NodeIndex j : path) work.unset.push_back({j, false});
      } else {
        set_passed(path.size(), points.value(slot), work);
      }
      extend_paused_leaf({leaf, task.begin, task.end, birth_time, clock}, points, work, stop);
    } else {
      add_to_leaf(leaf, points, std::span(&slot, 1));
      path.pop_back();
      set_passed(path.size(), points.value(slot), work);
    }
    return {path.size(), leaf};  // perhaps
  }

  // The rates at which the row extends the nodes of the path. Returns the first from where on they are positive;
  // only from there they are set.
  std::size_t find_rates(const float* row, const Points& points, Workspace& work) const {
    std::size_t first = work.path.size();
    work.rates.resize(first);
    work.separation.start(weights(), row, n_features());
    while (first > 0) {
      const double rate = work.separation.next_rate(box(work.path[first - 1], points, work.inner));
      if (!(rate > 0.0)) break;
      work.rates[--first] = rate;
    }
    return first;
  }

  // Grows the boxes of the nodes [0, end) of the path. The row is outside from `first` on; before, it may be in a
  // feature of no weight, or by so little that the rate is 0 all the same.
  void grow_boxes_by_one(std::size_t first, std::size_t end, const float* row, const Points& points, Workspace& work) {
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

  // Tells the target of one more value below the nodes [0, end) of the path.
  void set_passed(std::size_t end, const Value& value, Workspace& work) {
    if constexpr (Target::kFromChildren) {
      for (; end > 0; --end) combine(work.path[end - 1]);
    } else {
      while (end > 0 && target_.absorb_one(work.path[end - 1], value)) --end;
    }
  }

  static double run_down(double clock, double rate, double duration) {
    return rate > 0.0 ? std::max(clock - rate * duration, 0.0) : clock;
  }

  // Gives new points to a paused leaf, which may end its pause. False if the node is something else.
  bool extend_paused_leaf(const Task& task, const Points& points, Workspace& work, StopProbe& stop) {
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

  struct SmallBlock {
    BoxView box;
    std::int32_t n_points;  // kFewPoints + 1 if there are more
  };

  SmallBlock known_block(NodeIndex j, const Points& points, BoxBuffer& buffer) const {
    if (nodes_.has_box(j)) return {nodes_.stored_box(j), kFewPoints + 1};
    return small_block(j, points, buffer);
  }

  // f(slot) for each point of a node that has few, from left to right.
  template <class F>
  void for_each_of_few(NodeIndex j, F f) const {
    std::array<NodeIndex, kFewPoints> pending;  // each has a point of its own
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

  // The box of a node without a stored one, from its few points.
  SmallBlock small_block(NodeIndex j, const Points& points, BoxBuffer& buffer) const {
    std::array<const float*, kFewPoints> rows;
    std::size_t n = 0;
    for_each_of_few(j, [&](Slot slot) { rows[n++] = points.row(slot); });
    if (n == 1) return {{rows[0], rows[0]}, 1};
    buffer.resize(n_features());
    set_hull(buffer.lower(), buffer.upper(), n, [&rows](std::size_t i) { return rows[i]; }, n_features());
    return {buffer.view(), static_cast<std::int32_t>(n)};
  }

  // Puts a new node above j, with a cut at `time` around the box of j but outside it. The points on the far side of
  // the cut become its other child; those on the near side go on to what was j, which is now born at `time`.
  void cut_above(const Task& task, double time, double rate, const SmallBlock& block, const Points& points,
                 Workspace& work, StopProbe& stop) {
    const GapCut cut = sample_gap_cut(rng_, *measure_, block.box, work.outer.view(), rate, time);
    const auto [near, far] = lift(task.node, cut);
    const std::span<Slot> slots = slots_between(task.begin, task.end, work);
    if (block.n_points + static_cast<std::int32_t>(slots.size()) > kFewPoints) nodes_.add_box(task.node);
    work.unset.push_back({task.node, true});

    const std::size_t middle =
        task.begin + Coordinates::of(points).partition(cut.dimension, cut.location, slots, work.spare);
    const std::size_t far_begin = cut.is_upper ? middle : task.begin, far_end = cut.is_upper ? task.end : middle;
    const std::size_t near_begin = cut.is_upper ? task.begin : middle, near_end = cut.is_upper ? middle : task.end;
    sample_block(far, far_begin, far_end, time, points, work, stop);
    if (near_begin < near_end) work.tasks.push_back({near, near_begin, near_end, time, rng_.exponential()});
  }

  // The same for one point, which is the far side.
  void cut_above_by_one(NodeIndex j, double time, double rate, Slot slot, const Points& points, Workspace& work) {
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

  struct Children {
    NodeIndex near, far;
  };

  // Moves node j one level down and puts a cut where it was, so that links to it need not change. The box stays with
  // the node that moves.
  Children lift(NodeIndex j, const GapCut& cut) {
    const NodeIndex left = add_nodes(2);
    const NodeIndex near = cut.is_upper ? left : left + 1, far = cut.is_upper ? left + 1 : left;
    move_node(j, near);
    nodes_[j] = Node();
    cut_node(j, cut, left);
    return {near, far};
  }

  // Turns a node into an internal one; returns the left one of its new children.
  NodeIndex split(NodeIndex j, const Cut& cut) {
    const NodeIndex left = add_nodes(2);
    cut_node(j, cut, left);
    return left;
  }

  void cut_node(NodeIndex j, const Cut& cut, NodeIndex left) {
    Node& node = nodes_[j];
    node.left = left;
    node.split_dimension = static_cast<std::int32_t>(cut.dimension);
    node.split_location = cut.location;
    set_split_time(j, cut.time);
    links_.set_node(j, node);
  }

  void set_split_time(NodeIndex j, double time) {
    nodes_.split_time(j) = time;
    target_.set_time(j, time);
  }

  void start_leaf(NodeIndex j) {
    Node& leaf = nodes_[j];
    leaf.first_point = kNoSlot;
    leaf.split_dimension = Node::kLeaf;
    leaf.n_points = 0;
    set_split_time(j, lifetime_);
  }

  void start_leaf(NodeIndex j, const Points& points, std::span<const Slot> slots, Workspace& work, StopProbe& stop) {
    start_leaf(j);
    add_to_leaf(j, points, slots);
    if (slots.size() > kFewPoints) {
      nodes_.add_box(j);
      set_leaf_box(j, points, [&] {
        if (work.may_stop) stop.tick(n_features());
      });
    }
  }

  // Calls tick() for each point.
  template <class Tick>
  void set_leaf_box(NodeIndex j, const Points& points, Tick tick) {
    Slot slot = nodes_[j].first_point;
    start_box(nodes_.lower(j), nodes_.upper(j), points.box(slot), n_features());
    while ((slot = next_point(slot)) != kNoSlot) {
      include(nodes_.lower(j), nodes_.upper(j), points.box(slot), n_features());
      tick();
    }
  }

  // Puts the points into the list of the leaf. Its box is another matter.
  void add_to_leaf(NodeIndex j, const Points& points, std::span<const Slot> slots) {
    Node& leaf = nodes_[j];
    target_.add_to_leaf(j, leaf.n_points, leaf.first_point, points, slots);
    for (const Slot slot : slots) {
      next_[static_cast<std::size_t>(slot)] = leaf.first_point;
      links_.set_before(leaf.first_point, slot);
      leaf.first_point = slot;
    }
    links_.set_before(leaf.first_point, ~j);
    leaf.n_points += static_cast<std::int32_t>(slots.size());
  }

  // Sets the box of a node that now has `n_points`.
  void grow_box(NodeIndex j, std::int32_t n_points, BoxView outer) {
    if (n_points <= kFewPoints) return;
    nodes_.add_box(j);
    start_box(nodes_.lower(j), nodes_.upper(j), outer, n_features());
  }

  void include_points(float* lower, float* upper, const Points& points, std::span<const Slot> slots,
                      const Workspace& work, StopProbe& stop) const {
    for (const Slot slot : slots) {
      include(lower, upper, points.box(slot), n_features());
      if (work.may_stop) stop.tick(n_features());
    }
  }

  double lifetime_;
  NodeStore nodes_;
  Target target_;
  TargetMeasurePointer measure_;
  Rng rng_;
  std::vector<Slot> next_;  // per slot: the next point of the same leaf
  TreeLinks links_;
};

}  // namespace onlineforest

#include "tree/forget.hpp"  // IWYU pragma: export
