// The parts of the order-free forest, each against plain code: samples, panels, counts, and what they use of `base`.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/call.hpp"
#include "base/recycler.hpp"
#include "base/simd.hpp"
#include "guided/ballot.hpp"
#include "guided/label_counts.hpp"
#include "guided/panel.hpp"
#include "guided/sample_store.hpp"
#include "guided/tree.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::guided;

namespace {

constexpr Word kTreeSeed = 77;

std::vector<Word> label_hashes(std::size_t n) {
  std::vector<Word> hashes;
  for (std::size_t i = 0; i < n; ++i) hashes.push_back(derive(5, n - i));  // not in the order of the codes
  return hashes;
}

// Samples of a small world, where many values are equal.
struct World {
  std::size_t n_features;
  int n_values, n_labels, most_weight, key_bits;
};

SampleStore store_of(const World& world, std::size_t n, std::mt19937& draw) {
  SampleStore samples(world.n_features, 9, world.key_bits);
  samples.set_labels(label_hashes(static_cast<std::size_t>(world.n_labels)));
  std::vector<float> row(world.n_features);
  for (std::size_t i = 0; i < n; ++i) {
    for (float& x : row) x = static_cast<float>(static_cast<int>(draw()) % world.n_values) * 0.25f;
    const auto label = static_cast<Label>(draw() % static_cast<unsigned>(world.n_labels));
    const auto times = 1 + draw() % static_cast<unsigned>(world.most_weight);
    for (unsigned k = 0; k < times; ++k) samples.add(row.data(), label);
  }
  return samples;
}

// The first slots, in the order of the circle.
std::vector<Slot> circle_of(const SampleStore& samples, const RankOrder& order) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < static_cast<Slot>(std::min(samples.n_slots(), kMostDeciding)); ++slot) {
    slots.push_back(slot);
  }
  std::ranges::sort(slots, [&](Slot a, Slot b) { return order.less(order.place(a), a, order.place(b), b); });
  return slots;
}

// The law of a cut, with lists of slots instead of bits. `slots` are in the order of the circle.
class PlainPanel {
 public:
  PlainPanel(const SampleStore& samples, const RankOrder& order, std::vector<Slot> slots)
      : samples_(samples), order_(order), slots_(std::move(slots)) {}

  [[nodiscard]] Cut decide(Word seed) const {
    Cut best;
    double best_score = -1.0;
    for (Word q = 0; q < (slots_.size() >= 16 ? 16 : 4); ++q) {
      const Cut cut = propose(derive(seed, 8 + q), q % 2 == 0);
      if (const double result = score(cut); result > best_score) {
        best = cut;
        best_score = result;
      }
    }
    return best;
  }

  [[nodiscard]] double score(Cut cut) const {
    std::map<Label, double> sides[2];
    for (const Slot slot : slots_) {
      sides[x(slot, cut.feature) > cut.threshold][samples_.label(slot)] += static_cast<double>(samples_.weight(slot));
    }
    double result = 0.0;
    for (const auto& side : sides) {
      double total = 0.0, squares = 0.0;
      for (const auto& [label, weight] : side) {
        total += weight;
        squares += weight * weight;
      }
      result += squares / total;
    }
    return result;
  }

 private:
  [[nodiscard]] float x(Slot slot, std::int32_t feature) const { return samples_.row(slot)[feature]; }

  [[nodiscard]] Slot first(const std::vector<Slot>& among, Word place) const {
    for (const Slot slot : among) {
      if (order_.place(slot) >= place) return slot;
    }
    return among.front();
  }

