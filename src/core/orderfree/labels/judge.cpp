#include "orderfree/labels/judge.hpp"

#include <bit>
#include <limits>

namespace onlineforest::orderfree {

namespace {

double score_of_split(const PanelRows& panel, const Groups& groups, Block block, Block left) {
  const Weight n_left = panel.weight_of(left);
  SquaresOfWeights squares_left, squares_right;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    const Block those = block & groups.block(c);
    squares_left.add(panel.weight_of(those & left));
    squares_right.add(panel.weight_of(those & ~left));
  }
  return score_of(squares_left.value(), n_left, squares_right.value(), panel.weight_of(block) - n_left);
}

}  // namespace

std::size_t LabelJudge::best(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals) {
  for (Proposal& proposal : proposals) {
    if (!panel.has_missing()) break;
    if (proposal.split.asks_if_missing()) continue;
    const Block missing = panel.missing(block, proposal.split.cell);
    if (missing == 0) continue;
    const Block with = proposal.left | missing;
    proposal.split.missing_left =
        score_of_split(panel, groups, block, with) >= score_of_split(panel, groups, block, proposal.left);
    if (proposal.split.missing_left) proposal.left = with;
  }
  if (panel.is_light()) {
    switch (proposals.size()) {
      case kFewProposals:
        return best_of_light<kFewProposals>(panel, groups, block, proposals);
      case kManyProposals:
        return best_of_light<kManyProposals>(panel, groups, block, proposals);
      case kProposalsForLevels:
        return best_of_light<kProposalsForLevels>(panel, groups, block, proposals);
      default:
        return best_of_light<kMostProposals>(panel, groups, block, proposals);
    }
  }
  std::size_t best = 0;
  double best_score = -1.0;
  for (std::size_t q = 0; q < proposals.size(); ++q) {
    const double score = score_of_split(panel, groups, block, proposals[q].left);
    if (score > best_score) {
      best = q;
      best_score = score;
    }
  }
  return best;
}

template <std::size_t K>
std::size_t LabelJudge::best_of_light(const PanelRows& panel, const Groups& groups, Block block,
                                      std::span<const Proposal> proposals) {
  static_assert(LightWeights::kMost * LightWeights::kMost <= std::numeric_limits<std::uint16_t>::max());
  const LightWeights& light = panel.light();
  std::array<Block, K> lefts;
  std::array<std::uint16_t, K> on_left, squares{}, products{};
  for (std::size_t q = 0; q < K; ++q) lefts[q] = proposals[q].left;
  // Labels that have a single sample of weight 1 are counted together.
  Block singles = 0;
  int total = 0;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    const Block those = block & groups.block(c);
    const int n = light.of(those);
    if (n <= 1) {
      singles |= those;
      continue;
    }
    total += n * n;
    light.of(those, lefts, on_left);
    for (std::size_t q = 0; q < K; ++q) {
      squares[q] = static_cast<std::uint16_t>(squares[q] + on_left[q] * on_left[q]);
      products[q] = static_cast<std::uint16_t>(products[q] + on_left[q] * n);
    }
  }
  const int n_singles = std::popcount(singles), n_block = light.of(block);
  std::size_t best = 0;
  double best_score = -1.0;
  for (std::size_t q = 0; q < K; ++q) {
    LabelSides& sides = sides_[q];
    const int singles_left = std::popcount(lefts[q] & singles);
    // A label of weight n has l on the left, so its square on the right is (n - l)^2 = n^2 - 2 n l + l^2.
    sides.squares_left = static_cast<std::uint16_t>(squares[q] + singles_left);
    sides.squares_right = static_cast<std::uint16_t>(total - 2 * products[q] + squares[q] + n_singles - singles_left);
    sides.n_left = static_cast<std::uint8_t>(light.of(lefts[q]));
    const double score = score_of(sides.squares_left, sides.n_left, sides.squares_right, n_block - sides.n_left);
    if (score > best_score) {
      best = q;
      best_score = score;
    }
  }
  return best;
}

}  // namespace onlineforest::orderfree
