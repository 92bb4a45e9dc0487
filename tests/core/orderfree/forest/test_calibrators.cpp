// The choice of calibrators against sorting by key.
#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "orderfree/forest/calibrators.hpp"
#include "orderfree/labels/labels.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

// A store whose samples come and leave, with its calibrators.
struct Choosing {
  SampleStore<NumberHashes> samples;
  Calibrators<Numbers> calibrators{samples};
  std::vector<Slot> held;
  std::mt19937 draw{14};
  int n_changes = 0;

  explicit Choosing(int key_bits) : samples({2}, 1, key_bits) {}

  void sort(std::vector<Slot>& slots) const {
    std::ranges::sort(slots, [&](Slot a, Slot b) {
      return samples.key(a) != samples.key(b) ? samples.key(a) < samples.key(b) : samples.content_less(a, b);
    });
  }

  void come(unsigned n_rows) {
    const float row[] = {static_cast<float>(draw() % n_rows), 0.0f};
    const Slot slot = samples.add(row, static_cast<double>(draw() % 5), kOne);
    if (samples.weight(slot) > kOne) return;  // it is known
    calibrators.insert(slot);
    held.push_back(slot);
  }

  void leave(std::size_t i) {
    const Slot slot = std::exchange(held[i], held.back());
    held.pop_back();
    calibrators.erase(slot);
    samples.subtract(slot, samples.weight(slot));
    samples.release(slot);
  }

  void choose() {
    calibrators.choose([&](Slot slot, bool calibrates) {
      CHECK(samples.calibrates(slot) != calibrates);
      samples.set_calibrates(slot, calibrates);
      ++n_changes;
    });
    std::vector<Slot> expected = held;
    sort(expected);
    expected.resize(Calibrators<Numbers>::number(held.size()));
    CHECK(calibrators.chosen() == expected);
    CHECK(calibrators.n_chosen() == expected.size());
    std::vector<Slot> marked;
    for (const Slot slot : held) {
      if (samples.calibrates(slot)) marked.push_back(slot);
    }
    sort(marked);
    CHECK(marked == expected);
  }
};

TEST_CASE("a share of few samples calibrates, and a small one of many") {
  CHECK(Calibrators<Numbers>::number(0) == 0);
  CHECK(Calibrators<Numbers>::number(3) == 0);
  CHECK(Calibrators<Numbers>::number(80) == 20);
  CHECK(Calibrators<Numbers>::number(1171) == 292);
  CHECK(Calibrators<Numbers>::number(1172) == 292);
  CHECK(Calibrators<Numbers>::number(3200) == 356);
  CHECK(Calibrators<Numbers>::number(57344) == 2048);
  CHECK(Calibrators<Numbers>::number(1'000'000'000) == 2048);
  CHECK(Calibrators<Labels>::number(7) == 0);
  CHECK(Calibrators<Labels>::number(80) == 10);
  CHECK(Calibrators<Labels>::number(2730) == 341);
  CHECK(Calibrators<Labels>::number(3200) == 356);
}

TEST_CASE("calibrators are the samples of least keys, whatever came and left") {
  for (const int key_bits : {64, 3, 0}) {  // with 0, content alone decides
    Choosing choosing(key_bits);
    for (int step = 0; step < 700; ++step) {
      const bool shrinks = step / 100 % 2 == 1;
      const unsigned n = choosing.draw() % 4;
      choosing.calibrators.refill(n, n);
      for (unsigned k = 0; k < n; ++k) {
        if (choosing.held.empty() || choosing.draw() % 4 < (shrinks ? 1u : 3u)) {
          choosing.come(1000);
        } else {
          choosing.leave(choosing.draw() % choosing.held.size());
        }
      }
      choosing.choose();
    }
    CHECK(choosing.n_changes > 200);
  }
}

TEST_CASE("calibrators are found among many samples when the next ones have left") {
  for (const int key_bits : {64, 6}) {  // with 6, many keys are equal
    Choosing choosing(key_bits);
    const auto choose = [&] {
      choosing.choose();
      const std::size_t most = choosing.calibrators.n_chosen() + Calibrators<Numbers>::kSpare;
      if (key_bits == 64) CHECK(choosing.calibrators.nbytes() <= 48 * most);
    };
    const auto learn = [&](std::size_t n) {
      choosing.calibrators.refill(n, 0);
      for (std::size_t i = 0; i < n; ++i) choosing.come(1'000'000);
      choose();
    };
    const auto forget_last = [&](std::size_t n) {
      choosing.calibrators.refill(0, n);
      for (std::size_t i = 0; i < n; ++i) choosing.leave(choosing.held.size() - 1);
      choose();
    };
    const auto forget_any = [&](std::size_t n) {
      std::ranges::shuffle(choosing.held, choosing.draw);
      forget_last(n);
    };
    const auto forget_least = [&](std::size_t n) {
      choosing.sort(choosing.held);
      std::ranges::reverse(choosing.held);
      forget_last(n);
    };
    for (const int n_first : {0, 20}) {  // some of many samples have lesser keys than the present calibrators
      for (int i = 0; i < n_first; ++i) learn(1);
      learn(9000);
      for (int i = 0; i < 10; ++i) forget_any(200);
      for (int i = 0; i < 30; ++i) forget_least(100);
      for (int i = 0; i < 30; ++i) learn(1);
      forget_least(2000);
      learn(5000);
      forget_any(4000);
      learn(3000);
      forget_least(choosing.held.size() - 30);
      learn(2000);
      forget_least(choosing.held.size());
    }
  }
}

}  // namespace
