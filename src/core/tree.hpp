// One Mondrian tree: sampled from a set of points at once, and extended by further sets, with the same law.
// Knows nothing of forests, threads or predictions; `Target` says what is kept about labels and when to pause.
//
// The paper's four growing algorithms (batch and online, each with and without pausing) are one recursion on a set
// of new points: a set on an empty tree is Algorithm 2, a set of one on a tree is Algorithm 4. The recursion is a
// stack of tasks, because hostile data make trees as deep as they have points.
//
// The order of draws is fixed: time, then dimension (and side), then location; far before near, left before right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "box.hpp"
#include "measure.hpp"
#include "node_store.hpp"
#include "point_store.hpp"
#include "rng.hpp"
#include "stop.hpp"

namespace onlineforest {

// Scratch memory of one worker, reused from tree to tree.
struct Workspace {
  enum class Kind { kSample, kExtend };
  // A node that is yet to receive the points order[begin, end); `birth_time` is the split time of its parent.
  struct Task {
    Kind kind;
    NodeIndex node;
    std::size_t begin, end;
    double birth_time;
  };

  std::vector<Slot> order;
  std::vector<Task> tasks;
  std::vector<NodeIndex> created;  // internal nodes made by this call, parents before children
  std::vector<float> lower, upper;
  bool may_stop = false;  // whether the work at hand may be thrown away half done
};

template <class Target>
class Tree {
 public:
  using Value = typename Target::Value;
  using Points = PointStore<Value>;

  Tree(std::size_t n_features, double lifetime, Target target, Rng rng)
      : lifetime_(lifetime), nodes_(n_features), target_(std::move(target)), rng_(rng) {}

  bool empty() const { return root_ == kNoNode; }
  NodeIndex root() const { return root_; }
  double lifetime() const { return lifetime_; }
  const NodeStore& nodes() const { return nodes_; }
  const Target& target() const { return target_; }
  const Measure& measure() const { return measure_; }
  const Rng& rng() const { return rng_; }

  // The tree holds the points of the slots [0, n_points).
  std::size_t n_points() const { return next_.size(); }

  Slot next_point(Slot slot) const { return next_[static_cast<std::size_t>(slot)]; }

  Target& target() { return target_; }
  void set_discount_rate(double rate) { measure_.discount_rate = rate; }

  // Grows the tree afresh from the first `n` points. If stopped, the tree is as it was.
  void grow(const Points& points, std::size_t n, const Measure& measure, Workspace& work, StopProbe& stop) {
    Tree fresh(n_features(), lifetime_, target_.empty_copy(), rng_);
    fresh.measure_ = measure;
    work.may_stop = true;
    fresh.learn(points, n, work, stop);
    *this = std::move(fresh);
  }

  // Learns the points of the slots [n_points(), end) as one set. Cannot be stopped, for half of it would be no
  // tree, unless a giant leaf is taken out of its pause, which may take long: then a stop leaves the tree empty,
  // to be grown afresh. So does running out of memory.
  void extend(const Points& points, std::size_t end, Workspace& work, StopProbe& stop) {
    work.may_stop = false;
    const Rng before = rng_;
    try {
      learn(points, end, work, stop);
    } catch (...) {
      clear();
      rng_ = before;
      throw;
    }
  }

 private:
  friend class Archive;

  using Task = Workspace::Task;
  using Kind = Workspace::Kind;

  static constexpr std::size_t kGiantBlock = std::size_t{1} << 24;  // numbers: points times features

  void learn(const Points& points, std::size_t end, Workspace& work, StopProbe& stop) {
    const std::size_t n = end - n_points();
    work.order.resize(n);
    std::iota(work.order.begin(), work.order.end(), static_cast<Slot>(n_points()));
    work.tasks.clear();
    work.created.clear();
    next_.resize(end, kNoSlot);
    if (empty()) {
      root_ = add_node(kNoNode);
      work.tasks.push_back({Kind::kSample, root_, 0, n, 0.0});
    } else {
      work.tasks.push_back({Kind::kExtend, root_, 0, n, 0.0});
    }
    run(points, work, stop);
  }

  std::size_t n_features() const { return nodes_.n_features(); }
  const double* weights() const { return measure_.weights.data(); }

  NodeIndex add_node(NodeIndex parent) {
    const NodeIndex j = nodes_.add(parent);
    target_.reserve_nodes(nodes_.size());
    return j;
  }

