// The score of a split of labels. Must not know panels nor proposals.
//
// A split is good if it separates labels, or if further splits on its feature will. The score is the gain share plus
// half of the neighbour share. The gain share is the part of the impurity that the split removes. The neighbour share
// tells how much more often neighbours in the order of the feature agree than neighbours of a random order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "orderfree/law/groups.hpp"
#include "orderfree/law/orders.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// A number of neighbours, in multiples of 1 / kOneNeighbour.
using Neighbours = std::uint32_t;
inline constexpr Neighbours kOneNeighbour = Neighbours{1} << 16;

// Fewer deciding samples do not tell how many neighbours differ; the purest proposal is then the best.
inline constexpr int kEnoughNeighbours = 32;

// The purity of a split: the sum over both sides of (sum of squared weights of labels) / (weight of the side).
[[nodiscard]] inline double purity_of(double squares_left, double n_left, double squares_right, double n_right) {
  return squares_left / n_left + squares_right / n_right;
}

// The deciding samples of a block.
struct LabelTotals {
  double weight = 0.0;         // weight of the samples
  double squares = 0.0;        // sum of squared weights of labels
  std::int32_t n = 0;          // number of samples
  std::int32_t n_squares = 0;  // sum of squared numbers of samples of labels

  // Counts the samples of a block.
  void count(const Groups& groups, Block block) {
    n = std::popcount(block);
    n_squares = 0;
    for (std::size_t c = 0; c < groups.size(); ++c) {
      const int of_label = std::popcount(block & groups.block(c));
      n_squares += of_label * of_label;
    }
  }

  [[nodiscard]] bool is_pure() const { return n_squares == n * n; }

  // The score of a split of this purity, on a feature along which neighbours differ that often. Rounding is monotonic:
  // a score is not above that of a greater purity, or of fewer differing neighbours.
  [[nodiscard]] double score(double purity, Neighbours n_differing) const {
    if (is_pure()) return 0.0;
    const double gain = (purity * weight - squares) / (weight * weight - squares);
    const double differing = static_cast<double>(n_differing) * (1.0 / kOneNeighbour);
    // If labels were shuffled, n - n_squares / n neighbours would differ.
    const double neighbours = 1.0 - differing * n / (n * n - n_squares);
    return gain + 0.5 * neighbours;
  }
};

// The finalists of a block: the purest proposals, of equal ones the first. The purest finalist comes first. Counting
// neighbours takes longer than drawing a proposal.
class Finalists {
 public:
  static constexpr std::size_t kMost = 8;

  explicit Finalists(std::span<const double> purities) {
    for (std::size_t q = 0; q < purities.size(); ++q) {
      if (n_ == kMost && !(purities[q] > purities[indices_[kMost - 1]])) continue;
      n_ = std::min(n_ + 1, kMost);
      std::size_t at = n_ - 1;
      for (; at > 0 && purities[q] > purities[indices_[at - 1]]; --at) indices_[at] = indices_[at - 1];
      indices_[at] = q;
    }
  }

  // The finalist of greatest score, of equal ones the purest. most_of() bounds score_of(), and is no greater for a less
  // pure finalist: as soon as a bound is not above the best score, the rest cannot win.
  template <class MostOf, class ScoreOf>
  [[nodiscard]] std::size_t best(MostOf most_of, ScoreOf score_of) const {
    std::size_t best = 0;
    double best_score = score_of(indices_[0]);
    for (std::size_t k = 1; k < n_ && most_of(indices_[k]) > best_score; ++k) {
      const double score = score_of(indices_[k]);
      if (!(score > best_score)) continue;
      best = k;
      best_score = score;
    }
    return indices_[best];
  }

 private:
  std::size_t n_ = 0;
  std::array<std::size_t, kMost> indices_{};
};

// The expected number of neighbours of different labels among the samples of a block in the order of a numeric feature,
// if the samples of each run are in random order.
[[nodiscard]] Neighbours differing_neighbours(const FeatureOrder& order, Block block, const Groups& labels);
// The expected number along a categorical feature: each level is a run. The runs have no order, so neighbours of two
// levels differ as often as neighbours of a random order of all samples, whose sums are `totals`.
[[nodiscard]] Neighbours differing_neighbours(const Groups& levels, Block block, const Groups& labels,
                                              const LabelTotals& totals);

}  // namespace onlineforest::orderfree
