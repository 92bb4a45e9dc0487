// The ballot against a panel that decides again.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "orderfree/labels/ballot.hpp"
#include "orderfree/labels/labels.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/worlds.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

using LabelSamples = SampleStore<LabelHashes>;
using LabelOrder = RankOrder<LabelHashes>;

TEST_CASE("a ballot after replacements equals a new panel") {
  const World worlds[] = {
      {3, 4000, 3, 1, 64},                         // all weights are 1
      {4, 4000, 30, 3, 64},                        // many labels, with weights
      {4, 4000, 2, 7, 64},                         // weights whose sum is sometimes too large for a ballot
      {3, 400, 4, 1, 2},                           // many places are equal
      {2, 40, 3, 1, 64},                           // many values are equal, sometimes whole rows
      {16, 2, 2, 1, 64},                           // features that are constant among deciding samples
      {3, 4000, 64, 1, 64},                        // labels with a single sample
      {3, 4000, 3, 1, 64, 1},                      // a few samples lack cells
      {3, 4000, 3, 1, 64, 0, false, 2, 3},         // the last two features are categorical
      {1, 1, 3, 1, 64, 0, false, 1, 1000},         // the only feature is categorical
      {3, 4000, 3, 1, 64, 0, false, 2, 9, 95},     // rare levels
      {9, 4000, 2, 3, 64, 0, false, 8, 2, 98},     // rare levels, and features that are sometimes constant
      {60, 40000, 4, 1, 64, 0, false, 59, 2, 99},  // mostly constant features: a proposal tries several
      {3, 400, 4, 1, 2, 0, false, 2, 4},           // many places are equal
      {3, 4000, 3, 1, 64, 1, false, 2, 5},         // a few samples lack cells
  };
  std::mt19937 draw(8);
  for (const World& world : worlds) {
    const LabelSamples samples = store_of<Labels>(world, 500, draw);
    const LabelOrder order(samples, kTreeSeed);
    const auto n = static_cast<Slot>(samples.n_slots());
    REQUIRE(n > 150);
    const Word seed = draw();
    Panel<Labels> panel;
    Ballot ballot;
    std::vector<Slot> seats;
    const auto sit_down = [&] {
      panel.load(samples, order, seats);
      seats.assign(panel.slots().begin(), panel.slots().end());
      (void)panel.decide(panel.all(), seed);
      ballot.keep(panel);
    };
    for (Slot slot = 0; slot < static_cast<Slot>(kMostDeciding); ++slot) seats.push_back(slot);
    sit_down();
    int n_followed = 0;
    for (int step = 0; step < 1000; ++step) {
      const auto slot = static_cast<Slot>(draw() % static_cast<unsigned>(n));
      const std::size_t seat = draw() % kMostDeciding;
      if (std::ranges::find(seats, slot) != seats.end()) continue;
      if (ballot.empty() || !ballot.is_open_to(samples, seats, slot)) {
        seats[seat] = slot;
        sit_down();
        continue;
      }
      ballot.replace(samples, order, seed, seats, seat, slot, samples.weight(seats[seat]));
      ++n_followed;
      panel.load(samples, order, seats);
      CHECK(ballot.best(samples, seats) == panel.decide(panel.all(), seed).split);
    }
    INFO("features " << world.n_features << ", labels " << world.n_labels);
    CHECK(n_followed > 50);
  }
}

TEST_CASE("a ballot is not kept for wide rows, whose screened features may change") {
  std::mt19937 draw(9);
  for (const std::size_t n_features : {kMostNarrow, kMostNarrow + 1}) {
    const LabelSamples samples = store_of<Labels>({n_features, 4000, 2, 1, 64}, 64, draw);
    const LabelOrder order(samples, kTreeSeed);
    std::vector<Slot> seats(kMostDeciding);
    std::iota(seats.begin(), seats.end(), Slot{0});
    Panel<Labels> panel;
    panel.load(samples, order, seats);
    (void)panel.decide(panel.all(), draw());
    Ballot ballot;
    ballot.keep(panel);
    CHECK(ballot.empty() == (n_features > kMostNarrow));
  }
}

TEST_CASE("a ballot is closed to samples that lack cells") {
  std::mt19937 draw(12);
  LabelSamples samples = store_of<Labels>({2, 4000, 2, 1, 64}, 64, draw);
  const LabelOrder order(samples, kTreeSeed);
  Panel<Labels> panel;
  Ballot ballot;
  std::vector<Slot> seats = circle_of(samples, order);
  REQUIRE(seats.size() == kMostDeciding);
  const auto keep = [&] {
    panel.load(samples, order, seats);
    (void)panel.decide(panel.all(), 3);
    ballot.keep(panel);
  };
  keep();
  CHECK_FALSE(ballot.empty());
  const float lacking[] = {1.0f, kMissing}, whole[] = {-1.0f, -1.0f};
  const Slot one = samples.add(lacking, 0, kOne), other = samples.add(whole, 0, kOne);
  CHECK_FALSE(ballot.is_open_to(samples, seats, one));
  CHECK(ballot.is_open_to(samples, seats, other));
  seats.front() = other;
  keep();
  CHECK_FALSE(ballot.empty());
  seats.front() = one;
  keep();
  CHECK(ballot.empty());
}

}  // namespace
