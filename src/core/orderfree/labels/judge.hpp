// Chooses the proposal that separates the labels of a panel best. Must not know trees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "orderfree/labels/counts.hpp"
#include "orderfree/law/panel.hpp"

namespace onlineforest::orderfree {

// The sides of a proposal, in light weights: the weight of the left side, and for each side the sum over labels of the
// squared weight.
struct LabelSides {
  std::uint8_t n_left = 0;
  std::uint16_t squares_left = 0, squares_right = 0;
};

// The score of a split: the sum over both sides of (sum of squared weights of labels) / (weight of the side). The
// greatest score has the least Gini impurity.
[[nodiscard]] inline double score_of(double squares_left, Weight n_left, double squares_right, Weight n_right) {
  return squares_left / static_cast<double>(n_left) + squares_right / static_cast<double>(n_right);
}

class LabelJudge {
 public:
  static constexpr std::size_t kFewProposals = 4, kManyProposals = 16, kProposalsForLevels = 32, kMostProposals = 64;

  // The number of proposals for a block with many deciding samples. With categorical features it is larger, because the
  // side of a level is a hash, so fewer proposals are good. If a value is missing it is largest, because proposals that
  // do not win are the candidates for surrogates.
  [[nodiscard]] static std::size_t n_proposals(const Layout& layout, bool is_one_lacking) {
    if (is_one_lacking) return kMostProposals;
    return layout.n_categorical > 0 ? kProposalsForLevels : kManyProposals;
  }

  void clear() {}
  void set(std::size_t, Label) {}  // the groups hold the labels

  // Returns the index of the best proposal for a block, the first if several are equal. Sends samples that lack the
  // feature of a proposal to the better side.
  [[nodiscard]] std::size_t best(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals);

  // The sides of the proposals of the last call of best(), valid if the weights of the panel are light.
  [[nodiscard]] std::span<const LabelSides> sides() const { return sides_; }

 private:
  template <std::size_t K>
  [[nodiscard]] std::size_t best_of_light(const PanelRows& panel, const Groups& groups, Block block,
                                          std::span<const Proposal> proposals);

  std::array<LabelSides, kMostProposals> sides_{};
};

}  // namespace onlineforest::orderfree
