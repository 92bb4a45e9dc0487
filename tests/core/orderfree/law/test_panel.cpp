// Panels, proposals and splits, each against plain code.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "orderfree/labels/labels.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "orderfree/worlds.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

using LabelSamples = SampleStore<LabelHashes>;
using LabelOrder = RankOrder<LabelHashes>;

const World kWorlds[] = {
    {3, 40, 3, 1, 64},   // distinct rows
    {2, 3, 2, 1, 64},    // equal rows
    {2, 2, 40, 3, 64},   // equal rows of many labels, with weights
    {5, 9, 2, 4, 0},     // all places are equal
    {1, 100, 70, 1, 3},  // a label for each sample
    {65, 2, 2, 2, 64},   // more features than a panel keeps columns
    {200, 30, 4, 1, 64},
    {3, 40, 3, 1, 64, 10},                   // some missing cells
    {2, 2, 2, 2, 64, 60},                    // mostly missing cells, and equal rows
    {5, 9, 30, 9, 0, 50},                    // missing cells and heavy weights
    {70, 20, 3, 2, 64, 30},                  // missing cells, and more features than a panel keeps columns
    {90, 1, 2, 1, 64, 2},                    // cells vary only in being missing
    {3, 40, 1, 4, 64, 20},                   // one label
    {3, 40, 3, 3, 64, 0, true},              // weights that are not whole
    {2, 5, 4, 9, 3, 20, true},               // missing cells and weights that are not whole
    {4, 60, 2, 1'000'000, 64, 0, true},      // weights of very different size
    {4, 9, 3, 1, 64, 0, false, 2, 5},        // the last two features are categorical
    {3, 1, 2, 3, 64, 0, false, 3, 2},        // all features are categorical, with two levels and weights
    {2, 40, 3, 1, 64, 0, false, 1, 1000},    // a level for each sample
    {5, 9, 4, 3, 0, 30, false, 2, 4},        // missing cells beside levels, and all places are equal
    {4, 40, 3, 2, 64, 60, true, 2, 3},       // mostly missing cells, and weights that are not whole
    {60, 3, 2, 2, 64, 20, false, 30, 3},     // fewer features than a panel keeps columns, but more cells
    {90, 1, 3, 1, 64, 0, false, 2, 3},       // only the categorical features vary
    {40, 2, 2, 1, 64, 1, false, 38, 4, 97},  // levels hardly vary
    {6, 30, 40, 1, 64, 0, false, 3, 6},      // many labels
};

TEST_CASE_TEMPLATE("a proposal knows the samples that its split sends left", Target, Labels, Numbers) {
  std::mt19937 draw(1);
  Panel<Target> panel;
  for (const World& world : kWorlds) {
    for (const std::size_t n : {2, 5, 12, 13, 15, 16, 30, 63, 64, 100}) {
      const auto samples = store_of<Target>(world, n, draw);
      const RankOrder order(samples, kTreeSeed);
      const std::vector<Slot> slots = circle_of(samples, order);
      panel.load(samples, order, slots);
      for (int trial = 0; trial < 6; ++trial) {
        Block block = panel.all();
        if (trial > 0) block &= (Word{draw()} << 32 | draw()) | (trial % 2 == 0 ? Word{draw()} << 16 : 0);
        if (block == 0 || panel.has_one_x(block)) continue;
        const Word seed = draw();
        const Proposal& best = panel.decide(block, seed);
        INFO("features " << world.n_features << ", samples " << std::popcount(block));
        for (const Proposal& proposal : panel.proposals()) {
          CHECK((proposal.left & ~block) == 0);
          CHECK(proposal.left != 0);
          CHECK(proposal.left != block);
          const Surrogates& others = &proposal == &best ? panel.surrogates() : Surrogates();
          const auto goes_left = [&](Slot slot) { return sends_left(proposal.split, others, samples.row(slot)); };
          CHECK(std::ranges::all_of(slots_in(slots, proposal.left), goes_left));
          CHECK(std::ranges::none_of(slots_in(slots, block & ~proposal.left), goes_left));
        }
      }
    }
  }
}

