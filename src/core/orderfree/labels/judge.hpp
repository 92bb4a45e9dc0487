// Chooses the proposal that separates the labels of a panel best. Must not know trees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "orderfree/labels/counts.hpp"
#include "orderfree/labels/score.hpp"
#include "orderfree/law/orders.hpp"
#include "orderfree/law/panel.hpp"

namespace onlineforest::orderfree {

// The sides of a proposal, in light weights: the weight of the left side, and for each side the sum over labels of the
// squared weight.
struct LabelSides {
  std::uint8_t n_left = 0;
  std::uint16_t squares_left = 0, squares_right = 0;

  // The purity of the split of samples of this total weight.
  [[nodiscard]] double purity(int total) const {
    return purity_of(squares_left, n_left, squares_right, total - n_left);
  }
};

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

  void clear() { orders_.clear(); }
  void set(std::size_t, Label) {}  // the groups hold the labels

  // Divides a block into groups that splits should tell apart: by label, in the order of their first bits.
  [[nodiscard]] std::span<const Block> contrast(const Groups& groups, Block block);

  // Returns the index of the best proposal for a block: the purest if few samples decide, else the finalist of greatest
  // score. Sends samples that lack the feature of a proposal to the purer side.
  [[nodiscard]] std::size_t best(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals);

  // Results of the last call of best(), if enough samples decided: the sums of the block, and for each proposal its
  // differing neighbours, 0 if they were not counted, and its sides, which are valid if the weights of the panel are
  // light.
  [[nodiscard]] const LabelTotals& totals() const { return totals_; }
  [[nodiscard]] std::span<const Neighbours> differing() const { return differing_; }
  [[nodiscard]] std::span<const LabelSides> sides() const { return sides_; }

 private:
  // Find the purities of all proposals, and the sums of the block that depend on weights.
  void weigh(const PanelRows& panel, const Groups& groups, Block block, std::span<const Proposal> proposals);
  template <std::size_t K>
  void weigh_light(const PanelRows& panel, const Groups& groups, Block block, std::span<const Proposal> proposals);
  void weigh_heavy(const PanelRows& panel, const Groups& groups, Block block, std::span<const Proposal> proposals);
  // Counts the differing neighbours along the feature of a split, for all proposals on this feature.
  void count_neighbours(PanelRows& panel, const Groups& groups, Block block, const Split& split,
                        std::span<const Proposal> proposals);

  std::array<Block, kMostDeciding> contrast_{};
  FeatureOrders orders_;
  LabelTotals totals_;
  std::array<LabelSides, kMostProposals> sides_{};
  std::array<double, kMostProposals> purities_{};
  std::array<Neighbours, kMostProposals> differing_{};
};

}  // namespace onlineforest::orderfree
