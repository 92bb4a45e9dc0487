// One set of class codes per node. Knows nothing of trees or counts.
//
// With up to 64 classes a set is one machine word. With more it is a sorted list: a single label in place, several in
// an arena block. So memory grows with the labels that occur (most sets of a tree are small), not with the number of
// classes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/block_arena.hpp"
#include "base/compiler.hpp"
#include "base/memory.hpp"
#include "base/types.hpp"
#include "mondrian/points/point_store.hpp"

namespace onlineforest::mondrian {

class LabelSets {
 public:
  LabelSets empty_copy() const {
    LabelSets copy;
    copy.wide_ = wide_;
    return copy;
  }

  // Makes room for labels below `n_classes`. Call it before inserting them.
  void reserve_classes(std::int32_t n_classes) {
    if (n_classes > 64 && !wide_) widen();
  }

  void expect_nodes(std::size_t n_nodes) { sets_.reserve(n_nodes); }

  void reserve_nodes(std::size_t n_nodes) {
    if (sets_.size() < n_nodes) resize_tightly(sets_, n_nodes, empty_set());
  }

  std::uint32_t size(NodeIndex j) const {
    return wide_ ? set(j).list.size : static_cast<std::uint32_t>(std::popcount(set(j).mask));
  }

  // Number of labels in the set that are smaller: the position of `label` in for_each.
  std::uint32_t rank(NodeIndex j, Label label) const {
    if (!wide_) return static_cast<std::uint32_t>(std::popcount(set(j).mask & (bit(label) - 1)));
    const auto labels = list(j);
    return static_cast<std::uint32_t>(std::ranges::lower_bound(labels, code(label)) - labels.begin());
  }

  bool contains(NodeIndex j, Label label) const {
    if (!wide_) return (set(j).mask & bit(label)) != 0;
    const auto labels = list(j);
    return std::ranges::binary_search(labels, code(label));
  }

  void insert(NodeIndex j, Label label) {
    if (!wide_) {
      set(j).mask |= bit(label);
      return;
    }
    const std::uint32_t position = rank(j, label);
    const auto labels = list(j);
    if (position < labels.size() && labels[position] == code(label)) return;
    List& entry = set(j).list;
    if (entry.size == 0) {
      entry.data = code(label);
    } else if (entry.size == 1) {
      const std::uint32_t other = entry.data;
      entry.data = arena_.allocate(2);
      arena_.data(entry.data)[position] = code(label);
      arena_.data(entry.data)[1 - position] = other;
    } else {
      entry.data = arena_.insert(entry.data, entry.size, position, code(label));
    }
    ++entry.size;
  }

  // Removes a label that the set holds.
  void erase(NodeIndex j, Label label) {
    if (!wide_) {
      set(j).mask &= ~bit(label);
      return;
    }
    const std::uint32_t position = rank(j, label);
    List& entry = set(j).list;
    if (entry.size == 2) {
      const std::uint32_t block = entry.data;
      entry.data = arena_.data(block)[1 - position];
      arena_.release(block, 2);
    } else if (entry.size > 2) {
      entry.data = arena_.erase(entry.data, entry.size, position);
    }
    --entry.size;
  }

  void clear(NodeIndex j) {
    if (wide_ && set(j).list.size > 1) arena_.release(set(j).list.data, set(j).list.size);
    set(j) = empty_set();
  }

  // Moves a set to a node whose set is empty.
  void move(NodeIndex from, NodeIndex to) {
    set(to) = set(from);
    set(from) = empty_set();
  }

  // Removes the last nodes; their sets are empty.
  void truncate(std::size_t n_nodes) { sets_.resize(n_nodes, empty_set()); }

  std::size_t nbytes() const { return sets_.capacity() * sizeof(Set) + arena_.nbytes(); }

  // Sets the set of j to the union of the sets of a and b.
  void assign_union(NodeIndex j, NodeIndex a, NodeIndex b) {
    if (!wide_) {
      set(j).mask = set(a).mask | set(b).mask;
      return;
    }
    merged_.clear();
    std::ranges::set_union(list(a), list(b), std::back_inserter(merged_));
    clear(j);
    List& entry = set(j).list;
    entry.size = static_cast<std::uint32_t>(merged_.size());
    if (entry.size == 1) {
      entry.data = merged_.front();
    } else if (entry.size > 1) {
      entry.data = arena_.allocate(entry.size);
      std::ranges::copy(merged_, arena_.data(entry.data));
    }
  }

