// The store of samples against a map.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

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

}  // namespace
