// Chooses the proposal that explains most of the variance of the numbers of a panel, or of what a line leaves of them.
// Must not know trees.
//
// The score of a proposal is the greater of two shares of the variance. The variance gain is the decrease of the
// variance by the split. The neighbour share is the variance that neighbours in the order of the feature have in
// common: if it is large, further splits on the feature will explain more than one split can.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "orderfree/law/orders.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/numbers/line.hpp"

namespace onlineforest::orderfree {

class NumberJudge {
 public:
  static constexpr std::size_t kFewProposals = 6, kManyProposals = 16, kMostProposals = 32;

  // The number of proposals for a block with many deciding samples: four for each feature, within limits.
  [[nodiscard]] static std::size_t n_proposals(const Layout& layout, bool) {
    return std::clamp(4 * layout.n_features, kManyProposals, kMostProposals);
  }

  void clear() { orders_.clear(); }
  void set(std::size_t i, double number) { numbers_[i] = values_[i] = number; }
  // Sets the line of the panel. Splits then explain the rests if `splits_rests`, otherwise the numbers.
  void set_line(const PanelRows& panel, const Line& line, bool splits_rests);

  [[nodiscard]] std::span<const double> numbers() const { return numbers_; }
  // The number of a sample less the line.
  [[nodiscard]] double rest(const PanelRows& panel, std::size_t i) const {
    return line_.empty() ? numbers_[i] : numbers_[i] - line_.at(panel.row(i));
  }

  // Divides a block into groups that splits should tell apart: numbers up to the mean, and above it.
  [[nodiscard]] std::span<const Block> contrast(const Groups&, Block block);

  // Returns the index of the best proposal for a block. Of equal scores the greatest gain wins, then the first
  // proposal. Sends samples that lack the feature of a proposal to the better side.
  [[nodiscard]] std::size_t best(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals);

 private:
  // The variation of the numbers of a block.
  struct Variation {
    double squares;  // weighted sum of squared deviations
    Weight total;

    // The decrease of `squares`, as a share, if samples of weight n with deviations of sum `left` go left.
    [[nodiscard]] double gain(double left, Weight n) const {
      if (!(squares > 0.0)) return 0.0;
      const double sides = multiplicity(n) * multiplicity(total - n);
      return left * left * multiplicity(total) / sides / squares;
    }
  };
  struct Scores {
    std::array<double, kMostProposals> scores, gains;
  };
  // Computes deviations_, plain_squares_ and the variation of a block.
  Variation vary(const PanelRows& panel, Block block);
  void score_few(PanelRows& panel, Block block, const Variation& variation, std::span<Proposal> proposals,
                 Scores& scores) const;
  void score_many(PanelRows& panel, Block block, const Variation& variation, std::span<Proposal> proposals,
                  Scores& scores);

  // Cumulative sums along the order of a feature: the first k samples have the sum of deviations sums[k] and the weight
  // weights[k].
  struct Walk {
    std::size_t n = 0;  // number of samples of the block
    std::array<double, kMostDeciding + 1> sums;
    std::array<Weight, kMostDeciding + 1> weights;
    double neighbours = 0.0;  // neighbour share of the feature
  };
  void walk(PanelRows& panel, Block block, const Split& split);

  std::array<double, kMostDeciding> numbers_{};
  Line line_;
  std::array<double, kMostDeciding> values_{};  // the numbers or the rests: splits explain them
  std::array<Block, 2> contrast_{};
  FeatureOrders orders_;
  // Quantities of the block of the current call of best().
  double plain_squares_ = 0.0;                      // sum of squared deviations without weights
  std::array<double, kMostDeciding> deviations_{};  // deviations from the weighted mean
  Walk walk_;
};

}  // namespace onlineforest::orderfree
