// Upward links of a tree: from a point to its leaf, and from a node to its parent. Must not know boxes or targets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/compiler.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/tree/node_store.hpp"

namespace onlineforest::mondrian {

// Only forgetting needs upward links, so they are made when a tree first forgets. Until then, all setters do nothing.
class TreeLinks {
 public:
  [[nodiscard]] bool are_there() const { return !before_.empty(); }

  // Makes the links of a tree that is not empty. `next` has, per slot, the next point of the same leaf.
  void make(const NodeStore& nodes, std::span<const Slot> next) {
    std::vector<NodeIndex> parents(nodes.size() / 2, kNoNode);
    std::vector<Slot> before(next.size());
    parents_.swap(parents);
    before_.swap(before);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const NodeIndex j = static_cast<NodeIndex>(i);
      set_node(j, nodes[j]);
      if (!nodes[j].is_leaf()) continue;
      for (Slot slot = nodes[j].first_point; slot != kNoSlot; slot = next[static_cast<std::size_t>(slot)]) {
        set_before(next[static_cast<std::size_t>(slot)], slot);
      }
    }
  }

  // The parent of a node; kNoNode for the root.
  [[nodiscard]] NodeIndex parent(NodeIndex j) const { return j == kRoot ? kNoNode : parents_[pair_of(j)]; }

  // The point before this one in the list of its leaf; ~leaf for the first point.
  [[nodiscard]] Slot before(Slot slot) const { return before_[static_cast<std::size_t>(slot)]; }

  ONLINEFOREST_ALWAYS_INLINE void prefetch(Slot slot) const {
    onlineforest::prefetch(&before_[static_cast<std::size_t>(slot)]);
  }

  ONLINEFOREST_ALWAYS_INLINE void prefetch_parent(NodeIndex j) const {
    if (j != kRoot) onlineforest::prefetch(&parents_[pair_of(j)]);
  }

  // Sets the links that lead to node j, from its children or its first point, after its contents have changed.
  void set_node(NodeIndex j, const Node& node) {
    if (!are_there()) return;
    if (node.is_leaf()) {
      set_before(node.first_point, ~j);
    } else {
      if (pair_of(node.left) >= parents_.size()) resize_tightly(parents_, pair_of(node.left) + 1, kNoNode);
      parents_[pair_of(node.left)] = j;
    }
  }

  // Sets the point before `slot`; does nothing for kNoSlot.
  void set_before(Slot slot, Slot before) {
    if (are_there() && slot != kNoSlot) before_[static_cast<std::size_t>(slot)] = before;
  }

  void resize(std::size_t n_points) {
    if (are_there()) resize_tightly(before_, n_points, kNoSlot);
  }
  void shrink(std::size_t n_points) { before_.resize(n_points); }

  [[nodiscard]] std::size_t nbytes() const {
    return before_.capacity() * sizeof(Slot) + parents_.capacity() * sizeof(NodeIndex);
  }

 private:
  // Siblings are adjacent; the first pair is the nodes 1 and 2.
  static std::size_t pair_of(NodeIndex j) { return static_cast<std::size_t>(j - 1) / 2; }

  std::vector<Slot> before_;        // per point
  std::vector<NodeIndex> parents_;  // per pair of siblings
};

}  // namespace onlineforest::mondrian
