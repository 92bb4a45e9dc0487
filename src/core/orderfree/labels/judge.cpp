#include "orderfree/labels/judge.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace onlineforest::orderfree {

namespace {

double purity_of_split(const PanelRows& panel, const Groups& groups, Block block, Block left) {
  const Weight n_left = panel.weight_of(left);
  SquaresOfWeights squares_left, squares_right;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    const Block those = block & groups.block(c);
    squares_left.add(panel.weight_of(those & left));
    squares_right.add(panel.weight_of(those & ~left));
  }
  return purity_of(squares_left.value(), static_cast<double>(n_left), squares_right.value(),
                   static_cast<double>(panel.weight_of(block) - n_left));
}

// Sends the samples that lack the feature of a proposal to the purer side, to the left if both are equal.
void send_missing(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals) {
  for (Proposal& proposal : proposals) {
    if (proposal.split.asks_if_missing()) continue;
    const Block missing = panel.missing(block, proposal.split.cell);
    if (missing == 0) continue;
    const Block with = proposal.left | missing;
    proposal.split.missing_left =
        purity_of_split(panel, groups, block, with) >= purity_of_split(panel, groups, block, proposal.left);
    if (proposal.split.missing_left) proposal.left = with;
  }
}

}  // namespace

std::span<const Block> LabelJudge::contrast(const Groups& groups, Block block) {
  std::size_t n = 0;
  for (; block != 0; block &= ~contrast_[n++]) contrast_[n] = block & groups.like(first_bit(block));
  return {contrast_.data(), n};
}

std::size_t LabelJudge::best(PanelRows& panel, const Groups& groups, Block block, std::span<Proposal> proposals) {
  if (panel.has_missing()) send_missing(panel, groups, block, proposals);
  weigh(panel, groups, block, proposals);
  const std::span purities(purities_.data(), proposals.size());
  if (std::popcount(block) < kEnoughNeighbours) {
    return static_cast<std::size_t>(std::ranges::max_element(purities) - purities.begin());
  }
  totals_.count(groups, block);
  differing_.fill(0);
  const auto most_of = [&](std::size_t q) { return totals_.score(purities_[q], 0); };
  return Finalists(purities).best(most_of, [&](std::size_t q) {
    if (differing_[q] == 0) count_neighbours(panel, groups, block, proposals[q].split, proposals);
    return totals_.score(purities_[q], differing_[q]);
  });
}

void LabelJudge::count_neighbours(PanelRows& panel, const Groups& groups, Block block, const Split& split,
                                  std::span<const Proposal> proposals) {
  const Neighbours n_differing = split.is_of_levels
                                     ? differing_neighbours(panel.levels(split.cell), block, groups, totals_)
                                     : differing_neighbours(orders_.along(panel, block, split), block, groups);
  for (std::size_t q = 0; q < proposals.size(); ++q) {
    if (proposals[q].split.cell == split.cell) differing_[q] = n_differing;
  }
}

void LabelJudge::weigh(const PanelRows& panel, const Groups& groups, Block block, std::span<const Proposal> proposals) {
  if (!panel.is_light()) {
    weigh_heavy(panel, groups, block, proposals);
    return;
  }
  switch (proposals.size()) {
    case kFewProposals:
      return weigh_light<kFewProposals>(panel, groups, block, proposals);
    case kManyProposals:
      return weigh_light<kManyProposals>(panel, groups, block, proposals);
    case kProposalsForLevels:
      return weigh_light<kProposalsForLevels>(panel, groups, block, proposals);
    default:
      return weigh_light<kMostProposals>(panel, groups, block, proposals);
  }
}

void LabelJudge::weigh_heavy(const PanelRows& panel, const Groups& groups, Block block,
                             std::span<const Proposal> proposals) {
  SquaresOfWeights squares;
  for (std::size_t c = 0; c < groups.size(); ++c) squares.add(panel.weight_of(block & groups.block(c)));
  totals_.weight = static_cast<double>(panel.weight_of(block));
  totals_.squares = squares.value();
  for (std::size_t q = 0; q < proposals.size(); ++q) {
    purities_[q] = purity_of_split(panel, groups, block, proposals[q].left);
  }
}

template <std::size_t K>
void LabelJudge::weigh_light(const PanelRows& panel, const Groups& groups, Block block,
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
  totals_.weight = n_block;
  totals_.squares = total + n_singles;
  for (std::size_t q = 0; q < K; ++q) {
    LabelSides& sides = sides_[q];
    const int singles_left = std::popcount(lefts[q] & singles);
    // A label of weight n has l on the left, so its square on the right is (n - l)^2 = n^2 - 2 n l + l^2.
    sides.squares_left = static_cast<std::uint16_t>(squares[q] + singles_left);
    sides.squares_right = static_cast<std::uint16_t>(total - 2 * products[q] + squares[q] + n_singles - singles_left);
    sides.n_left = static_cast<std::uint8_t>(light.of(lefts[q]));
    purities_[q] = sides.purity(n_block);
  }
}

}  // namespace onlineforest::orderfree
