// The order-free forest of numbers. Must not know Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "orderfree/forest/forest.hpp"
#include "orderfree/forest/stop_weights.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "orderfree/numbers/tree.hpp"

namespace onlineforest::orderfree {

// The answers of several trees to one row, as moments.
struct TreeMoments {
  double mean = 0.0;
  double within = 0.0;   // mean of the variances in the leaves
  double between = 0.0;  // variance of the means of the leaves
};

// Stands for the answer of a tree that has none. Other leaves never have a negative variance.
inline constexpr NumberLeaf kNoLeaf{0.0, -1.0};

// Computes the moments of the answers of trees to one row, in the order of trees; nothing if no tree has an answer.
// Removes kNoLeaf from `leaves`.
[[nodiscard]] std::optional<TreeMoments> moments_of(std::vector<NumberLeaf>& leaves);

// The answers of the trees that leave calibrators out, with several stop weights: `leaves` holds for each stop weight,
// calibrator and tree one answer, kNoLeaf for a tree without samples. The trees of the shards of a forest follow each
// other.
struct NumberVotes {
  std::vector<double> values;  // the number of each calibrator, in the order of keys
  std::vector<Weight> weights;
  std::vector<Weight> stop_weights;
  std::size_t n_trees = 0;
  std::vector<NumberLeaf> leaves;
  // The strengths of the categorical features, and how far the levels of each calibrator deviate, without the
  // calibrator itself. The same in all shards.
  std::vector<double> strengths, deviations;
};

// The fitted part of a forest of numbers that its predictions need.
struct NumberFit {
  Weight stop_weight = 0;
  double level_share = 0.0;           // this share of the deviation of the levels of a row is added to its mean
  std::span<const double> strengths;  // of the categorical features; may be empty if the share is 0
};

class NumberForest : public Forest<Numbers> {
 public:
  using Forest::Forest;

  // Restores a forest from a state. Throws std::invalid_argument if the state is invalid, TooLarge if the estimated
  // memory of the fully grown forest exceeds `max_bytes`. Trees are grown at their first use.
  explicit NumberForest(const State& state, std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

  [[nodiscard]] std::vector<TreeMoments> predict(std::span<const float> rows, const NumberFit& fit,
                                                 const Call& call) const;

  // The votes about the calibrators [begin, end) in the order of their keys, or up to the last one if there are fewer,
  // with the stop weights of a range. Splits only the blocks that these calibrators enter.
  [[nodiscard]] NumberVotes left_out_votes(std::size_t begin, std::size_t end, StopRange range, const Call& call) const;
  // The votes of the earlier forest of the first `n_seen` samples. No sample may have been forgotten since. Grows the
  // trees that vote a second time, in a copy.
  [[nodiscard]] NumberVotes left_out_votes_at(std::size_t n_seen, StopRange range, const Call& call) const;
  // The votes of a copy of this forest that has learned these samples, too. Grows the trees that vote a second time.
  [[nodiscard]] NumberVotes left_out_votes_after(std::span<const float> rows, std::span<const double> values,
                                                 std::span<const Weight> weights, StopRange range,
                                                 const Call& call) const;

  // How far the levels of each row lie above the mean of all numbers, given the strengths of features.
  [[nodiscard]] std::vector<double> level_deviations(std::span<const float> rows,
                                                     std::span<const double> strengths) const;

  // The left-out prediction of each stored sample, in the order of serials(): moments of the trees that have not
  // learned it, and the number of these trees. Moments are NaN where there is no such tree.
  struct LeftOut {
    std::vector<TreeMoments> moments;
    std::vector<std::int64_t> n_trees;
  };
  [[nodiscard]] LeftOut predict_left_out(Weight stop_weight, const Call& call) const;

  // The answers of all trees of a shard to each row: n_trees answers for each row, kNoLeaf for a tree that has none.
  [[nodiscard]] std::vector<NumberLeaf> leaves(std::span<const float> rows, Weight stop_weight, const Call& call) const;
  // The moments of all stored samples: the prediction where no tree of the forest has an answer. Trees have no answer
  // if they have left out all samples.
  [[nodiscard]] TreeMoments of_all_samples() const;

  // The answers of all trees to the arrivals [begin, end) in the order of serials(), for the samples that some tree may
  // have left out: n_trees answers for each such sample, kNoLeaf for a tree that has learned it.
  struct LeftOutLeaves {
    std::vector<std::int64_t> places;  // index of each such sample in serials()
    std::vector<NumberLeaf> leaves;
  };
  [[nodiscard]] LeftOutLeaves left_out_leaves(std::size_t begin, std::size_t end, Weight stop_weight,
                                              const Call& call) const;

 private:
  // Throws std::invalid_argument unless there is a strength for each categorical feature.
  void check_strengths(std::span<const double> strengths) const;
  // Answers tree by tree: the answers of tree t begin at data + t * stride.
  struct LeafColumns {
    NumberLeaf* data;
    std::size_t stride;

    [[nodiscard]] NumberLeaf* of_tree(std::size_t t) const { return data + t * stride; }
  };
  // Writes the answers of the trees of a task to the rows of its piece.
  void answer_task(const Pieces& pieces, std::size_t task, std::span<const float> rows, bool are_plain,
                   Weight stop_weight, LeafColumns answers, Scratch& scratch, StopProbe& stop) const;
  // Calls use(i, leaves) for each row i, with the answers of all trees.
  template <class Use>
  void for_each_row(std::span<const float> rows, Weight stop_weight, const Call& call, Use use) const;
  // Calls use(i, leaves) for each slots[i], with the answers of all trees; kNoLeaf for a tree that has learned it.
  template <class Use>
  void for_each_left_out(std::span<const Slot> slots, Weight stop_weight, const Call& call, Use use) const;
  [[nodiscard]] TreeMoments mean_of_samples() const;
};

}  // namespace onlineforest::orderfree
