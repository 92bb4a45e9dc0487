#include "mondrian/points/slot_index.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "mondrian/points/arrivals.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

// Hashes are few, so that many slots want the same place.
TEST_CASE("an index finds each slot by its hash, whatever comes and leaves") {
  std::mt19937 draw(1);
  SlotIndex index;
  std::vector<std::uint64_t> expected;
  for (int step = 0; step < 2000; ++step) {
    const std::uint64_t hash = (draw() % 7) << (draw() % 3 * 30);
    index.push(hash);
    expected.push_back(hash);
    if (draw() % 3 == 0) {
      std::vector<Slot> leaving;
      for (auto slot = static_cast<Slot>(expected.size()); slot-- > 0;) {
        if (draw() % 4 == 0) leaving.push_back(slot);
      }
      const std::vector<Move> moves = moves_after(leaving, expected.size());
      for (const Move& move : moves) {
        expected[static_cast<std::size_t>(move.to)] = expected[static_cast<std::size_t>(move.from)];
      }
      expected.resize(expected.size() - leaving.size());
      index.remove(leaving, moves);
    }
    if (draw() % 50 == 0) index.shrink();
    REQUIRE(index.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Slot slot = static_cast<Slot>(i);
      REQUIRE(index.hash(slot) == expected[i]);
      REQUIRE(index.find(expected[i], [slot](Slot found) { return found == slot; }) == slot);
    }
    CHECK(index.find(99, [](Slot) { return true; }) == kNoSlot);
  }
}

TEST_CASE("a slot is found where the moves take it") {
  const std::vector<Slot> gone{7, 4, 1, 0};
  const std::vector<Move> moves = moves_after(gone, 9);
  std::vector<int> things{0, 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int> after = things;
  for (const Move& move : moves) after[static_cast<std::size_t>(move.to)] = things[static_cast<std::size_t>(move.from)];
  for (const Slot slot : {2, 3, 5, 6, 8}) CHECK(after[static_cast<std::size_t>(moved(slot, moves))] == slot);
}

// Each arrival counts for one of a few points. A point leaves with its last arrival.
TEST_CASE("arrivals follow their points") {
  std::mt19937 draw(2);
  for (const bool are_alone : {true, false}) {
    Arrivals arrivals;
    std::vector<int> points;  // the name of each stored point
    std::vector<int> expected;
    int n_named = 0;
    for (int step = 0; step < 500; ++step) {
      std::vector<Slot> leaving, points_leaving;
      for (auto slot = static_cast<Slot>(expected.size()); slot-- > 0;) {
        if (draw() % 6 == 0) leaving.push_back(slot);
      }
      const auto is_leaving = [&](std::size_t i) {
        return std::ranges::find(leaving, static_cast<Slot>(i)) != leaving.end();
      };
      std::vector<int> coming;
      for (std::size_t n = draw() % 4; n-- > 0;) {
        const bool is_new = are_alone || points.empty() || draw() % 2 == 0;
        coming.push_back(is_new ? n_named++ : points[draw() % points.size()]);
      }
      std::vector<int> after = points;
      for (std::size_t p = points.size(); p-- > 0;) {
        bool stays = std::ranges::find(coming, points[p]) != coming.end();
        for (std::size_t i = 0; i < expected.size(); ++i) stays |= expected[i] == points[p] && !is_leaving(i);
        if (!stays) points_leaving.push_back(static_cast<Slot>(p));
      }
      const std::vector<Move> moves = moves_after(leaving, expected.size());
      const std::vector<Move> point_moves = moves_after(points_leaving, points.size());
      for (const Move& move : point_moves) {
        after[static_cast<std::size_t>(move.to)] = points[static_cast<std::size_t>(move.from)];
      }
      after.resize(points.size() - points_leaving.size());
      std::vector<Slot> slots;
      for (const int each : coming) {
        if (std::ranges::find(after, each) == after.end()) after.push_back(each);
        slots.push_back(static_cast<Slot>(std::ranges::find(after, each) - after.begin()));
      }
      points = after;
      arrivals.reserve(coming.size(), are_alone);
      arrivals.change({leaving, moves, point_moves, slots});
      std::vector<int> kept = expected;
      for (const Move& move : moves) {
        kept[static_cast<std::size_t>(move.to)] = expected[static_cast<std::size_t>(move.from)];
      }
      kept.resize(expected.size() - leaving.size());
      kept.insert(kept.end(), coming.begin(), coming.end());
      expected = kept;
      REQUIRE(arrivals.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const Slot slot = static_cast<Slot>(i);
        REQUIRE(points[static_cast<std::size_t>(arrivals.point(slot))] == expected[i]);
      }
    }
    CHECK(arrivals.points().empty() == are_alone);
  }
}

}  // namespace
