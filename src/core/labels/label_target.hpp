// The labels that a classification tree keeps at its nodes, and when a block may pause. Knows no boxes, cuts or times.
//
// Interpolated Kneser-Ney smoothing (the paper's appendix A) sets tab_jk = min(c_jk, 1), and c_jk of an internal
// node counts the children that hold label k. So an internal node needs only the set of the labels below it, and only
// leaves need counts: a leaf with one label its number of points, a mixed leaf a block of counts in the order of its
// set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/block_arena.hpp"
#include "labels/label_sets.hpp"
#include "points/point_store.hpp"
#include "process/measure.hpp"
#include "tree/pausing.hpp"

namespace onlineforest {

struct LabelPrior {
  double leaf_discount = 0.0;  // lower bound on d_j of a leaf

  bool operator==(const LabelPrior&) const = default;
};

class LabelTarget : public PausingRule<LabelTarget> {
 public:
  using Value = Label;
  using Prior = LabelPrior;
  using Points = PointStore<Value>;
  using Slots = std::span<const Slot>;

  static constexpr bool kFromChildren = false, kKeepsOrder = false;  // see TreeTarget

  explicit LabelTarget(std::int32_t min_samples_split) : PausingRule(min_samples_split) {}

  // A target without nodes, with the same pausing rule and the same number of classes.
  LabelTarget empty_copy() const {
    LabelTarget copy(min_samples_split());
    copy.sets_ = sets_.empty_copy();
    return copy;
  }

  // Label sets and counts depend on neither the measure nor the split times.
  void set_measure(const MeasureWith<LabelPrior>&) {}
  void set_time(NodeIndex, double) {}

  void reserve_classes(std::int32_t n_classes) { sets_.reserve_classes(n_classes); }

  void expect_nodes(std::size_t n_nodes) { sets_.expect_nodes(n_nodes); }

  void reserve_nodes(std::size_t n_nodes) { sets_.reserve_nodes(n_nodes); }

  bool holds_only(NodeIndex leaf, const Node&, const Points&, Label label) const {
    return sets_.size(leaf) == 1 && sets_.contains(leaf, label);
  }

  // Adds points to a leaf that holds `n_points`, 0 for a new leaf.
  void add_to_leaf(NodeIndex leaf, std::int32_t n_points, Slot, const Points& points, Slots slots) {
    for (const Slot slot : slots) add_one(leaf, n_points++, points.value(slot));
  }

  // Removes a point from a leaf that keeps at least one other.
  template <class Others>
  void remove_from_leaf(NodeIndex leaf, const Points&, Label label, std::int32_t, Others) {
    const BlockArena::Offset old = counts(leaf);
    if (old == kNoCounts) return;  // all are of this label
    const std::uint32_t position = sets_.rank(leaf, label), size = sets_.size(leaf);
    if (--arena_.data(old)[position] > 0) return;
    if (size == 2) {  // no longer mixed
      arena_.release(old, 2);
      set_counts(leaf, kNoCounts);
    } else {
      set_counts(leaf, arena_.erase(old, size, position));
    }
    sets_.erase(leaf, label);
  }

  // Number of distinct labels at a node.
  std::size_t size(NodeIndex j) const { return sets_.size(j); }

  // Whether a leaf holds different labels.
  bool is_mixed(NodeIndex leaf) const { return sets_.size(leaf) > 1; }

  // Removes the last nodes; they hold nothing.
  void truncate(std::size_t n_nodes) {
    sets_.truncate(n_nodes);
    if (counts_.size() > n_nodes) counts_.resize(n_nodes);
  }

  // Adds the labels of points that pass through an internal node.
  void absorb(NodeIndex j, const Points& points, Slots slots) {
    for (const Slot slot : slots) absorb_one(j, points.value(slot));
  }

  // Adds one label to an internal node. Returns false if the node held it already.
  bool absorb_one(NodeIndex j, Label label) {
    if (sets_.contains(j, label)) return false;
    sets_.insert(j, label);
    return true;
  }

  // Sets an internal node from its children.
  void combine(NodeIndex j, NodeIndex left, NodeIndex right) { sets_.assign_union(j, left, right); }

  // Updates an internal node after a child lost a point with this label. Returns false if the node still holds the
  // label.
  bool remove_one(NodeIndex j, NodeIndex left, NodeIndex right, Label label) {
    if (sets_.contains(left, label) || sets_.contains(right, label)) return false;
    sets_.erase(j, label);
    return true;
  }

  // Empties a leaf.
  void clear(NodeIndex leaf) {
    if (counts(leaf) != kNoCounts) arena_.release(counts(leaf), sets_.size(leaf));
    set_counts(leaf, kNoCounts);
    sets_.clear(leaf);
  }

  // Moves the contents of a node to an empty one.
  void move(NodeIndex from, NodeIndex to) {
    sets_.move(from, to);
    set_counts(to, counts(from));
    set_counts(from, kNoCounts);
  }

  std::size_t nbytes() const { return sets_.nbytes() + counts_.capacity() * sizeof(counts_[0]) + arena_.nbytes(); }

  const LabelSets& sets() const { return sets_; }

  // Calls f(label, count) for each label of a leaf with `n_points`, in increasing order.
  template <class F>
  void for_each_count(NodeIndex leaf, std::int32_t n_points, F f) const {
    if (counts(leaf) == kNoCounts) {
      sets_.for_each(leaf, [&](Label label) { f(label, static_cast<std::uint32_t>(n_points)); });
    } else {
      const std::uint32_t* count = arena_.data(counts(leaf));
      sets_.for_each(leaf, [&](Label label) { f(label, *count++); });
    }
  }

 private:
  static constexpr BlockArena::Offset kNoCounts = ~BlockArena::Offset{0};

  void add_one(NodeIndex leaf, std::int32_t n_points, Label label) {
    const BlockArena::Offset old = counts(leaf);
    if (sets_.contains(leaf, label)) {
      if (old != kNoCounts) ++arena_.data(old)[sets_.rank(leaf, label)];
      return;
    }
    const std::uint32_t position = sets_.rank(leaf, label);
    if (old != kNoCounts) {
      set_counts(leaf, arena_.insert(old, sets_.size(leaf), position, 1));
    } else if (n_points > 0) {  // the leaf becomes mixed
      const BlockArena::Offset fresh = arena_.allocate(2);
      arena_.data(fresh)[position] = 1;
      arena_.data(fresh)[1 - position] = static_cast<std::uint32_t>(n_points);
      set_counts(leaf, fresh);
    }
    sets_.insert(leaf, label);
  }

  BlockArena::Offset counts(NodeIndex j) const {
    const std::size_t index = static_cast<std::size_t>(j);
    return index < counts_.size() ? counts_[index] : kNoCounts;
  }

  void set_counts(NodeIndex j, BlockArena::Offset offset) {
    const std::size_t index = static_cast<std::size_t>(j);
    if (index >= counts_.size()) {
      if (offset == kNoCounts) return;
      resize_tightly(counts_, index + 1, kNoCounts);
    }
    counts_[index] = offset;
  }

  LabelSets sets_;
  std::vector<BlockArena::Offset> counts_;  // per node up to the last mixed leaf; kNoCounts unless mixed
  BlockArena arena_;
};

}  // namespace onlineforest