  // Calls f(label) for each label of the set in increasing order.
  template <class F>
  void for_each(NodeIndex j, F f) const {
    if (!wide_) {
      for_each_bit(set(j).mask, f);
    } else {
      for (const std::uint32_t label : list(j)) f(static_cast<Label>(label));
    }
  }

  // Calls f(label) for each label in both sets in increasing order.
  template <class F>
  void for_each_common(NodeIndex a, NodeIndex b, F f) const {
    if (!wide_) {
      for_each_bit(set(a).mask & set(b).mask, f);
      return;
    }
    const auto first = list(a), second = list(b);
    for (auto p = first.begin(), q = second.begin(); p != first.end() && q != second.end();) {
      if (*p == *q) f(static_cast<Label>(*p));
      const bool step_p = *p <= *q, step_q = *q <= *p;
      p += step_p;
      q += step_q;
    }
  }

  // Calls f(label) for each label in the set of j but not in that of `other`, in increasing order.
  template <class F>
  void for_each_only_in(NodeIndex j, NodeIndex other, F f) const {
    if (!wide_) {
      for_each_bit(set(j).mask & ~set(other).mask, f);
      return;
    }
    const auto without = list(other);
    auto p = without.begin();
    for (const std::uint32_t label : list(j)) {
      while (p != without.end() && *p < label) ++p;
      if (p == without.end() || *p != label) f(static_cast<Label>(label));
    }
  }

  // Whether each set is one word; then bit k of word(j) says whether the set of j holds label k.
  bool are_words() const { return !wide_; }
  std::uint64_t word(NodeIndex j) const { return set(j).mask; }

  ONLINEFOREST_ALWAYS_INLINE void prefetch(NodeIndex j) const {
    onlineforest::prefetch(&sets_[static_cast<std::size_t>(j)]);
  }

  std::uint32_t size_common(NodeIndex a, NodeIndex b) const {
    if (!wide_) return static_cast<std::uint32_t>(std::popcount(set(a).mask & set(b).mask));
    std::uint32_t n = 0;
    for_each_common(a, b, [&n](Label) { ++n; });
    return n;
  }

 private:
  struct List {
    std::uint32_t size;
    std::uint32_t data;  // size 1: the label itself; more: an arena offset
  };
  union Set {
    std::uint64_t mask;  // up to 64 classes
    List list;           // more than 64 (wide_)
  };

  Set empty_set() const {
    Set empty;
    if (wide_) {
      empty.list = {0, 0};
    } else {
      empty.mask = 0;
    }
    return empty;
  }

  static std::uint64_t bit(Label label) { return std::uint64_t{1} << label; }
  static std::uint32_t code(Label label) { return static_cast<std::uint32_t>(label); }

  template <class F>
  static void for_each_bit(std::uint64_t mask, F f) {
    for (; mask != 0; mask &= mask - 1) f(static_cast<Label>(std::countr_zero(mask)));
  }

  Set& set(NodeIndex j) { return sets_[static_cast<std::size_t>(j)]; }
  const Set& set(NodeIndex j) const { return sets_[static_cast<std::size_t>(j)]; }

  std::span<const std::uint32_t> list(NodeIndex j) const {
    const List& entry = set(j).list;
    return {entry.size > 1 ? arena_.data(entry.data) : &entry.data, entry.size};
  }

  // If memory runs out, nothing has changed.
  void widen() {
    LabelSets wide;
    wide.wide_ = true;
    wide.reserve_nodes(sets_.size());
    for (std::size_t j = 0; j < sets_.size(); ++j) {
      for_each_bit(sets_[j].mask, [&](Label label) { wide.insert(static_cast<NodeIndex>(j), label); });
    }
    *this = std::move(wide);
  }

  std::vector<Set> sets_;
  bool wide_ = false;
  BlockArena<std::uint32_t> arena_;
  std::vector<std::uint32_t> merged_;
};

}  // namespace onlineforest::mondrian
