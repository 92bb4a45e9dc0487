// Tests which points a forest keeps.
#include "samples/tenure.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "testing.hpp"

using namespace onlineforest;

namespace {

// Offers n new points as a forest does. Returns how many of them are kept.
std::size_t take_in(Tenure& tenure, std::size_t n) {
  Tenure::Admission admission = tenure.admit(n);
  std::ranges::sort(admission.leaving, std::greater());
  tenure.remove(admission.leaving, moves_after(admission.leaving, tenure.serials().size()));
  tenure.take_in(n, admission);
  return admission.taken.size();
}

void forget(Tenure& tenure, std::vector<Slot> slots) {
  tenure.remove(slots, moves_after(slots, tenure.serials().size()));
}

std::vector<Serial> kept(const Tenure& tenure) {
  std::vector<Serial> serials(tenure.serials().begin(), tenure.serials().end());
  std::ranges::sort(serials);
  return serials;
}

TEST_CASE("the heap visits slots in the order of their keys") {
  Rng rng(1, 0);
  SlotHeap heap;
  std::vector<double> keys;
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 3; ++i) {
      keys.push_back(rng.uniform());
      heap.push(keys.back());
    }
    if (round % 2 == 1) {
      std::vector<Slot> gone{static_cast<Slot>(rng.uniform() * static_cast<double>(keys.size()))};
      if (gone[0] > 0) gone.push_back(gone[0] / 2);
      if (gone.size() == 2 && gone[1] == gone[0]) gone.pop_back();
      const auto moves = moves_after(gone, keys.size());
      heap.remove(gone, moves);
      for (const Move& move : moves)
        keys[static_cast<std::size_t>(move.to)] = keys[static_cast<std::size_t>(move.from)];
      keys.resize(keys.size() - gone.size());
    }
    CHECK(heap.size() == keys.size());
    std::vector<double> found;
    heap.for_each_in_order([&](Slot slot, double key) {
      CHECK(key == keys[static_cast<std::size_t>(slot)]);
      found.push_back(key);
      return true;
    });
    std::vector<double> sorted = keys;
    std::ranges::sort(sorted);
    CHECK(found == sorted);
  }
}

TEST_CASE("without a limit all points are kept") {
  Tenure tenure({}, 0);
  CHECK(take_in(tenure, 100) == 100);
  CHECK(take_in(tenure, 1) == 1);
  CHECK(tenure.n_seen() == 101);
  CHECK(tenure.serials().size() == 101);
  CHECK(tenure.slots_of(std::vector<Serial>{100, 5, 101, 5}) == (std::vector<Slot>{100, 5, kNoSlot, 5}));
  CHECK(tenure.all_but_latest(101).empty());
  CHECK(tenure.all_but_latest(500).empty());
  CHECK(tenure.all_but_latest(100) == std::vector<Slot>{0});
  CHECK(tenure.all_but_latest(0).size() == 101);
}

// Five points arrive in batches of two, one and two; all pairs are equally likely to be kept. Each comparison fails by
// chance once in a million.
TEST_CASE("a reservoir keeps every pair of points with equal probability") {
  constexpr int kRuns = 20'000;
  std::vector<int> n_kept(5, 0), n_pairs(25, 0);
  for (int run = 0; run < kRuns; ++run) {
    Tenure tenure({KeepRule::kSample, 2, kInfinity}, static_cast<std::uint64_t>(run));
    for (const std::size_t n : {2, 1, 2}) take_in(tenure, n);
    const auto serials = kept(tenure);
    CHECK(serials.size() == 2);
    for (const Serial serial : serials) ++n_kept[static_cast<std::size_t>(serial)];
    ++n_pairs[static_cast<std::size_t>(5 * serials[0] + serials[1])];
  }
  const auto check_equal = [](std::span<const int> counts) {
    const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
    for (const int n : counts) CHECK(std::abs(n - mean) < 5.0 * std::sqrt(mean));
  };
  check_equal(n_kept);
  std::vector<int> pairs;
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = i + 1; j < 5; ++j) pairs.push_back(n_pairs[5 * i + j]);
  }
  check_equal(pairs);
}

// Every second of 1000 points is forgotten, kept or not, then 100 more arrive. Old points are 5/6 of all remaining
// ones, and so of the kept ones. If every new point took a free place, old points would be 1/2.
TEST_CASE("a reservoir stays fair when points are forgotten") {
  double n_old = 0.0, n_all = 0.0;
  for (std::uint64_t run = 0; run < 500; ++run) {
    Tenure tenure({KeepRule::kSample, 100, kInfinity}, run);
    take_in(tenure, 1000);
    std::vector<Slot> gone;
    for (Slot slot = 99; slot >= 0; --slot) {
      if (tenure.serials()[static_cast<std::size_t>(slot)] % 2 == 0) gone.push_back(slot);
    }
    forget(tenure, gone);
    for (int i = 0; i < 100; ++i) take_in(tenure, 1);
    for (const Serial serial : tenure.serials()) n_old += serial < 1000;
    n_all += static_cast<double>(tenure.serials().size());
  }
  CHECK(std::abs(n_old / n_all - 5.0 / 6.0) < 0.01);  // five standard errors
}

// Holds approximately, if few of many points are kept.
TEST_CASE("a point one half-life older is half as likely to be kept") {
  constexpr int kRuns = 400;
  std::vector<double> n_kept(10, 0.0);  // by age, in half-lives
  for (int run = 0; run < kRuns; ++run) {
    Tenure tenure({KeepRule::kSample, 100, 1000.0}, static_cast<std::uint64_t>(run));
    for (int i = 0; i < 100; ++i) take_in(tenure, 100);
    for (const Serial serial : tenure.serials()) ++n_kept[static_cast<std::size_t>(9999 - serial) / 1000];
  }
  for (std::size_t age = 0; age < 4; ++age) {
    const double ratio = n_kept[age + 1] / n_kept[age];
    CHECK(ratio > 0.48);
    CHECK(ratio < 0.56);  // a little more than 1/2: the reservoir draws without replacement
  }
}

TEST_CASE("a reservoir does not depend on batches nor on saving and restoring") {
  const KeepOptions options{KeepRule::kSample, 50, 300.0};
  Tenure one(options, 7), many(options, 7);
  take_in(one, 2000);
  for (int i = 0; i < 1000; ++i) {
    take_in(many, 2);
    if (i != 500) continue;
    Tenure resumed(options, 7);
    resumed.restore(many.serials(), many.n_seen(), many.turned_away());
    many = resumed;
  }
  CHECK(kept(one) == kept(many));
  CHECK(one.serials().size() == 50);
}

TEST_CASE("after a restart the reservoir accepts points until it is full") {
  Tenure tenure({KeepRule::kSample, 3, kInfinity}, 7);
  take_in(tenure, 10'000);
  forget(tenure, {2, 1, 0});
  tenure.reset_turned_away();
  CHECK(take_in(tenure, 3) == 3);
}

}  // namespace