TEST_CASE("a split sends rows left by threshold, and rows that lack its feature to their side") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  const auto goes_left = [](float x, Split split) { return sends_left(split, {}, &x); };
  for (const bool missing_left : {false, true}) {
    const Split split{0, 1.5f, missing_left}, asks{0, infinity, missing_left};
    CHECK(goes_left(1.5f, split));
    CHECK_FALSE(goes_left(std::nextafter(1.5f, 2.0f), split));
    CHECK(goes_left(kMissing, split) == missing_left);
    CHECK_FALSE(split.asks_if_missing());
    CHECK(asks.asks_if_missing());
    CHECK(goes_left(most, asks));
    CHECK(goes_left(-most, asks));
    CHECK(goes_left(kMissing, asks) == missing_left);
  }
}

TEST_CASE_TEMPLATE("missing values take part in splits", Target, Labels, Numbers) {
  using Samples = SampleStore<typename Target::Values>;
  using Value = typename Target::Value;
  const auto decide = [](std::vector<std::vector<float>> rows, std::vector<int> values, Word seed) {
    Samples samples({rows.front().size()}, 3);
    if constexpr (std::is_same_v<Target, Labels>) samples.values().set(label_hashes(2));
    for (std::size_t i = 0; i < rows.size(); ++i) samples.add(rows[i].data(), static_cast<Value>(values[i]), kOne);
    const RankOrder order(samples, kTreeSeed);
    Panel<Target> panel;
    panel.load(samples, order, circle_of(samples, order));
    CHECK(panel.has_missing() == samples.has_missing());
    return panel.decide(panel.all(), seed).split;
  };
  for (Word seed = 0; seed < 60; ++seed) {
    // All samples lack the first feature, so it does not vary. The second has one value, or is missing.
    const Split asks = decide({{kMissing, 1.0f}, {kMissing, kMissing}}, {0, 1}, seed);
    CHECK(asks.cell == 1);
    CHECK(asks.asks_if_missing());
    CHECK_FALSE(asks.missing_left);
    // The threshold is drawn from the present values. The sample that lacks the feature goes to the side of its label.
    const std::vector<std::vector<float>> rows{{2.0f}, {3.0f}, {kMissing}};
    for (const int value : {0, 1}) {
      const Split split = decide(rows, {0, 1, value}, seed);
      if (split.asks_if_missing()) continue;
      CHECK(split.threshold >= 2.0f);
      CHECK(split.threshold < 3.0f);
      CHECK(split.missing_left == (value == 0));
    }
    // No value is missing, so rows that lack the feature go to the larger side; to the left on a tie.
    CHECK(decide({{2.0f}, {3.0f}}, {0, 1}, seed).missing_left);
    CHECK(decide({{2.0f}, {2.0f}, {3.0f}}, {0, 0, 1}, seed).missing_left);
    CHECK_FALSE(decide({{2.0f}, {3.0f}, {3.0f}}, {0, 1, 1}, seed).missing_left);
  }
}

TEST_CASE("blocks of a panel are sets of its samples") {
  std::mt19937 draw(2);
  Panel<Labels> panel;
  for (const World& world : kWorlds) {
    const LabelSamples samples = store_of<Labels>(world, 90, draw);
    const LabelOrder order(samples, kTreeSeed);
    const std::vector<Slot> slots = circle_of(samples, order);
    std::vector<Slot> shuffled = slots;
    std::ranges::shuffle(shuffled, draw);
    panel.load(samples, order, shuffled);
    CHECK(std::ranges::equal(panel.slots(), slots));
    CHECK(static_cast<std::size_t>(std::popcount(panel.all())) == slots.size());
    for (int trial = 0; trial < 40; ++trial) {
      const Word bits = Word{draw()} << 32 | draw();
      const Block block = panel.all() & (trial % 2 == 0 ? bits : bits & bits >> 7 & bits << 9);
      if (block == 0) continue;
      const std::vector<Slot> those = slots_in(slots, block);
      std::map<Label, std::int64_t> counts, found;
      for (const Slot slot : those) counts[samples.value(slot)] += samples.weight(slot);
      for (std::size_t c = 0; c < panel.groups().size(); ++c) {
        const Block part = block & panel.groups().block(c);
        if (part != 0) found[static_cast<Label>(panel.groups().word(c))] += panel.weight_of(part);
      }
      CHECK(found == counts);
      CHECK(panel.has_one_value(block) == (counts.size() == 1));
      CHECK(panel.has_one_x(block) ==
            std::ranges::all_of(those, [&](Slot slot) { return samples.same_x(slot, those.front()); }));
      std::int64_t total = 0;
      for (const auto& [label, weight] : counts) total += weight;
      CHECK(panel.weight_of(block) == total);
    }
  }
}