  void clear() {
    nodes_ = NodeStore(n_features());
    target_ = target_.empty_copy();
    next_.clear();
    root_ = kNoNode;
  }

  void run(const Points& points, Workspace& work, StopProbe& stop) {
    while (!work.tasks.empty()) {
      const Task task = work.tasks.back();
      work.tasks.pop_back();
      if (task.kind == Kind::kSample) {
        sample_block(task, points, work, stop);
      } else {
        extend_block(task, points, work, stop);
      }
    }
    for (auto j = work.created.rbegin(); j != work.created.rend(); ++j) {
      target_.combine(*j, nodes_[*j].left, nodes_[*j].right);
    }
  }

  static std::span<Slot> slots_of(const Task& task, Workspace& work) {
    return std::span(work.order).subspan(task.begin, task.end - task.begin);
  }

  // Algorithm 2, with pausing Algorithm 9: samples the block of `task.node` from its points.
  void sample_block(const Task& task, const Points& points, Workspace& work, StopProbe& stop) {
    const NodeIndex j = task.node;
    const std::span<Slot> slots = slots_of(task, work);
    start_box(nodes_.lower(j), nodes_.upper(j), points.row(slots.front()), n_features());
    include_points(nodes_.lower(j), nodes_.upper(j), points, slots.subspan(1), work, stop);

    if (!target_.may_pause(points, slots)) {
      const BoxView box = nodes_.box(j);
      const double rate = linear_dimension(weights(), box, n_features());
      const double time = task.birth_time + rng_.exponential(rate);
      if (time < lifetime_) {
        const std::size_t d = rng_.choose(
            rate, n_features(), [&](std::size_t i) { return weights()[i] * length(box.lower[i], box.upper[i]); });
        split(j, time, d, rng_.location(box.lower[d], box.upper[d]));
        const NodeIndex left = add_node(j), right = add_node(j);
        nodes_[j].left = left;
        nodes_[j].right = right;
        work.created.push_back(j);
        const std::size_t middle = partition(nodes_[j], task, points, work);
        work.tasks.push_back({Kind::kSample, right, middle, task.end, time});
        work.tasks.push_back({Kind::kSample, left, task.begin, middle, time});
        return;
      }
    }
    nodes_[j].split_time = lifetime_;
    nodes_[j].first_point = kNoSlot;
    nodes_[j].n_points = 0;
    add_to_leaf(j, points, slots);
  }

  // Algorithm 4, with pausing Algorithm 10.
  // Differs from the paper: for a set of new points, not one.
  void extend_block(const Task& task, const Points& points, Workspace& work, StopProbe& stop) {
    const NodeIndex j = task.node;
    const std::span<Slot> slots = slots_of(task, work);

    if (nodes_[j].is_leaf() && target_.is_paused(j, nodes_[j].n_points)) {
      if (target_.stays_paused(j, nodes_[j].n_points, points, slots)) {
        include_points(nodes_.lower(j), nodes_.upper(j), points, slots, work, stop);
        add_to_leaf(j, points, slots);
      } else {
        sample_block(unpause(task, work), points, work, stop);
      }
      return;
    }

    const std::size_t n = n_features();
    const BoxView box = nodes_.box(j);
    work.lower.assign(box.lower, box.lower + n);
    work.upper.assign(box.upper, box.upper + n);
    include_points(work.lower.data(), work.upper.data(), points, slots, work, stop);
    const BoxView outer{work.lower.data(), work.upper.data()};

    const double rate = extension_rate(weights(), box, outer, n);
    const double time = task.birth_time + rng_.exponential(rate);
    if (time < nodes_[j].split_time) {
      cut_above(task, time, rate, outer, points, work);
      return;
    }

    std::copy_n(outer.lower, n, nodes_.lower(j));
    std::copy_n(outer.upper, n, nodes_.upper(j));
    if (nodes_[j].is_leaf()) {
      add_to_leaf(j, points, slots);
      return;
    }
    target_.absorb(j, points, slots);
    const std::size_t middle = partition(nodes_[j], task, points, work);
    const double split_time = nodes_[j].split_time;
    if (middle < task.end) work.tasks.push_back({Kind::kExtend, nodes_[j].right, middle, task.end, split_time});
    if (task.begin < middle) work.tasks.push_back({Kind::kExtend, nodes_[j].left, task.begin, middle, split_time});
  }

