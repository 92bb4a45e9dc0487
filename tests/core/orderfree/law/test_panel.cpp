// Samples, panels, ballots and trees, each against plain code.
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

#include "base/call.hpp"
#include "orderfree/labels/ballot.hpp"
#include "orderfree/labels/labels.hpp"
#include "orderfree/law/groups.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "orderfree/tree/tree.hpp"
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
    {65, 2, 2, 2, 64},   // more features than columns are kept
    {200, 30, 4, 1, 64},
    {3, 40, 3, 1, 64, 10},                   // some cells are missing
    {2, 2, 2, 2, 64, 60},                    // most are, and rows are equal
    {5, 9, 30, 9, 0, 50},                    // with heavy weights
    {70, 20, 3, 2, 64, 30},                  // of more features than columns are kept
    {90, 1, 2, 1, 64, 2},                    // features vary only in that they are missing
    {3, 40, 1, 4, 64, 20},                   // one value
    {3, 40, 3, 3, 64, 0, true},              // weights that are not whole
    {2, 5, 4, 9, 3, 20, true},               // with cells that are missing
    {4, 60, 2, 1'000'000, 64, 0, true},      // of very different size
    {4, 9, 3, 1, 64, 0, false, 2, 5},        // the last two features are categorical
    {3, 1, 2, 3, 64, 0, false, 3, 2},        // all are, with two levels and weights
    {2, 40, 3, 1, 64, 0, false, 1, 1000},    // a level for each sample
    {5, 9, 4, 3, 0, 30, false, 2, 4},        // cells are missing beside levels, and all places are equal
    {4, 40, 3, 2, 64, 60, true, 2, 3},       // most are, and weights are not whole
    {60, 3, 2, 2, 64, 20, false, 30, 3},     // fewer features than columns are kept, but more cells
    {90, 1, 3, 1, 64, 0, false, 2, 3},       // hardly a feature varies
    {40, 2, 2, 1, 64, 1, false, 38, 4, 97},  // levels hardly vary
    {6, 30, 40, 1, 64, 0, false, 3, 6},      // of many labels
};

TEST_CASE_TEMPLATE("a proposal knows the samples that its cut sends left", Target, Labels, Numbers) {
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
          const auto goes_left = [&](Slot slot) { return sends_left(proposal.cut, others, samples.row(slot)); };
          CHECK(std::ranges::all_of(slots_in(slots, proposal.left), goes_left));
          CHECK(std::ranges::none_of(slots_in(slots, block & ~proposal.left), goes_left));
        }
      }
    }
  }
}

TEST_CASE("a cut sends rows left by threshold, and rows that lack its feature to their side") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  const auto goes_left = [](float x, Cut cut) { return sends_left(cut, {}, &x); };
  for (const bool missing_left : {false, true}) {
    const Cut cut{0, 1.5f, missing_left}, asks{0, infinity, missing_left};
    CHECK(goes_left(1.5f, cut));
    CHECK_FALSE(goes_left(std::nextafter(1.5f, 2.0f), cut));
    CHECK(goes_left(kMissing, cut) == missing_left);
    CHECK_FALSE(cut.asks_if_missing());
    CHECK(asks.asks_if_missing());
    CHECK(goes_left(most, asks));
    CHECK(goes_left(-most, asks));
    CHECK(goes_left(kMissing, asks) == missing_left);
  }
}