TEST_CASE("a panel groups its samples by level") {
  std::mt19937 draw(4);
  Panel<Labels> panel;
  for (const World& world : kWorlds) {
    const LabelSamples samples = store_of<Labels>(world, 64, draw);
    const LabelOrder order(samples, kTreeSeed);
    const std::vector<Slot> slots = circle_of(samples, order);
    panel.load(samples, order, slots);
    const Layout& layout = samples.layout();
    for (std::size_t feature = layout.n_numeric(); feature < layout.n_features; ++feature) {
      const std::size_t cell = layout.cell_of(feature);
      const Groups& levels = panel.levels(static_cast<std::int32_t>(cell));
      for (std::size_t i = 0; i < slots.size(); ++i) {
        Block expected = 0;
        for (std::size_t k = 0; k < slots.size(); ++k) {
          const bool is_like = level_at(samples.row(slots[k]) + cell) == level_at(samples.row(slots[i]) + cell);
          expected |= static_cast<Block>(is_like) << k;
        }
        CHECK(levels.like(i) == expected);
      }
    }
  }
}

TEST_CASE("a panel that is loaded again remembers nothing") {
  std::mt19937 draw(3);
  Panel<Labels> panel, fresh;
  for (const World& world : kWorlds) {
    for (const std::size_t n : {64, 20}) {
      const LabelSamples samples = store_of<Labels>(world, n, draw);
      const LabelOrder order(samples, kTreeSeed);
      const std::vector<Slot> slots = circle_of(samples, order);
      panel.load(samples, order, slots);
      fresh = Panel<Labels>();
      fresh.load(samples, order, slots);
      if (!panel.has_one_x(panel.all()))
        CHECK(panel.decide(panel.all(), 4).split == fresh.decide(fresh.all(), 4).split);
    }
  }
}

TEST_CASE("light weights of blocks are sums") {
  std::mt19937 draw(9);
  for (int trial = 0; trial < 200; ++trial) {
    std::array<int, kMostDeciding> weights{};
    LightWeights light;
    int left = static_cast<int>(LightWeights::kMost);
    for (std::size_t i = 0; i < weights.size() && left > 0; ++i) {
      weights[i] = std::min(left, 1 + static_cast<int>(draw() % (trial % 2 == 0 ? 3u : 200u)));
      light.set(i, weights[i] * kOne);
      left -= weights[i];
    }
    const Block block = Word{draw()} << 32 | draw();
    int expected = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) expected += block >> i & 1 ? weights[i] : 0;
    CHECK(light.of(block) == expected);
    std::array<std::uint16_t, 2> parts{};
    light.of(~Block{0}, std::array{block, ~block}, parts);
    CHECK(parts[0] == expected);
    CHECK(parts[1] == LightWeights::kMost - left - expected);
  }
}

TEST_CASE("splits of neighbouring, denormal and extreme values separate them") {
  constexpr float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  const std::pair<float, float> pairs[] = {{1.0f, std::nextafter(1.0f, 2.0f)},
                                           {0.0f, least},
                                           {-least, 0.0f},
                                           {-least, least},
                                           {-most, most},
                                           {-most, -least},
                                           {std::nextafter(most, 0.0f), most}};
  for (const auto& [low, high] : pairs) {
    LabelSamples samples({1}, 3);
    samples.values().set(label_hashes(2));
    samples.add(&low, 0, kOne);
    samples.add(&high, 1, kOne);
    const LabelOrder order(samples, kTreeSeed);
    Panel<Labels> panel;
    panel.load(samples, order, circle_of(samples, order));
    for (Word seed = 0; seed < 50; ++seed) {
      const Split split = panel.decide(panel.all(), seed).split;
      CHECK(split.threshold >= low);
      CHECK(split.threshold < high);
    }
  }
}

}  // namespace