  [[nodiscard]] Cut propose(Word word, bool is_pair) const {
    std::vector<Slot> pool = slots_;
    if (is_pair) {
      const Slot one = first(slots_, derive(word, 1));
      std::vector<Slot> others, rivals;
      for (const Slot slot : slots_) {
        if (!samples_.same_x(slot, one)) others.push_back(slot);
        if (!samples_.same_x(slot, one) && samples_.label(slot) != samples_.label(one)) rivals.push_back(slot);
      }
      pool = {one, first(rivals.empty() ? others : rivals, derive(word, 2))};
    }
    const auto n_features = static_cast<std::int32_t>(samples_.n_features());
    const auto range = [&](std::int32_t d) {
      const auto [low, high] = std::ranges::minmax(pool, {}, [&](Slot slot) { return x(slot, d); });
      return std::pair(x(low, d), x(high, d));
    };
    const auto varies = [&](std::int32_t d) { return range(d).first < range(d).second; };
    std::int32_t feature = -1;
    for (Word t = 0; t < 32 && feature < 0; ++t) {
      const Word drawn = (derive(word, 16 + t) >> 32) * static_cast<Word>(n_features) >> 32;
      if (varies(static_cast<std::int32_t>(drawn))) feature = static_cast<std::int32_t>(drawn);
    }
    if (feature < 0) {
      Word least = 0;
      for (std::int32_t d = 0; d < n_features; ++d) {
        const Word here = derive(word, 64 + static_cast<Word>(d));
        if (!varies(d) || (feature >= 0 && here >= least)) continue;
        feature = d;
        least = here;
      }
    }
    const auto [low, high] = range(feature);
    const double share = static_cast<double>(derive(word, 3) >> 11) * 0x1p-53;
    const double position = low + share * (static_cast<double>(high) - static_cast<double>(low));
    if (position >= high) return {feature, low};
    float threshold = static_cast<float>(position);
    while (threshold > position) threshold = std::nextafter(threshold, -std::numeric_limits<float>::infinity());
    return {feature, threshold};
  }

  const SampleStore& samples_;
  const RankOrder& order_;
  std::vector<Slot> slots_;
};

std::vector<Slot> slots_in(const std::vector<Slot>& slots, Block block) {
  std::vector<Slot> result;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (block >> i & 1) result.push_back(slots[i]);
  }
  return result;
}

const World kWorlds[] = {
    {3, 40, 3, 1, 64},   // distinct rows
    {2, 3, 2, 1, 64},    // equal rows
    {2, 2, 40, 3, 64},   // equal rows of many labels, with weights
    {5, 9, 2, 4, 0},     // all places are equal
    {1, 100, 70, 1, 3},  // a label for each sample
    {65, 2, 2, 2, 64},   // more features than columns are kept
    {200, 30, 4, 1, 64},
};

TEST_CASE("a panel decides as the law says") {
  std::mt19937 draw(1);
  Panel panel;
  for (const World& world : kWorlds) {
    for (const std::size_t n : {2, 5, 12, 13, 15, 16, 30, 63, 64, 100}) {
      const SampleStore samples = store_of(world, n, draw);
      const RankOrder order(samples, kTreeSeed);
      const std::vector<Slot> slots = circle_of(samples, order);
      panel.load(samples, order, slots);
      for (int trial = 0; trial < 6; ++trial) {
        Block block = panel.all();
        if (trial > 0) block &= (Word{draw()} << 32 | draw()) | (trial % 2 == 0 ? Word{draw()} << 16 : 0);
        if (block == 0 || panel.has_one_x(block)) continue;
        const Word seed = draw();
        const PlainPanel plain(samples, order, slots_in(slots, block));
        const Cut cut = panel.decide(block, seed).cut, expected = plain.decide(seed);
        INFO("features " << world.n_features << ", samples " << std::popcount(block));
        CHECK(cut.feature == expected.feature);
        CHECK(cut.threshold == expected.threshold);
        CHECK(panel.proposals().size() == (std::popcount(block) >= 16 ? 16 : 4));
        for (const Proposal& proposal : panel.proposals()) {
          CHECK((proposal.left & ~block) == 0);
          for (const Slot slot : slots_in(slots, proposal.left)) {
            CHECK(samples.row(slot)[proposal.cut.feature] <= proposal.cut.threshold);
          }
          for (const Slot slot : slots_in(slots, block & ~proposal.left)) {
            CHECK(samples.row(slot)[proposal.cut.feature] > proposal.cut.threshold);
          }
        }
      }
    }
  }
}

