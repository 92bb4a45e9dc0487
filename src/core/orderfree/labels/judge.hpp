// Which of several splits separates the labels of a panel best. Must not know trees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "orderfree/labels/counts.hpp"
#include "orderfree/law/panel.hpp"

namespace onlineforest::orderfree {

// Of light weights: that of the left side of a split, and the sums of squared weights of labels on both sides.
struct LabelSides {
  std::uint8_t n_left = 0;
  std::uint16_t squares_left = 0, squares_right = 0;
};

// The sum over both sides of squared weights of labels over the weight. The greatest wins.
[[nodiscard]] inline double score_of(double squares_left, Weight n_left, double squares_right, Weight n_right) {
  return squares_left / static_cast<double>(n_left) + squares_right / static_cast<double>(n_right);
}

class LabelJudge {
 public:
  static constexpr std::size_t kFewProposals = 4, kManyProposals = 16, kProposalsForLevels = 32, kMostProposals = 64;

  // The number of proposals if many samples decide. With categorical features there are more: sides of levels are
  // hashed, so each proposal tells less. If a sample lacks a value there are still more: those that do not win may be
  // surrogates.
  [[nodiscard]] static std::size_t n_proposals(const Layout& layout, bool is_one_lacking) {
    if (is_one_lacking) return kMostProposals;
    return layout.n_categorical > 0 ? kProposalsForLevels : kManyProposals;
  }

  void clear() {}
  void set(std::size_t, Label) {}  // groups tell all

  // The number of the best proposal for a block; of equal ones the first. Sends samples that lack a feature to the
  // better side.
  [[nodiscard]] std::size_t best(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals);

  // Of the proposals of the last block, if its weights were light.
  [[nodiscard]] std::span<const LabelSides> sides() const { return sides_; }

 private:
  template <std::size_t K>
  [[nodiscard]] std::size_t best_of_light(const PanelRows& panel, const Groups& groups, Block block,
                                          std::span<const Proposal> proposals);

  std::array<LabelSides, kMostProposals> sides_{};
};

}  // namespace onlineforest::orderfree
