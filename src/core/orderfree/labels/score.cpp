#include "orderfree/labels/score.hpp"

#include <array>
#include <bit>
#include <utility>

namespace onlineforest::orderfree {

namespace {

// The samples of a block along a feature: the label and the run of each.
struct Line {
  std::size_t n = 0;
  std::array<std::uint8_t, kMostDeciding> labels, runs;

  Line(const FeatureOrder& order, Block block, const Groups& groups) {
    if (order.n == static_cast<std::size_t>(std::popcount(block))) {
      n = order.n;
      for (std::size_t k = 0; k < n; ++k) labels[k] = static_cast<std::uint8_t>(groups.group(order.bits[k]));
      runs = order.runs;
      return;
    }
    for (std::size_t k = 0; k < order.n; ++k) {  // without a branch, which would often be mispredicted
      labels[n] = static_cast<std::uint8_t>(groups.group(order.bits[k]));
      runs[n] = order.runs[k];
      n += block >> order.bits[k] & 1;
    }
  }
};

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

Neighbours differing_in_runs(const Line& line, Neighbours of_levels) {
  Neighbours differing = 0;
  std::array<std::array<std::uint8_t, kMostDeciding>, 2> memory{};
  auto *counts = &memory[0], *before = &memory[1];  // samples of each label in this run, and in the run before
  for (std::size_t begin_before = 0, begin = 0, end = 0; begin < line.n; begin_before = begin, begin = end) {
    int n_pairs = 0, n_between = 0;  // pairs of equal labels within the run, and with the run before
    do {
      const std::uint8_t label = line.labels[end];
      n_pairs += (*counts)[label]++;
      n_between += (*before)[label];
    } while (++end < line.n && line.runs[end] == line.runs[begin]);
    const int n = static_cast<int>(end - begin), n_before = static_cast<int>(begin - begin_before);
    if (n > 1) differing += share_of(n * (n - 1) - 2 * n_pairs, n);
    if (begin > 0) differing += of_levels > 0 ? of_levels : share_of(n * n_before - n_between, n * n_before);
    for (std::size_t k = begin_before; k < begin; ++k) (*before)[line.labels[k]] = 0;
    std::swap(counts, before);
  }
  return differing;
}

}  // namespace

Neighbours differing_neighbours(const FeatureOrder& order, bool is_of_levels, Block block, const Groups& groups,
                                const LabelTotals& totals) {
  const Line line(order, block, groups);
  if (is_of_levels) {
    if (totals.is_pure()) return 0;
    const int n_pairs = totals.n * (totals.n - 1);
    const std::uint64_t reciprocal = (std::uint64_t{1} << 32) / static_cast<std::uint64_t>(n_pairs);
    return differing_in_runs(line, share_of(totals.n * totals.n - totals.n_squares, reciprocal));
  }
  std::uint8_t n_different = 0, n_ties = 0;
  for (std::size_t k = 0; k + 1 < line.n; ++k) {
    n_different = static_cast<std::uint8_t>(n_different + (line.labels[k] != line.labels[k + 1]));
    n_ties = static_cast<std::uint8_t>(n_ties + (line.runs[k] == line.runs[k + 1]));
  }
  return n_ties == 0 ? n_different * kOneNeighbour : differing_in_runs(line, 0);
}

}  // namespace onlineforest::orderfree