  // Puts a new node above j, with a cut at `time` in `outer` but outside the box of j. The points on the far side
  // of the cut become its other child; those on the near side go on to j, which is now born at `time`.
  void cut_above(const Task& task, double time, double rate, BoxView outer, const Points& points, Workspace& work) {
    const NodeIndex j = task.node;
    const BoxView box = nodes_.box(j);
    const std::size_t gap =
        rng_.choose(rate, 2 * n_features(), [&](std::size_t g) { return gap_weight(weights(), box, outer, g); });
    const std::size_t d = gap / 2;
    const bool is_upper = gap % 2 == 1;
    const float location =
        is_upper ? rng_.location(box.upper[d], outer.upper[d]) : rng_.location(outer.lower[d], box.lower[d]);

    const NodeIndex above = add_node(nodes_[j].parent);
    const NodeIndex far = add_node(above);
    replace_child(nodes_[above].parent, j, above);
    nodes_[j].parent = above;
    split(above, time, d, location);
    nodes_[above].left = is_upper ? j : far;
    nodes_[above].right = is_upper ? far : j;
    std::copy_n(outer.lower, n_features(), nodes_.lower(above));
    std::copy_n(outer.upper, n_features(), nodes_.upper(above));
    work.created.push_back(above);

    const std::size_t middle = partition(nodes_[above], task, points, work);
    Task to_left{Kind::kExtend, j, task.begin, middle, time};
    Task to_right{Kind::kExtend, j, middle, task.end, time};
    Task& to_near = is_upper ? to_left : to_right;
    Task& to_far = is_upper ? to_right : to_left;
    to_far.kind = Kind::kSample;
    to_far.node = far;
    if (to_near.begin < to_near.end) work.tasks.push_back(to_near);
    work.tasks.push_back(to_far);
  }

  // Takes the points out of a paused leaf, to be sampled together with the new ones.
  Task unpause(const Task& task, Workspace& work) {
    const NodeIndex j = task.node;
    const std::size_t begin = work.order.size();
    for (Slot slot = nodes_[j].first_point; slot != kNoSlot; slot = next_point(slot)) work.order.push_back(slot);
    for (std::size_t i = task.begin; i < task.end; ++i) {
      const Slot slot = work.order[i];
      work.order.push_back(slot);
    }
    target_.clear(j);
    if ((work.order.size() - begin) * n_features() >= kGiantBlock) work.may_stop = true;
    return {Kind::kSample, j, begin, work.order.size(), task.birth_time};
  }

  void split(NodeIndex j, double time, std::size_t dimension, float location) {
    nodes_[j].split_time = time;
    nodes_[j].split_dimension = static_cast<std::int32_t>(dimension);
    nodes_[j].split_location = location;
  }

  void replace_child(NodeIndex parent, NodeIndex old, NodeIndex now) {
    if (parent == kNoNode) {
      root_ = now;
    } else {
      (nodes_[parent].left == old ? nodes_[parent].left : nodes_[parent].right) = now;
    }
  }

  void add_to_leaf(NodeIndex j, const Points& points, std::span<const Slot> slots) {
    Node& leaf = nodes_[j];
    target_.add_to_leaf(j, leaf.n_points, points, slots);
    for (const Slot slot : slots) {
      next_[static_cast<std::size_t>(slot)] = leaf.first_point;
      leaf.first_point = slot;
    }
    leaf.n_points += static_cast<std::int32_t>(slots.size());
  }

  void include_points(float* lower, float* upper, const Points& points, std::span<const Slot> slots,
                      const Workspace& work, StopProbe& stop) const {
    for (const Slot slot : slots) {
      include(lower, upper, points.box(slot), n_features());
      if (work.may_stop) stop.tick(n_features());
    }
  }

  // Sorts the points of the task into those left of the node's cut and the others; returns where these begin.
  static std::size_t partition(const Node& node, const Task& task, const Points& points, Workspace& work) {
    const auto begin = work.order.begin() + static_cast<std::ptrdiff_t>(task.begin);
    const auto end = work.order.begin() + static_cast<std::ptrdiff_t>(task.end);
    const auto middle = std::partition(
        begin, end, [&](Slot slot) { return points.row(slot)[node.split_dimension] <= node.split_location; });
    return static_cast<std::size_t>(middle - work.order.begin());
  }

  double lifetime_;
  NodeStore nodes_;
  NodeIndex root_ = kNoNode;
  Target target_;
  Measure measure_;
  Rng rng_;
  std::vector<Slot> next_;  // per slot: the next point of the same leaf
};

}  // namespace onlineforest
