// The order-free forest of numbers. Must not know Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "orderfree/forest/forest.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "orderfree/numbers/tree.hpp"

namespace onlineforest::orderfree {

// What several trees say about one row.
struct TreeMoments {
  double mean = 0.0;
  double within = 0.0;   // mean variance in the leaves
  double between = 0.0;  // variance of the means of the leaves
};

// The answer of a tree that has none: no other variance is negative.
inline constexpr NumberLeaf kNoLeaf{0.0, -1.0};

// The answers of trees to one row, in the order of trees; nothing if no tree has one. Keeps those that are answers.
[[nodiscard]] std::optional<TreeMoments> moments_of(std::vector<NumberLeaf>& leaves);

class NumberForest : public Forest<Numbers> {
 public:
  using Forest::Forest;

  // Restores a forest. Throws std::invalid_argument if the state is not that of a forest, TooLarge if the grown forest
  // would need more than max_bytes, about. The trees are grown when they are first used.
  explicit NumberForest(const State& state, std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

  [[nodiscard]] std::vector<TreeMoments> predict(std::span<const float> rows, const Call& call) const;

  // The same for each sample held, in the order of serials(), from the trees that have not learned it; and the number
  // of these trees. NaN where there are none.
  struct LeftOut {
    std::vector<TreeMoments> moments;
    std::vector<std::int64_t> n_trees;
  };
  [[nodiscard]] LeftOut predict_left_out(const Call& call) const;

  // The answer of each tree of a shard to each row, or kNoLeaf: n_trees for each row.
  [[nodiscard]] std::vector<NumberLeaf> leaves(std::span<const float> rows, const Call& call) const;
  // What is predicted where no tree of the forest has an answer, because all trees have left out all samples.
  [[nodiscard]] TreeMoments of_all_samples() const;

  // The same for samples that trees have not learned, of the arrivals [begin, end) in the order of serials(), and the
  // places of these samples among them.
  struct LeftOutLeaves {
    std::vector<std::int64_t> places;
    std::vector<NumberLeaf> leaves;
  };
  [[nodiscard]] LeftOutLeaves left_out_leaves(std::size_t begin, std::size_t end, const Call& call) const;

 private:
  // Calls use(i, leaves) for each row i, with the answers of all trees.
  template <class Use>
  void for_each_row(std::span<const float> rows, const Call& call, Use use) const;
  // Calls use(i, leaves) for each slots[i], with the answers of all trees, kNoLeaf of those that have learned it.
  template <class Use>
  void for_each_left_out(std::span<const Slot> slots, const Call& call, Use use) const;
  [[nodiscard]] TreeMoments mean_of_samples() const;
};

}  // namespace onlineforest::orderfree
