#include "mondrian/forest/relevance.hpp"

#include <cmath>
#include <vector>

#include "mondrian/labels/impurity.hpp"
#include "mondrian/points/relative_counts.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

PointStore random_points(std::size_t n, std::size_t n_features, std::int32_t n_classes) {
  PointStore points(n_features);
  Rng rng(1, 2);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<float> row(n_features);
    for (float& x : row) x = static_cast<float>(rng.uniform());
    const auto label = static_cast<Label>(rng.uniform() * n_classes);
    points.append(row, std::span(&label, 1));
  }
  return points;
}

double impurity_of(const PointStore& points, const std::vector<Slot>& slots, std::int32_t n_classes) {
  std::vector<double> counts(static_cast<std::size_t>(n_classes), 0.0);
  for (const Slot slot : slots) counts[static_cast<std::size_t>(points.label(slot))] += 1.0;
  double squares = 0.0;
  for (const double c : counts) squares += c * c;
  return slots.empty() ? 0.0 : static_cast<double>(slots.size()) - squares / static_cast<double>(slots.size());
}

TEST_CASE("gains of label cuts equal impurities computed from scratch") {
  const auto points = random_points(60, 1, 4);
  Rng rng(3, 4);
  LabelImpurity impurity(points.labels(), 4);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Slot> slots = draw_slots(60, 2 + static_cast<std::size_t>(rng.uniform() * 50), rng);
    const float cut = points.row(slots[0])[0];
    const auto is_left = [&](Slot slot) { return points.row(slot)[0] <= cut; };
    std::vector<Slot> left, right;
    for (const Slot slot : slots) (is_left(slot) ? left : right).push_back(slot);
    if (right.empty()) continue;
    const double whole = impurity.start(slots);
    CHECK(std::abs(whole - impurity_of(points, slots, 4)) < 1e-12);
    const double expected = whole - impurity_of(points, left, 4) - impurity_of(points, right, 4);
    CHECK(std::abs(impurity.gain(slots, is_left) - expected) < 1e-12);
    impurity.finish(slots);
  }
}

// A random cut of a block of n points with impurity G gains G / (n - 1) on average, for any sizes of its two sides.
TEST_CASE("a random cut gains its share of the impurity on average") {
  const auto points = random_points(9, 1, 3);
  LabelImpurity impurity(points.labels(), 3);
  Rng rng(5, 6);
  for (const std::size_t n_left : {1, 3, 7}) {
    double sum = 0.0, whole = 0.0;
    const int n = 20'000;
    for (int i = 0; i < n; ++i) {
      std::vector<Slot> slots = draw_slots(9, 9, rng);
      std::vector<bool> left(9, false);
      for (std::size_t k = 0; k < n_left; ++k) left[static_cast<std::size_t>(slots[k])] = true;
      whole = impurity.start(slots);
      sum += impurity.gain(slots, [&](Slot slot) { return left[static_cast<std::size_t>(slot)]; });
      impurity.finish(slots);
    }
    CHECK(std::abs(sum / n - whole / 8.0) < 0.02);
  }
}

TEST_CASE("drawn slots are distinct and equally likely") {
  Rng rng(7, 8);
  std::vector<int> seen(10, 0);
  for (int i = 0; i < 10'000; ++i) {
    const std::vector<Slot> slots = draw_slots(10, 3, rng);
    REQUIRE(slots.size() == 3);
    CHECK(slots[0] != slots[1]);
    CHECK(slots[1] != slots[2]);
    CHECK(slots[0] != slots[2]);
    for (const Slot slot : slots) ++seen[static_cast<std::size_t>(slot)];
  }
  for (const int n : seen) CHECK(std::abs(n - 3000) < 250);
  CHECK(draw_slots(4, 9, rng).size() == 4);
}

// Points with counts, and the equivalent set with a copy of a point for each count.
TEST_CASE("an impurity of points that count several times is that of copies") {
  const auto plain = random_points(20, 1, 3);
  PointStore counted(1), copied(1);
  std::vector<Slot> slots, copied_slots;
  for (Slot slot = 0; slot < 20; ++slot) {
    const Label label = plain.label(slot);
    const std::int32_t count = 1 + slot % 4;
    counted.append(plain.row_of(slot), std::span(&label, 1), std::span(&count, 1));
    slots.push_back(slot);
    for (int i = 0; i < count; ++i) {
      copied.append(plain.row_of(slot), std::span(&label, 1));
      copied_slots.push_back(static_cast<Slot>(copied_slots.size()));
    }
  }
  std::vector<double> buffer;
  const RelativeCounts counts(counted, buffer);
  const double unit = static_cast<double>(copied.size()) / 20.0;  // the mean count
  CHECK(counts[3] == doctest::Approx(4.0 / unit));
  CHECK(counts.effective_size(slots) < 20.0);
  CHECK(RelativeCounts().effective_size(slots) == 20.0);
  LabelImpurity of_counted(counted.labels(), 3, counts), of_copies(copied.labels(), 3);
  CHECK(of_counted.start(slots) * unit == doctest::Approx(of_copies.start(copied_slots)));
  const double gain = of_counted.gain(slots, [&](Slot slot) { return counted.row(slot)[0] <= 0.4f; });
  CHECK(gain * unit ==
        doctest::Approx(of_copies.gain(copied_slots, [&](Slot slot) { return copied.row(slot)[0] <= 0.4f; })));
}

}  // namespace
