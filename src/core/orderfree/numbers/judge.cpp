#include "orderfree/numbers/judge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace onlineforest::orderfree {

namespace {

// Calls use(i) for each bit of a block, the lowest first.
template <class Use>
void for_each_bit(Block block, Use use) {
  for (; block != 0; block &= block - 1) use(first_bit(block));
}

// Sends the samples that lack the feature of a proposal to the left if the score is then not lower. Returns the score.
double better_side(Proposal& proposal, Block missing, double score, double score_with) {
  proposal.split.missing_left = score_with >= score;
  if (!proposal.split.missing_left) return score;
  proposal.left |= missing;
  return score_with;
}

}  // namespace

void NumberJudge::set_line(const PanelRows& panel, const Line& line, bool splits_rests) {
  line_ = line;
  if (line.empty() || !splits_rests) return;
  for (std::size_t i = 0; i < panel.size(); ++i) values_[i] = rest(panel, i);
}

std::span<const Block> NumberJudge::contrast(const Groups&, Block block) {
  double sum = 0.0;
  for_each_bit(block, [&](std::size_t i) { sum += values_[i]; });
  const double mean = sum / std::popcount(block);
  Block above = 0;
  for_each_bit(block, [&](std::size_t i) { above |= static_cast<Block>(values_[i] > mean) << i; });
  contrast_ = {block & ~above, above};
  return contrast_;
}

std::size_t NumberJudge::best(PanelRows& panel, const Groups&, Block block, std::span<Proposal> proposals) {
  const Variation variation = vary(panel, block);
  Scores scores;
  if (std::popcount(block) < kManyDeciding) {
    score_few(panel, block, variation, proposals, scores);
  } else {
    score_many(panel, block, variation, proposals, scores);
  }
  std::size_t best = 0;
  for (std::size_t q = 1; q < proposals.size(); ++q) {
    const bool is_equal = scores.scores[q] == scores.scores[best];
    if (scores.scores[q] > scores.scores[best] || (is_equal && scores.gains[q] > scores.gains[best])) best = q;
  }
  return best;
}

NumberJudge::Variation NumberJudge::vary(const PanelRows& panel, Block block) {
  const Weight total = panel.weight_of(block);
  double sum = 0.0, plain_sum = 0.0, squares = 0.0;
  for_each_bit(block, [&](std::size_t i) {
    sum += multiplicity(panel.weight(i)) * values_[i];
    plain_sum += values_[i];
  });
  const double mean = sum / multiplicity(total), plain_mean = plain_sum / std::popcount(block);
  plain_squares_ = 0.0;
  for_each_bit(block, [&](std::size_t i) {
    deviations_[i] = values_[i] - mean;
    squares += multiplicity(panel.weight(i)) * (deviations_[i] * deviations_[i]);
    const double plain = values_[i] - plain_mean;
    plain_squares_ += plain * plain;
  });
  // The square of a sum of deviations is at most the total weight times `squares`, and must be finite. Gains are
  // ratios, so a smaller unit of the deviations does not change them.
  if (!std::isfinite(squares * multiplicity(total) * multiplicity(total))) {
    squares = 0.0;
    for_each_bit(block, [&](std::size_t i) {
      deviations_[i] *= 0x1p-128;
      squares += multiplicity(panel.weight(i)) * (deviations_[i] * deviations_[i]);
    });
  }
  return {squares, total};
}

// Scores all proposals in one pass over the samples. A sample that is not on the left adds 0: a branch would often be
// mispredicted.
void NumberJudge::score_few(PanelRows& panel, Block block, const Variation& variation, std::span<Proposal> proposals,
                            Scores& scores) const {
  using Lefts = std::array<Block, kFewProposals>;
  const auto gains_of = [&](const Lefts& lefts) {
    std::array<double, kFewProposals> sums{};
    for_each_bit(block, [&](std::size_t i) {
      const double deviation = multiplicity(panel.weight(i)) * deviations_[i];
      for (std::size_t q = 0; q < kFewProposals; ++q) sums[q] += (lefts[q] >> i & 1) != 0 ? deviation : 0.0;
    });
    for (std::size_t q = 0; q < kFewProposals; ++q) sums[q] = variation.gain(sums[q], panel.weight_of(lefts[q]));
    return sums;
  };
  Lefts lefts, with;
  for (std::size_t q = 0; q < kFewProposals; ++q) lefts[q] = proposals[q].left;
  const std::array<double, kFewProposals> without_missing = gains_of(lefts);
  std::ranges::copy(without_missing, scores.scores.begin());
  if (panel.has_missing()) {
    for (std::size_t q = 0; q < kFewProposals; ++q) {
      with[q] = lefts[q] | panel.missing(block, proposals[q].split.cell);
    }
    const std::array<double, kFewProposals> with_missing = gains_of(with);
    for (std::size_t q = 0; q < kFewProposals; ++q) {
      if (proposals[q].split.asks_if_missing() || with[q] == lefts[q]) continue;
      scores.scores[q] = better_side(proposals[q], with[q] & ~lefts[q], without_missing[q], with_missing[q]);
    }
  }
  std::copy_n(scores.scores.begin(), kFewProposals, scores.gains.begin());
}

