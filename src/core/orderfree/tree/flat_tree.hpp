// A fully grown tree in a form made for predictions: all nodes in one array, and each leaf with its whole prediction.
// Must not know samples.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/huge_pages.hpp"
#include "base/types.hpp"
#include "orderfree/law/proposal.hpp"

namespace onlineforest::orderfree {

// Packs into one integer: the cell of a split, the side of missing values, and whether the cell holds levels.
class SplitCell {
 public:
  static constexpr std::int32_t kMost = (1 << 30) - 1;  // largest number of cells

  SplitCell() = default;
  explicit SplitCell(const Split& split)
      : code_(split.cell | (split.missing_left ? 0 : kMissingRight) | (split.is_of_levels ? kOfLevels : 0)) {}

  [[nodiscard]] std::int32_t cell() const { return code_ & kMost; }
  [[nodiscard]] bool missing_left() const { return (code_ & kMissingRight) == 0; }
  [[nodiscard]] bool is_of_levels() const { return code_ < 0; }

  [[nodiscard]] Split split(float threshold) const { return {cell(), threshold, missing_left(), is_of_levels()}; }

 private:
  static constexpr std::int32_t kMissingRight = 1 << 30;
  static constexpr std::int32_t kOfLevels = std::numeric_limits<std::int32_t>::min();  // the sign bit
  std::int32_t code_ = 0;
};

// `Leaves` holds the predictions of the leaves. Leaves are numbered from 0.
template <class Leaves>
class FlatTree {
 public:
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  void clear() { *this = {}; }

  // Building a tree starts with the root. Then each split adds its two children.
  NodeIndex add_root() {
    nodes_.emplace_back();
    return kRoot;
  }
  // Splits a node. Returns its left child; the right child has the next index.
  NodeIndex split(NodeIndex at, const Split& split, const Surrogates& surrogates) {
    const auto left = static_cast<NodeIndex>(nodes_.size());
    if (!surrogates.empty()) surrogates_.emplace(at, surrogates);
    nodes_[static_cast<std::size_t>(at)] = {split.threshold, SplitCell(split), left};
    nodes_.resize(nodes_.size() + 2);
    return left;
  }
  // Makes a node a leaf. The caller then adds its prediction to leaves().
  void make_leaf(NodeIndex at) {
    nodes_[static_cast<std::size_t>(at)].next = -1 - static_cast<NodeIndex>(leaves_.size());
  }
  [[nodiscard]] Leaves& leaves() { return leaves_; }
  [[nodiscard]] const Leaves& leaves() const { return leaves_; }
  void finish() {
    nodes_.shrink_to_fit();
    leaves_.finish();
  }

  // Calls use(i, leaf) for each row. Plain rows have no categorical features and no missing values.
  template <class Use>
  void for_each_row(const float* rows, std::size_t width, std::size_t n, bool are_plain, Use use) const {
    const auto tree_of = [this](std::size_t) -> const FlatTree& { return *this; };
    const auto row_of = [=](std::size_t i) { return rows + i * width; };
    if (are_plain) {
      walk<true>(n, tree_of, row_of, use);
    } else {
      walk<false>(n, tree_of, row_of, use);
    }
  }
  // Calls use(i, leaf) for one row in each of several trees.
  template <class Use>
  static void for_each_tree(std::span<const FlatTree* const> trees, const float* row, bool is_plain, Use use) {
    const auto tree_of = [trees](std::size_t i) -> const FlatTree& { return *trees[i]; };
    const auto row_of = [row](std::size_t) { return row; };
    if (is_plain) {
      walk<true>(trees.size(), tree_of, row_of, use);
    } else {
      walk<false>(trees.size(), tree_of, row_of, use);
    }
  }

  [[nodiscard]] std::size_t nbytes() const {
    return nodes_.capacity() * sizeof(Node) + leaves_.nbytes() + surrogates_.size() * kBytesOfSurrogates;
  }

 private:
  // Number of walks that go down in turn, one step each: a single walk waits for memory at every step.
  static constexpr std::size_t kSideBySide = 8;
  static constexpr std::size_t kBytesOfSurrogates = 100;  // rough size of the entry of one node in surrogates_

  struct Node {
    float threshold = 0.0f;
    SplitCell cell;
    NodeIndex next = 0;  // the left child; or -1 - n for leaf n
  };

  // For plain rows a comparison with the threshold is enough.
  template <bool kArePlain>
  [[nodiscard]] bool sends_right(const Node& node, const float* row) const {
    const float* const x = row + node.cell.cell();
    if constexpr (!kArePlain) {
      if (node.cell.is_of_levels()) return !LevelSides(node.threshold).sends_left(level_at(x));
      if (is_missing(*x)) return lacks(node, row);
    }
    return *x > node.threshold;
  }
  [[nodiscard]] bool lacks(const Node& node, const float* row) const {
    const auto found = surrogates_.find(static_cast<NodeIndex>(&node - nodes_.data()));
    const Split split = node.cell.split(node.threshold);
    return !sends_left(split, found == surrogates_.end() ? std::span<const Surrogate>() : found->second, row);
  }

  // Makes n_walks walks from a root to a leaf, and calls use(i, leaf) for each.
  template <bool kArePlain, class TreeOf, class RowOf, class Use>
  static void walk(std::size_t n_walks, TreeOf tree_of, RowOf row_of, Use use) {
    std::array<const Node*, kSideBySide> at;
    for (std::size_t first = 0; first < n_walks; first += kSideBySide) {
      const std::size_t n = std::min(kSideBySide, n_walks - first);
      for (std::size_t i = 0; i < n; ++i) at[i] = tree_of(first + i).nodes_.data();
      for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (std::size_t i = 0; i < n; ++i) {
          const Node& node = *at[i];
          if (node.next < 0) continue;
          const FlatTree& tree = tree_of(first + i);
          const bool goes_right = tree.template sends_right<kArePlain>(node, row_of(first + i));
          at[i] = tree.nodes_.data() + node.next + static_cast<NodeIndex>(goes_right);
          is_moving = true;
        }
      }
      const auto leaf = [&](std::size_t i) { return static_cast<std::size_t>(-1 - at[i]->next); };
      for (std::size_t i = 0; i < n; ++i) tree_of(first + i).leaves_.prefetch(leaf(i));
      for (std::size_t i = 0; i < n; ++i) tree_of(first + i).leaves_.prefetch_contents(leaf(i));
      for (std::size_t i = 0; i < n; ++i) use(first + i, leaf(i));
    }
  }

  LargeVector<Node> nodes_;
  std::unordered_map<NodeIndex, Surrogates> surrogates_;  // only nodes with surrogates have an entry
  Leaves leaves_;
};

}  // namespace onlineforest::orderfree