TEST_CASE("blocks of a panel are sets of its samples") {
  std::mt19937 draw(2);
  Panel panel;
  for (const World& world : kWorlds) {
    const SampleStore samples = store_of(world, 90, draw);
    const RankOrder order(samples, kTreeSeed);
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
      for (const Slot slot : those) counts[samples.label(slot)] += samples.weight(slot);
      panel.for_each_label(block, [&](Label label, std::int64_t weight) { found[label] += weight; });
      CHECK(found == counts);
      CHECK(panel.has_one_label(block) == (counts.size() == 1));
      CHECK(panel.has_one_x(block) ==
            std::ranges::all_of(those, [&](Slot slot) { return samples.same_x(slot, those.front()); }));
      std::int64_t total = 0;
      for (const auto& [label, weight] : counts) total += weight;
      CHECK(panel.weight(block) == total);
    }
  }
}

TEST_CASE("a panel that is loaded again remembers nothing") {
  std::mt19937 draw(3);
  Panel panel, fresh;
  for (const World& world : kWorlds) {
    for (const std::size_t n : {64, 20}) {
      const SampleStore samples = store_of(world, n, draw);
      const RankOrder order(samples, kTreeSeed);
      const std::vector<Slot> slots = circle_of(samples, order);
      panel.load(samples, order, slots);
      fresh = Panel();
      fresh.load(samples, order, slots);
      if (!panel.has_one_x(panel.all())) CHECK(panel.decide(panel.all(), 4).cut == fresh.decide(fresh.all(), 4).cut);
    }
  }
}

TEST_CASE("a ballot follows exchanges as if all were decided afresh") {
  const World worlds[] = {
      {3, 4000, 3, 1, 64},   // all weights are 1
      {4, 4000, 30, 3, 64},  // many labels, with weights
      {4, 4000, 2, 7, 64},   // weights that add up to too much at times
      {3, 400, 4, 1, 2},     // many places are equal
      {2, 40, 3, 1, 64},     // many values, and at times rows, are equal
      {70, 2, 2, 1, 64},     // features that are constant among those who decide
      {3, 4000, 64, 1, 64},  // often one sample of a label
  };
  std::mt19937 draw(8);
  for (const World& world : worlds) {
    const SampleStore samples = store_of(world, 500, draw);
    const RankOrder order(samples, kTreeSeed);
    const auto n = static_cast<Slot>(samples.n_slots());
    REQUIRE(n > 150);
    const Word seed = draw();
    Panel panel;
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
    for (int step = 0; step < 600; ++step) {
      const auto slot = static_cast<Slot>(draw() % static_cast<unsigned>(n));
      const std::size_t seat = draw() % kMostDeciding;
      if (std::ranges::find(seats, slot) != seats.end()) continue;
      if (ballot.empty() || !ballot.is_open_to(samples, seats, slot)) {
        seats[seat] = slot;
        sit_down();
        continue;
      }
      ballot.exchange(samples, order, seed, seats, seat, slot, static_cast<int>(samples.weight(seats[seat])));
      ++n_followed;
      panel.load(samples, order, seats);
      CHECK(ballot.best() == panel.decide(panel.all(), seed).cut);
    }
    INFO("features " << world.n_features << ", labels " << world.n_labels);
    CHECK(n_followed > 50);
  }
}