// Scores the proposals feature by feature: one walk along a feature gives the sums for all its proposals.
void NumberJudge::score_many(PanelRows& panel, Block block, const Variation& variation, std::span<Proposal> proposals,
                             Scores& scores) {
  std::uint32_t todo = static_cast<std::uint32_t>((std::uint64_t{1} << proposals.size()) - 1);
  static_assert(kMostProposals <= 32);
  while (todo != 0) {
    const auto next = static_cast<std::size_t>(std::countr_zero(todo));
    const std::int32_t feature = proposals[next].split.cell;
    if (proposals[next].split.is_of_levels) {  // levels have no order, so there is no walk
      double left = 0.0;
      for_each_bit(proposals[next].left,
                   [&](std::size_t i) { left += multiplicity(panel.weight(i)) * deviations_[i]; });
      scores.scores[next] = scores.gains[next] = variation.gain(left, panel.weight_of(proposals[next].left));
      todo &= todo - 1;
      continue;
    }
    walk(panel, block, proposals[next].split);
    const Block missing = panel.missing(block, feature);
    const auto n_there = static_cast<std::size_t>(std::popcount(block & ~missing));
    for (std::uint32_t rest = todo; rest != 0; rest &= rest - 1) {
      const auto q = static_cast<std::size_t>(std::countr_zero(rest));
      Proposal& proposal = proposals[q];
      if (proposal.split.cell != feature) continue;
      todo &= ~(1u << q);
      const auto n_left = static_cast<std::size_t>(std::popcount(proposal.left));
      double score = variation.gain(walk_.sums[n_left], walk_.weights[n_left]);
      if (missing != 0 && !proposal.split.asks_if_missing()) {
        const double sum_with = walk_.sums[n_left] + (walk_.sums[walk_.n] - walk_.sums[n_there]);
        const Weight weight_with = walk_.weights[n_left] + panel.weight_of(missing);
        score = better_side(proposal, missing, score, variation.gain(sum_with, weight_with));
      }
      scores.gains[q] = score;
      scores.scores[q] = variation.squares > 0.0 ? std::max(score, walk_.neighbours) : score;
    }
  }
}

void NumberJudge::walk(PanelRows& panel, Block block, const Split& split) {
  const FeatureOrder& order = orders_.along(panel, block, split);
  walk_.n = 0;
  walk_.sums[0] = 0.0;
  walk_.weights[0] = 0;
  std::array<std::uint8_t, kMostDeciding> members;
  for (std::size_t k = 0; k < order.n; ++k) {  // no branch, since it would often be mispredicted
    members[walk_.n] = order.bits[k];
    walk_.n += block >> order.bits[k] & 1;
  }
  double differences = 0.0, last = values_[members[0]];
  for (std::size_t k = 0; k < walk_.n; ++k) {
    const std::size_t i = members[k];
    const double difference = values_[i] - last;
    differences += difference * difference;
    last = values_[i];
    walk_.sums[k + 1] = walk_.sums[k] + multiplicity(panel.weight(i)) * deviations_[i];
    walk_.weights[k + 1] = walk_.weights[k] + panel.weight(i);
  }
  // The mean squared difference of independent neighbours is twice the variance (von Neumann's ratio). The neighbour
  // share is 1 minus the ratio of both.
  const auto n = static_cast<double>(walk_.n);
  walk_.neighbours = plain_squares_ > 0.0 ? 1.0 - n * differences / (2.0 * plain_squares_ * (n - 1.0)) : 0.0;
}

}  // namespace onlineforest::orderfree