TEST_CASE_TEMPLATE("missing values take part in cuts", Target, Labels, Numbers) {
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
    return panel.decide(panel.all(), seed).cut;
  };
  for (Word seed = 0; seed < 60; ++seed) {
    // The first feature is missing in all: it does not vary. The second is constant where it is there.
    const Cut asks = decide({{kMissing, 1.0f}, {kMissing, kMissing}}, {0, 1}, seed);
    CHECK(asks.cell == 1);
    CHECK(asks.asks_if_missing());
    CHECK_FALSE(asks.missing_left);
    // The threshold is drawn from the values that are there, and what is missing goes to its like.
    const std::vector<std::vector<float>> rows{{2.0f}, {3.0f}, {kMissing}};
    for (const int value : {0, 1}) {
      const Cut cut = decide(rows, {0, 1, value}, seed);
      if (cut.asks_if_missing()) continue;
      CHECK(cut.threshold >= 2.0f);
      CHECK(cut.threshold < 3.0f);
      CHECK(cut.missing_left == (value == 0));
    }
    // Nothing is missing: a row that lacks the feature later goes to the larger side, on a tie left.
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
      if (!panel.has_one_x(panel.all())) CHECK(panel.decide(panel.all(), 4).cut == fresh.decide(fresh.all(), 4).cut);
    }
  }
}

