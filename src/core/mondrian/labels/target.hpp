// The labels that a classification tree keeps at its nodes, and when a block may pause. Knows no boxes, cuts or times.
//
// Interpolated Kneser-Ney smoothing (the paper's appendix A) sets tab_jk = min(c_jk, 1). In a leaf, c_jk is how often
// the points of label k count; in an internal node, it is the number of children that hold the label. So an internal
// node needs only the set of the labels below it, and a leaf with a single label whose points count once only their
// number. Any other leaf has a block of counts in the order of its set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/block_arena.hpp"
#include "base/compiler.hpp"
#include "mondrian/labels/sets.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/tree/pausing.hpp"

namespace onlineforest::mondrian {

class LabelTarget : public PausingRule<LabelTarget> {
 public:
  using Count = std::int32_t;  // how often points of a leaf count together
  using Slots = std::span<const Slot>;

  explicit LabelTarget(std::int32_t min_samples_split) : PausingRule(min_samples_split) {}

  // A target without nodes, with the same pausing rule and the same number of classes.
  LabelTarget empty_copy() const {
    LabelTarget copy(min_samples_split());
    copy.sets_ = sets_.empty_copy();
    return copy;
  }

  void reserve_classes(std::int32_t n_classes) { sets_.reserve_classes(n_classes); }

  void expect_nodes(std::size_t n_nodes) { sets_.expect_nodes(n_nodes); }

  void reserve_nodes(std::size_t n_nodes) { sets_.reserve_nodes(n_nodes); }

  bool holds_only(NodeIndex leaf, Label label) const { return sets_.size(leaf) == 1 && sets_.contains(leaf, label); }

  // Adds points to a leaf that holds `n_points`, 0 for a new leaf.
  void add_to_leaf(NodeIndex leaf, std::int32_t n_points, const PointStore& points, Slots slots) {
    for (const Slot slot : slots) add_one(leaf, n_points++, points.label(slot), points.count(slot));
  }

  // Removes a point from a leaf that keeps `n_left` >= 1 others.
  void remove_from_leaf(NodeIndex leaf, const PointStore& points, Slot slot, std::int32_t n_left) {
    const Offset old = counts(leaf);
    if (old == kNoCounts) return;  // all are of this label, and count once
    const Label label = points.label(slot);
    const std::uint32_t position = sets_.rank(leaf, label), size = sets_.size(leaf);
    Count& count = arena_.data(old)[position];
    count -= points.count(slot);
    if (count == 0) {
      set_counts(leaf, arena_.erase(old, size, position));
      sets_.erase(leaf, label);
    }
    drop_plain_counts(leaf, n_left);
  }

