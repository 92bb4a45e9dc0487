// Which of several splits tells most about the numbers of a panel. Must not know trees.
//
// A split is as good as its decrease of the variance, or as the feature is by itself: if neighbours in the order of a
// feature have like numbers, splits below will find what one split cannot. Both are shares of the variance.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "orderfree/law/panel.hpp"

namespace onlineforest::orderfree {

class NumberJudge {
 public:
  static constexpr std::size_t kFewProposals = 6, kManyProposals = 16, kMostProposals = 32;

  // The number of proposals if many samples decide: four for each feature, within limits.
  [[nodiscard]] static std::size_t n_proposals(const Layout& layout, bool) {
    return std::clamp(4 * layout.n_features, kManyProposals, kMostProposals);
  }

  void clear() { ordered_ = 0; }
  void set(std::size_t i, double value) { values_[i] = value; }

  [[nodiscard]] double value(std::size_t i) const { return values_[i]; }

  // The number of the best proposal for a block; of equal ones that of greatest gain, then the first. Sends samples
  // that lack a feature to the better side.
  [[nodiscard]] std::size_t best(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals);

 private:
  static constexpr std::size_t kMostCached = 64;  // features whose orders are kept
  using Order = std::array<std::uint8_t, kMostDeciding>;

  // How much the numbers of a block vary.
  struct Variation {
    double squares;  // weighted sum of squared deviations
    Weight total;

    // The decrease of the sum of squares, as a share of it, if `left` deviations of weight n go left.
    [[nodiscard]] double gain(double left, Weight n) const {
      if (!(squares > 0.0)) return 0.0;
      const double sides = multiplicity(n) * multiplicity(total - n);
      return left * left * multiplicity(total) / sides / squares;
    }
  };
  struct Scores {
    std::array<double, kMostProposals> scores, gains;
  };
  // Finds the deviations from the mean.
  Variation vary(const PanelRows& panel, Block block);
  void score_few(PanelRows& panel, Block block, const Variation& variation, std::span<Proposal> proposals,
                 Scores& scores) const;
  void score_many(PanelRows& panel, Block block, const Variation& variation, std::span<Proposal> proposals,
                  Scores& scores);

  // The bits of a block, or of more, in the order of a feature; ties in the order of bits, missing values last.
  [[nodiscard]] const Order& order(PanelRows& panel, Block block, std::int32_t feature, std::size_t& n);
  static void sort(Block block, const float* column, Order& order);

  // What the deviations from the mean add up to along the order of a feature.
  struct Walk {
    std::size_t n = 0;  // of the block
    std::array<double, kMostDeciding + 1> sums;
    std::array<Weight, kMostDeciding + 1> weights;
    double neighbours = 0.0;  // share of the variance that neighbours have in common
  };
  void walk(PanelRows& panel, Block block, std::int32_t feature);

  std::array<double, kMostDeciding> values_{};
  Block ordered_ = 0;  // features whose orders are known
  std::array<Order, kMostCached> orders_;
  Order order_;
  // Of the block that is decided.
  double plain_squares_ = 0.0;                      // sum of squared deviations, each sample once
  std::array<double, kMostDeciding> deviations_{};  // from the weighted mean
  Walk walk_;
};

}  // namespace onlineforest::orderfree
