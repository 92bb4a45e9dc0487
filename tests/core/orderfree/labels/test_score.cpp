#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "orderfree/labels/score.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

// Samples of some labels along a feature of some values.
struct Line {
  std::array<float, kMostDeciding> column;
  std::array<Word, kMostDeciding> labels;
  Groups groups;
  Block block;

  Line(std::mt19937& draw, unsigned n_labels, unsigned n_values) {
    for (std::size_t i = 0; i < kMostDeciding; ++i) {
      column[i] = static_cast<float>(draw() % n_values);
      labels[i] = draw() % n_labels;
      groups.add(i, labels[i]);
    }
    block = (Word{draw()} << 32 | draw()) | 3;
  }

  [[nodiscard]] LabelTotals totals() const {
    LabelTotals totals;
    totals.count(groups, block);
    totals.weight = totals.n;
    totals.squares = totals.n_squares;
    return totals;
  }
};

double neighbours(Neighbours n) { return static_cast<double>(n) / kOneNeighbour; }

// The mean number of differing neighbours over random orders of equal values.
double mean_differing(const Line& line, std::mt19937& draw, int n_orders) {
  std::vector<std::size_t> samples;
  for (std::size_t i = 0; i < kMostDeciding; ++i) {
    if (line.block >> i & 1) samples.push_back(i);
  }
  int n_differing = 0;
  for (int order = 0; order < n_orders; ++order) {
    std::ranges::shuffle(samples, draw);
    std::ranges::stable_sort(samples, {}, [&](std::size_t i) { return line.column[i]; });
    for (std::size_t k = 1; k < samples.size(); ++k)
      n_differing += line.labels[samples[k]] != line.labels[samples[k - 1]];
  }
  return static_cast<double>(n_differing) / n_orders;
}

TEST_CASE("differing neighbours are the mean over orders of equal values") {
  std::mt19937 draw(5);
  for (const unsigned n_values : {1u, 2u, 5u, 30u, 1000000u}) {
    for (const unsigned n_labels : {2u, 3u, 26u, 64u}) {
      const Line line(draw, n_labels, n_values);
      FeatureOrder whole, part;
      whole.sort(~Block{0}, line.column.data());
      part.sort(line.block, line.column.data());
      const Neighbours found = differing_neighbours(whole, line.block, line.groups);
      CHECK(found == differing_neighbours(part, line.block, line.groups));
      CHECK(neighbours(found) == doctest::Approx(mean_differing(line, draw, 4000)).epsilon(0.01));
    }
  }
}

TEST_CASE("neighbours of different levels differ as often as in a random order") {
  std::mt19937 draw(6);
  for (const unsigned n_levels : {1u, 2u, 7u, 200u}) {
    const Line line(draw, 3, n_levels);
    Groups levels;
    for (std::size_t i = 0; i < kMostDeciding; ++i) levels.add(i, static_cast<Level>(line.column[i]));
    double expected = 0.0;
    std::size_t n_runs = 0;
    for (unsigned level = 0; level < n_levels; ++level) {
      Line of_level = line;
      for (std::size_t i = 0; i < kMostDeciding; ++i) {
        if (line.column[i] != static_cast<float>(level)) of_level.block &= ~(Block{1} << i);
      }
      if (of_level.block == 0) continue;
      ++n_runs;
      expected += mean_differing(of_level, draw, 1000);
    }
    const LabelTotals totals = line.totals();
    const double rate = static_cast<double>(totals.n * totals.n - totals.n_squares) / (totals.n * (totals.n - 1));
    expected += static_cast<double>(n_runs - 1) * rate;
    const Neighbours found = differing_neighbours(levels, line.block, line.groups, totals);
    CHECK(neighbours(found) == doctest::Approx(expected).epsilon(0.02));
  }
}

TEST_CASE("a score adds half of the neighbour share to the gain share") {
  // Ten samples, six of one label and four of another: a split into the labels, along which one pair of neighbours
  // differs.
  const LabelTotals totals{10.0, 52.0, 10, 52};
  const double all = totals.score(purity_of(36.0, 6.0, 16.0, 4.0), kOneNeighbour);
  CHECK(all == doctest::Approx(1.0 + 0.5 * (1.0 - 1.0 / 4.8)));
  // A split that tells nothing, on a feature that tells nothing.
  const double nothing =
      totals.score(purity_of(9.0 + 4.0, 5.0, 9.0 + 4.0, 5.0), static_cast<Neighbours>(4.8 * kOneNeighbour));
  CHECK(std::abs(nothing) < 1e-5);
  CHECK(LabelTotals{10.0, 100.0, 10, 100}.score(10.0, 0) == 0.0);
}

TEST_CASE("finalists are the purest proposals, of equal ones the first") {
  std::mt19937 draw(7);
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> purities(1 + draw() % 64);
    for (double& purity : purities) purity = static_cast<double>(draw() % (trial % 2 == 0 ? 6 : 1000000));
    std::vector<std::size_t> expected(purities.size());
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    std::ranges::stable_sort(expected, std::ranges::greater(), [&](std::size_t q) { return purities[q]; });
    expected.resize(std::min(expected.size(), Finalists::kMost));
    std::vector<std::size_t> asked;
    const auto one = [](std::size_t) { return 1.0; };
    const std::size_t first = Finalists(purities).best(one, [&](std::size_t q) {
      asked.push_back(q);
      return 0.0;
    });
    CHECK(asked == expected);
    CHECK(first == expected.front());
    const auto is_last = [&](std::size_t q) { return q == expected.back() ? 1.0 : 0.0; };
    CHECK(Finalists(purities).best(one, is_last) == expected.back());
    // The bound of the last but one is not above the score of the first.
    const auto until_last = [&](std::size_t q) { return q == expected[expected.size() - 2] ? 0.0 : 1.0; };
    if (expected.size() > 2) CHECK(Finalists(purities).best(until_last, is_last) == expected.front());
  }
}

}  // namespace
