#include "orderfree/labels/score.hpp"

#include <array>
#include <bit>

namespace onlineforest::orderfree {

namespace {

// The number of pairs of samples of two runs is at most kMostPairs.
constexpr std::size_t kMostPairs = kMostDeciding / 2 * (kMostDeciding / 2);
// Entry n is 2^32 / n, rounded down: a multiplication is faster than a division.
constexpr auto kReciprocals = [] {
  std::array<std::uint64_t, kMostPairs + 1> reciprocals{};
  for (std::size_t n = 1; n < reciprocals.size(); ++n) reciprocals[n] = (std::uint64_t{1} << 32) / n;
  return reciprocals;
}();

// The share `part / whole` of one neighbour, rounded down.
Neighbours share_of(int part, std::uint64_t reciprocal) {
  return static_cast<Neighbours>(static_cast<std::uint64_t>(part) * reciprocal >> 16);
}
Neighbours share_of(int part, int whole) { return share_of(part, kReciprocals[static_cast<std::size_t>(whole)]); }

// The expected number of neighbours of different labels among the samples of a level.
Neighbours differing_within(Block run, const Groups& labels) {
  const int n = std::popcount(run);
  int n_alike = 0;  // pairs of samples of one label, in either order and of a sample with itself
  for (Block rest = run; rest != 0; rest &= rest - 1) n_alike += std::popcount(run & labels.like(first_bit(rest)));
  return share_of(n * n - n_alike, n);
}

Neighbours differing_in_runs(const FeatureOrder& order, Block block, const Groups& labels) {
  Neighbours differing = 0;
  Block before = 0;
  std::size_t k = 0;
  for (Block starts = order.starts; starts != 0;) {
    starts &= starts - 1;
    const std::size_t end = starts != 0 ? first_bit(starts) : order.n;
    Block run = 0;
    int n_pairs = 0, n_between = 0;  // pairs of equal labels within the run, and with the run before
    for (; k < end; ++k) {
      const Block bit = block & Block{1} << order.bits[k];
      const Block like = bit != 0 ? labels.like(order.bits[k]) : 0;
      n_pairs += std::popcount(like & run);
      n_between += std::popcount(like & before);
      run |= bit;
    }
    if (run == 0) continue;
    const int n = std::popcount(run), n_before = std::popcount(before);
    differing += share_of(n * (n - 1) - 2 * n_pairs, n) + share_of(n * n_before - n_between, n * n_before);
    before = run;
  }
  return differing;
}

// The number of neighbours of different labels in a block without equal values.
Neighbours differing_in_line(const FeatureOrder& order, Block block, const Groups& labels) {
  std::size_t n = 0;
  std::array<std::uint8_t, kMostDeciding> line;
  for (std::size_t k = 0; k < order.n; ++k) {  // without a branch, which would often be mispredicted
    line[n] = static_cast<std::uint8_t>(labels.group(order.bits[k]));
    n += block >> order.bits[k] & 1;
  }
  std::uint8_t n_different = 0;
  for (std::size_t k = 0; k + 1 < n; ++k) {
    n_different = static_cast<std::uint8_t>(n_different + (line[k] != line[k + 1]));
  }
  return n_different * kOneNeighbour;
}

}  // namespace

Neighbours differing_neighbours(const FeatureOrder& order, Block block, const Groups& labels) {
  const bool has_ties = static_cast<std::size_t>(std::popcount(order.starts)) < order.n;
  return has_ties ? differing_in_runs(order, block, labels) : differing_in_line(order, block, labels);
}

Neighbours differing_neighbours(const Groups& levels, Block block, const Groups& labels, const LabelTotals& totals) {
  if (totals.is_pure()) return 0;
  const int n_pairs = totals.n * (totals.n - 1);
  const std::uint64_t reciprocal = (std::uint64_t{1} << 32) / static_cast<std::uint64_t>(n_pairs);
  const Neighbours between = share_of(totals.n * totals.n - totals.n_squares, reciprocal);
  Neighbours differing = 0, n_runs = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Block run = levels.block(l) & block;
    if (run == 0) continue;
    differing += differing_within(run, labels);
    ++n_runs;
  }
  return differing + (n_runs - 1) * between;
}

}  // namespace onlineforest::orderfree