TEST_CASE("a ballot follows exchanges as if all were decided afresh") {
  const World worlds[] = {
      {3, 4000, 3, 1, 64},                         // all weights are 1
      {4, 4000, 30, 3, 64},                        // many labels, with weights
      {4, 4000, 2, 7, 64},                         // weights that add up to too much at times
      {3, 400, 4, 1, 2},                           // many places are equal
      {2, 40, 3, 1, 64},                           // many values, and at times rows, are equal
      {70, 2, 2, 1, 64},                           // features that are constant among those who decide
      {3, 4000, 64, 1, 64},                        // often one sample of a label
      {3, 4000, 3, 1, 64, 1},                      // a few samples lack cells
      {3, 4000, 3, 1, 64, 0, false, 2, 3},         // the last two features are categorical
      {1, 1, 3, 1, 64, 0, false, 1, 1000},         // the only one is
      {3, 4000, 3, 1, 64, 0, false, 2, 9, 95},     // levels that are rare
      {9, 4000, 2, 3, 64, 0, false, 8, 2, 98},     // and features that are constant at times
      {60, 40000, 4, 1, 64, 0, false, 59, 2, 99},  // of which many are tried
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
      ballot.exchange(samples, order, seed, seats, seat, slot, samples.weight(seats[seat]));
      ++n_followed;
      panel.load(samples, order, seats);
      CHECK(ballot.best() == panel.decide(panel.all(), seed).cut);
    }
    INFO("features " << world.n_features << ", labels " << world.n_labels);
    CHECK(n_followed > 50);
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

TEST_CASE("a tree that several threads have used is that of its samples") {
  std::mt19937 draw(10);
  Options options;
  options.layout = {2};
  LabelSamples samples({2}, options.seed);
  samples.values().set(label_hashes(2));
  const Call call(1);
  StopProbe stop = call.probe();
  Scratch<Labels> one, other;
  Tree<Labels> tree(options, 0);
  const auto add = [&] {
    const float row[] = {static_cast<float>(draw() % 100), static_cast<float>(draw() % 100)};
    return samples.add(row, static_cast<Label>(draw() % 2), kOne);
  };
  for (int i = 0; i < 20; ++i) add();
  for (int step = 0; step < 30; ++step) {
    Scratch<Labels>&first = step % 2 == 0 ? one : other, &second = step % 2 == 0 ? other : one;
    tree.regrow(samples, first, stop);
    std::uint64_t rest = 0, masses[2] = {0, 0};
    tree.predict(samples, {samples.row(0), 2}, true, {masses, &rest, 2}, first, stop);
    const Slot slot = add();
    const Change change{slot, 0, false};
    if (samples.weight(slot) == kOne) tree.apply(samples, {&change, 1}, second, stop);
    tree.complete(samples, second, stop);
    const TreeTable<Labels> found = tree.table(samples, first, stop);
    Scratch<Labels> scratch;
    Tree<Labels> fresh(options, 0);
    fresh.regrow(samples, scratch, stop);
    const TreeTable<Labels> expected = fresh.table(samples, scratch, stop);
    CHECK(found.cell == expected.cell);
    CHECK(found.threshold == expected.threshold);
    CHECK(found.columns.count == expected.columns.count);
    if (samples.weight(slot) > kOne) tree.regrow(samples, first, stop);
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

TEST_CASE("cuts of neighbouring, denormal and extreme values separate them") {
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
      const Cut cut = panel.decide(panel.all(), seed).cut;
      CHECK(cut.threshold >= low);
      CHECK(cut.threshold < high);
    }
  }
}

TEST_CASE("the store keeps each sample once, with its weight") {
  for (const int key_bits : {64, 3, 0}) {  // with 0, all keys are equal
    LabelSamples samples({2}, 1, key_bits);
    samples.values().set(label_hashes(3));
    std::mt19937 draw(4);
    struct Held {
      Slot slot;
      Weight weight;
    };
    std::map<std::pair<std::array<float, 2>, Label>, Held> held;
    for (int step = 0; step < 3000; ++step) {
      const std::array<float, 2> row{static_cast<float>(draw() % 4), static_cast<float>(draw() % 4)};
      const auto label = static_cast<Label>(draw() % 3);
      const auto found = held.find({row, label});
      CHECK(samples.find(row.data(), label) == (found == held.end() ? kNoSlot : found->second.slot));
      if (draw() % 2 == 0) {
        const Weight weight = 1 + draw() % 3 * kOne;
        const Slot slot = samples.add(row.data(), label, weight);
        if (found != held.end()) CHECK(slot == found->second.slot);
        held.insert({{row, label}, {slot, 0}}).first->second.weight += weight;
        CHECK(samples.value(slot) == label);
        CHECK(std::equal(row.begin(), row.end(), samples.row(slot)));
      } else if (found != held.end()) {
        const Weight weight = draw() % 2 == 0 ? found->second.weight : (found->second.weight + 1) / 2;
        samples.subtract(found->second.slot, weight);
        if ((found->second.weight -= weight) == 0) {
          CHECK(samples.find(row.data(), label) == found->second.slot);  // until it is released
          samples.release(found->second.slot);
          CHECK(samples.weight(found->second.slot) == 0);
          held.erase(found);
        }
      }
      CHECK(samples.n_distinct() == held.size());
      CHECK(samples.n_slots() <= 48);  // free slots are used again
    }
    for (const auto& [content, there] : held) CHECK(samples.weight(there.slot) == there.weight);
  }
}

TEST_CASE("content orders samples by row, then by the hash of the label") {
  for (const int key_bits : {64, 0}) {
    LabelSamples samples({2}, 1, key_bits);
    samples.values().set(label_hashes(2));
    REQUIRE(samples.values().hash(0) != samples.values().hash(1));
    const Label low = samples.values().hash(0) < samples.values().hash(1) ? 0 : 1, high = 1 - low;
    const float rows[] = {1.0f, 5.0f, 2.0f, -3.0f, -7.0f, 9.0f};
    const Slot one_high = samples.add(rows, high, kOne), one_low = samples.add(rows, low, kOne),
               two = samples.add(rows + 2, low, kOne), three = samples.add(rows + 4, high, kOne);
    const std::vector<Slot> expected{three, one_low, one_high, two};
    std::vector<Slot> slots{one_high, one_low, two, three};
    std::ranges::sort(slots, [&](Slot a, Slot b) { return samples.content_less(a, b); });
    CHECK(slots == expected);
    CHECK(samples.same_x(one_low, one_high));
    CHECK_FALSE(samples.same_x(one_low, two));
    if (key_bits == 0) {  // ranks and places are equal: content decides
      const LabelOrder order(samples, kTreeSeed);
      CHECK(order.rank(one_low) == order.rank(three));
      std::ranges::sort(slots, order);
      CHECK(slots == expected);
      Panel<Labels> panel;
      panel.load(samples, order, std::vector<Slot>{one_high, two, one_low, three});
      CHECK(std::ranges::equal(panel.slots(), expected));
    }
  }
}

TEST_CASE("a released sample is overwritten") {
  LabelSamples samples({2}, 1);
  samples.values().set(label_hashes(2));
  const float rows[] = {1.0f, 5.0f, 2.0f, -3.0f};
  const Slot slot = samples.add(rows, 1, kOne);
  samples.add(rows + 2, 0, kOne);
  samples.subtract(slot, kOne);
  samples.release(slot);
  CHECK(samples.row(slot)[0] == 0.0f);
  CHECK(samples.row(slot)[1] == 0.0f);
  CHECK(samples.find(rows, 1) == kNoSlot);
  CHECK(samples.add(rows, 0, kOne) == slot);
  CHECK(samples.weight(slot) == kOne);
}

TEST_CASE("a missing cell is one value, which comes last") {
  const float other_nan = std::bit_cast<float>(0xffc12345u);
  const float rows[] = {other_nan, -0.0f, std::bit_cast<float>(0x7f800001u), 0.0f};
  float stored[4];
  LabelSamples::copy_canonical(rows, 4, stored);
  CHECK(is_same(stored[0], kMissing));
  CHECK(is_same(stored[1], 0.0f));
  CHECK(is_same(stored[2], kMissing));
  LabelSamples samples({2}, 1);
  samples.values().set(label_hashes(2));
  CHECK_FALSE(samples.has_missing());
  const float last = std::numeric_limits<float>::max(), zero[] = {0.0f, 0.0f}, large[] = {last, 1.0f};
  const Slot a = samples.add(stored, 0, kOne);
  CHECK(samples.add(stored + 2, 0, kOne) == a);
  CHECK(samples.weight(a) == 2 * kOne);
  CHECK(samples.has_missing());
  CHECK(samples.has_missing(0));
  CHECK_FALSE(samples.has_missing(1));
  const Slot b = samples.add(large, 0, kOne), c = samples.add(zero, 0, kOne), d = samples.add(stored, 1, kOne);
  CHECK(samples.content_less(b, a));
  CHECK_FALSE(samples.content_less(a, b));
  CHECK(samples.content_less(c, a));
  CHECK(samples.same_x(a, d));
  CHECK_FALSE(samples.same_x(a, c));  // zero is not missing
  CHECK(samples.find(stored, 1) == d);
  for (const Slot slot : {a, a, d}) samples.subtract(slot, kOne);
  samples.release(d);
  CHECK(samples.has_missing(0));
  samples.release(a);
  CHECK_FALSE(samples.has_missing());
  CHECK_FALSE(samples.has_missing(0));
  CHECK(samples.find(stored, 0) == kNoSlot);
}

TEST_CASE("groups hold samples of equal words") {
  std::mt19937 draw(13);
  Groups groups;
  for (int trial = 0; trial < 300; ++trial) {
    groups.clear();
    std::vector<Word> words(1 + draw() % kMostDeciding);
    // Words that share a place in the table, small ones, and numbers as bits.
    const unsigned n_words = 1 + draw() % 64;
    for (Word& word : words) {
      word = draw() % n_words;
      if (trial % 3 == 1) word <<= 60;
      if (trial % 3 == 2) word = std::bit_cast<Word>(static_cast<double>(word) * 0.5);
    }
    for (std::size_t i = 0; i < words.size(); ++i) groups.add(i, words[i]);
    std::map<Word, Block> expected, found;
    for (std::size_t i = 0; i < words.size(); ++i) expected[words[i]] |= Block{1} << i;
    for (std::size_t c = 0; c < groups.size(); ++c) found[groups.word(c)] = groups.block(c);
    CHECK(found == expected);
    CHECK(groups.size() == expected.size());
    for (std::size_t i = 0; i < words.size(); ++i) CHECK(groups.like(i) == expected[words[i]]);
    const Block all = words.size() == 64 ? ~Block{0} : (Block{1} << words.size()) - 1;
    const Block block = all & (Word{draw()} << 32 | draw()) & (trial % 2 == 0 ? Word{draw()} : ~Word{0});
    if (block == 0) continue;
    std::map<Word, int> within;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (block >> i & 1) ++within[words[i]];
    }
    CHECK(groups.are_one(block) == (within.size() == 1));
  }
}

}  // namespace