  // Follows a change of how often a point of a leaf counts, which holds `n_points`.
  void add_count(NodeIndex leaf, std::int32_t n_points, Label label, std::int32_t by) {
    if (counts(leaf) == kNoCounts) {
      set_single_count(leaf, n_points + by);
    } else {
      arena_.data(counts(leaf))[sets_.rank(leaf, label)] += by;
    }
    drop_plain_counts(leaf, n_points);
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
  void absorb(NodeIndex j, const PointStore& points, Slots slots) {
    for (const Slot slot : slots) absorb_one(j, points.label(slot));
  }

  // Adds one label to an internal node. Returns false if the node held it already.
  bool absorb_one(NodeIndex j, Label label) {
    if (sets_.contains(j, label)) return false;
    sets_.insert(j, label);
    return true;
  }

  // Sets an internal node from its children.
  void combine(NodeIndex j, NodeIndex left, NodeIndex right) { sets_.assign_union(j, left, right); }

  // Updates an internal node after a child lost a point with this label. Returns false if no node above changes.
  bool remove_one(NodeIndex j, NodeIndex left, NodeIndex right, Label label) {
    if (sets_.contains(left, label) || sets_.contains(right, label)) return false;
    sets_.erase(j, label);
    return true;
  }

  // Empties a node.
  void clear(NodeIndex j) {
    drop_counts(j);
    sets_.clear(j);
  }

  // Moves the contents of a node to an empty one.
  void move(NodeIndex from, NodeIndex to) {
    sets_.move(from, to);
    set_counts(to, counts(from));
    set_counts(from, kNoCounts);
  }

  std::size_t nbytes() const { return sets_.nbytes() + counts_.capacity() * sizeof(counts_[0]) + arena_.nbytes(); }

  const LabelSets& sets() const { return sets_; }

  ONLINEFOREST_ALWAYS_INLINE void prefetch_state(NodeIndex j) const { sets_.prefetch(j); }

  // Whether a node has no block of counts.
  bool is_plain(NodeIndex j) const { return counts(j) == kNoCounts; }

  // Calls f(label, count) for each label of a leaf with a block, in increasing order.
  template <class F>
  void for_each_in_block(NodeIndex leaf, F f) const {
    const Count* count = arena_.data(counts(leaf));
    sets_.for_each(leaf, [&](Label label) { f(label, *count++); });
  }

  // Calls f(label, count) for each label of a leaf with `n_points`, in increasing order.
  template <class F>
  void for_each_count(NodeIndex leaf, std::int32_t n_points, F f) const {
    if (is_plain(leaf)) {
      sets_.for_each(leaf, [&](Label label) { f(label, n_points); });
    } else {
      for_each_in_block(leaf, f);
    }
  }

 private:
  using Offset = BlockArena<Count>::Offset;

  static constexpr Offset kNoCounts = ~Offset{0};

  void add_one(NodeIndex leaf, std::int32_t n_points, Label label, std::int32_t more) {
    const Offset old = counts(leaf);
    if (sets_.contains(leaf, label)) {
      if (old != kNoCounts) {
        arena_.data(old)[sets_.rank(leaf, label)] += more;
      } else if (more != 1) {
        set_single_count(leaf, n_points + more);
      }
      return;
    }
    const std::uint32_t position = sets_.rank(leaf, label);
    if (old != kNoCounts) {
      set_counts(leaf, arena_.insert(old, sets_.size(leaf), position, more));
    } else if (n_points > 0) {  // the leaf becomes mixed
      const Offset fresh = arena_.allocate(2);
      arena_.data(fresh)[position] = more;
      arena_.data(fresh)[1 - position] = n_points;
      set_counts(leaf, fresh);
    } else if (more != 1) {
      set_single_count(leaf, more);
    }
    sets_.insert(leaf, label);
  }

  void drop_counts(NodeIndex j) {
    if (is_plain(j)) return;
    arena_.release(counts(j), sets_.size(j));
    set_counts(j, kNoCounts);
  }

  void set_single_count(NodeIndex leaf, Count count) {
    const Offset fresh = arena_.allocate(1);
    *arena_.data(fresh) = count;
    set_counts(leaf, fresh);
  }

  // Drops the counts of a leaf if its number of points says the same.
  void drop_plain_counts(NodeIndex leaf, std::int32_t n_points) {
    const Offset old = counts(leaf);
    if (old != kNoCounts && sets_.size(leaf) == 1 && *arena_.data(old) == n_points) drop_counts(leaf);
  }

  Offset counts(NodeIndex j) const {
    const std::size_t index = static_cast<std::size_t>(j);
    return index < counts_.size() ? counts_[index] : kNoCounts;
  }

  void set_counts(NodeIndex j, Offset offset) {
    const std::size_t index = static_cast<std::size_t>(j);
    if (index >= counts_.size()) {
      if (offset == kNoCounts) return;
      resize_tightly(counts_, index + 1, kNoCounts);
    }
    counts_[index] = offset;
  }

  LabelSets sets_;
  std::vector<Offset> counts_;  // per node up to the last with a block; kNoCounts without one
  BlockArena<Count> arena_;
};

}  // namespace onlineforest::mondrian