TEST_CASE("a tree that several threads have used is that of its samples") {
  std::mt19937 draw(10);
  Options options;
  options.n_features = 2;
  SampleStore samples(2, options.seed);
  samples.set_labels(label_hashes(2));
  const Call call(1);
  StopProbe stop = call.probe();
  Scratch one, other;
  Tree tree(options, 0);
  const auto add = [&] {
    const float row[] = {static_cast<float>(draw() % 100), static_cast<float>(draw() % 100)};
    return samples.add(row, static_cast<Label>(draw() % 2));
  };
  for (int i = 0; i < 20; ++i) add();
  for (int step = 0; step < 30; ++step) {
    Scratch &first = step % 2 == 0 ? one : other, &second = step % 2 == 0 ? other : one;
    tree.regrow(samples, first, stop);
    std::uint64_t rest = 0, masses[2] = {0, 0};
    tree.predict(samples, {samples.row(0), 2}, {&rest, 1}, masses, first, stop);
    const Slot slot = add();
    const Change change{slot, 1};
    if (samples.weight(slot) == 1) tree.apply(samples, {&change, 1}, second, stop);
    tree.complete(samples, second, stop);
    const TreeTable found = tree.table(samples, first, stop);
    Scratch scratch;
    Tree fresh(options, 0);
    fresh.regrow(samples, scratch, stop);
    const TreeTable expected = fresh.table(samples, scratch, stop);
    CHECK(found.feature == expected.feature);
    CHECK(found.threshold == expected.threshold);
    CHECK(found.count == expected.count);
    if (samples.weight(slot) > 1) tree.regrow(samples, first, stop);
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
      light.set(i, weights[i]);
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
    SampleStore samples(1, 3);
    samples.set_labels(label_hashes(2));
    samples.add(&low, 0);
    samples.add(&high, 1);
    const RankOrder order(samples, kTreeSeed);
    Panel panel;
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
    SampleStore samples(2, 1, key_bits);
    samples.set_labels(label_hashes(3));
    std::mt19937 draw(4);
    struct Held {
      Slot slot;
      std::int64_t weight;
    };
    std::map<std::pair<std::array<float, 2>, Label>, Held> held;
    for (int step = 0; step < 3000; ++step) {
      const std::array<float, 2> row{static_cast<float>(draw() % 4), static_cast<float>(draw() % 4)};
      const auto label = static_cast<Label>(draw() % 3);
      const auto found = held.find({row, label});
      CHECK(samples.find(row.data(), label) == (found == held.end() ? kNoSlot : found->second.slot));
      if (draw() % 2 == 0) {
        const Slot slot = samples.add(row.data(), label);
        if (found != held.end()) CHECK(slot == found->second.slot);
        ++held.insert({{row, label}, {slot, 0}}).first->second.weight;
        CHECK(samples.label(slot) == label);
        CHECK(std::equal(row.begin(), row.end(), samples.row(slot)));
      } else if (found != held.end()) {
        samples.subtract(found->second.slot);
        if (--found->second.weight == 0) {
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
    SampleStore samples(2, 1, key_bits);
    samples.set_labels(label_hashes(2));
    REQUIRE(samples.label_hash_of(0) != samples.label_hash_of(1));
    const Label low = samples.label_hash_of(0) < samples.label_hash_of(1) ? 0 : 1, high = 1 - low;
    const float rows[] = {1.0f, 5.0f, 2.0f, -3.0f, -7.0f, 9.0f};
    const Slot one_high = samples.add(rows, high), one_low = samples.add(rows, low), two = samples.add(rows + 2, low),
               three = samples.add(rows + 4, high);
    const std::vector<Slot> expected{three, one_low, one_high, two};
    std::vector<Slot> slots{one_high, one_low, two, three};
    std::ranges::sort(slots, [&](Slot a, Slot b) { return samples.content_less(a, b); });
    CHECK(slots == expected);
    CHECK(samples.same_x(one_low, one_high));
    CHECK_FALSE(samples.same_x(one_low, two));
    if (key_bits == 0) {  // ranks and places are equal: content decides
      const RankOrder order(samples, kTreeSeed);
      CHECK(order.rank(one_low) == order.rank(three));
      std::ranges::sort(slots, order);
      CHECK(slots == expected);
      Panel panel;
      panel.load(samples, order, std::vector<Slot>{one_high, two, one_low, three});
      CHECK(std::ranges::equal(panel.slots(), expected));
    }
  }
}

TEST_CASE("a released sample is overwritten") {
  SampleStore samples(2, 1);
  samples.set_labels(label_hashes(2));
  const float rows[] = {1.0f, 5.0f, 2.0f, -3.0f};
  const Slot slot = samples.add(rows, 1);
  samples.add(rows + 2, 0);
  samples.subtract(slot);
  samples.release(slot);
  CHECK(samples.row(slot)[0] == 0.0f);
  CHECK(samples.row(slot)[1] == 0.0f);
  CHECK(samples.find(rows, 1) == kNoSlot);
  CHECK(samples.add(rows, 0) == slot);
  CHECK(samples.weight(slot) == 1);
}

TEST_CASE("label counts equal those of a map") {
  std::mt19937 draw(5);
  LabelCounts counts;
  std::map<Label, std::int64_t> expected;
  std::int64_t total = 0;
  const auto as_map = [&] {
    std::map<Label, std::int64_t> result;
    for (const auto& [label, weight] : counts.entries()) result[label] = weight;
    return result;
  };
  for (int step = 0; step < 2000; ++step) {
    const auto label = static_cast<Label>(draw() % 12);
    const auto by = draw() % 3 == 0 ? -expected[label] : static_cast<std::int64_t>(draw() % 3) + 1;
    if (by != 0) counts.add(label, by);
    total += by;
    if ((expected[label] += by) == 0) expected.erase(label);
    CHECK(as_map() == expected);
    CHECK(counts.n_labels() == expected.size());
    CHECK(counts.total() == total);
    CHECK(std::ranges::is_sorted(counts.entries(), {}, &LabelCounts::Entry::label));
  }
}

TEST_CASE("places that are put back are used again, in their initial state") {
  Recycler<std::vector<int>> recycler;
  const auto a = recycler.take(), b = recycler.take();
  CHECK(a != b);
  recycler[a] = {1, 2};
  recycler[b] = {3};
  recycler.put_back(a);
  CHECK(recycler[b] == std::vector<int>{3});
  CHECK(recycler.take() == a);
  CHECK(recycler[a].empty());
  CHECK(recycler.items().size() == 2);
  recycler.put_back(b);
  recycler.put_back(a);
  const auto c = recycler.take(), d = recycler.take(), e = recycler.take();
  CHECK(std::min(c, d) == 0);
  CHECK(std::max(c, d) == 1);
  CHECK(e == 2);
  recycler.clear();
  CHECK(recycler.take() == 0);
}

TEST_CASE("operations on four floats equal those on each") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {0.0f,     -0.0f,    1.0f,      -1.0f, std::nextafter(1.0f, 2.0f), 1e-45f, -1e-45f, 3.4e38f,
                          -3.4e38f, infinity, -infinity, 0.5f};
  std::mt19937 draw(6);
  for (int trial = 0; trial < 3000; ++trial) {
    float a[4], b[4], out[4];
    for (int i = 0; i < 4; ++i) {
      a[i] = values[draw() % std::size(values)];
      b[i] = values[draw() % std::size(values)];
    }
    const simd::Float4 x = simd::load(a), y = simd::load(b);
    unsigned expected = 0;
    for (unsigned i = 0; i < 4; ++i) expected |= static_cast<unsigned>(a[i] <= b[i]) << i;
    CHECK(simd::at_most(x, y) == expected);
    for (unsigned bits = 0; bits < 16; ++bits) {
      simd::store(out, simd::select(bits, x, y));
      for (unsigned i = 0; i < 4; ++i) {
        CHECK(std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(bits >> i & 1 ? a[i] : b[i]));
      }
    }
    CHECK(simd::least(x) == *std::min_element(a, a + 4));
    CHECK(simd::greatest(x) == *std::max_element(a, a + 4));
    simd::store(out, simd::all(a[0]));
    CHECK(std::ranges::all_of(out, [&](float v) { return v == a[0]; }));
  }
}

}  // namespace
