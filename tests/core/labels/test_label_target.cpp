#include <map>
#include <vector>

#include "labels/label_target.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

PointStore<Label> labelled(const std::vector<Label>& labels, const std::vector<Weight>& weights = {}) {
  PointStore<Label> points(1);
  points.append(std::vector<float>(labels.size(), 0.0f), labels, weights);
  return points;
}

using Counts = std::map<Label, double>;

Counts counts(const LabelTarget& target, std::int32_t n_points) {
  Counts result;
  target.for_each_count(0, n_points, [&](Label label, Weight weight) { result[label] = multiplicity(weight); });
  return result;
}

void check_counts_of_a_leaf(std::int32_t n_classes) {
  const auto points = labelled({5, 5, 2, 9, 2, 5});
  const std::vector<Slot> slots{0, 1, 2, 3, 4, 5};
  LabelTarget target(2);
  target.reserve_classes(n_classes);
  target.reserve_nodes(1);
  target.add_to_leaf(0, 0, kNoSlot, points, std::span(slots).first(2));
  CHECK((counts(target, 2) == Counts{{5, 2}}));
  target.add_to_leaf(0, 2, slots[0], points, std::span(slots).subspan(2));
  CHECK((counts(target, 6) == Counts{{2, 2}, {5, 3}, {9, 1}}));
  target.clear(0);
  CHECK(counts(target, 0).empty());
}

void check_weights_of_a_leaf(std::int32_t n_classes) {
  auto points = labelled({5, 5, 2, 9}, {kOne, kOne / 2, 3 * kOne, kOne});
  const std::vector<Slot> slots{0, 1, 2, 3};
  const auto none = [] { return std::span<const Slot>(); };
  LabelTarget target(2);
  target.reserve_classes(n_classes);
  target.reserve_nodes(1);
  target.add_to_leaf(0, 0, kNoSlot, points, std::span(slots).first(1));
  CHECK(target.is_plain(0));
  target.add_to_leaf(0, 1, 0, points, std::span(slots).subspan(1, 1));
  CHECK((counts(target, 2) == Counts{{5, 1.5}}));
  target.add_weight(0, 2, 5, kOne / 2);  // the number of points says it again
  CHECK(target.is_plain(0));
  target.add_weight(0, 2, 5, -kOne / 2);
  CHECK(!target.is_plain(0));
  target.add_to_leaf(0, 2, 0, points, std::span(slots).subspan(2));
  CHECK((counts(target, 4) == Counts{{2, 3}, {5, 1.5}, {9, 1}}));
  target.add_weight(0, 4, 2, -2 * kOne);
  points.set_weight(2, kOne);
  CHECK((counts(target, 4) == Counts{{2, 1}, {5, 1.5}, {9, 1}}));
  target.remove_from_leaf(0, points, 1, 3, none);
  CHECK((counts(target, 3) == Counts{{2, 1}, {5, 1}, {9, 1}}));
  target.remove_from_leaf(0, points, 3, 2, none);
  target.remove_from_leaf(0, points, 2, 1, none);
  CHECK((counts(target, 1) == Counts{{5, 1}}));
  CHECK(target.is_plain(0));
}

// The number of points says the weight of all, but not that of each.
TEST_CASE("a leaf whose points count once on average loses what a point weighs") {
  for (const bool light_leaves : {true, false}) {
    const auto points = labelled({5, 5}, {kOne / 2, 3 * kOne / 2});
    const std::vector<Slot> slots{0, 1};
    LabelTarget target(2);
    target.reserve_nodes(1);
    target.add_to_leaf(0, 0, kNoSlot, points, slots);
    CHECK(target.is_plain(0));
    target.remove_from_leaf(0, points, light_leaves ? 0 : 1, 1, [] { return std::span<const Slot>(); });
    CHECK((counts(target, 1) == Counts{{5, light_leaves ? 1.5 : 0.5}}));
  }
}

// Two leaves below node 0, with these weights of labels 1 and 2.
void check_light_labels(Weight left_1, Weight left_2, Weight right_1, const Counts& expected) {
  const auto points = labelled({1, 2, 1}, {left_1, left_2, right_1});
  const std::vector<Slot> slots{0, 1, 2};
  LabelTarget target(2);
  target.expect_light_points();
  target.reserve_nodes(3);
  target.add_to_leaf(1, 0, kNoSlot, points, std::span(slots).first(2));
  target.add_to_leaf(2, 0, kNoSlot, points, std::span(slots).last(1));
  target.combine(0, 1, 2);
  CHECK(target.is_plain(0) == expected.empty());
  if (!expected.empty()) CHECK(counts(target, 0) == expected);
}

TEST_CASE("an internal node keeps counts only of labels that count less than once below it") {
  check_light_labels(kOne, 2 * kOne, 5 * kOne, {});
  check_light_labels(kOne / 2, kOne, 5 * kOne, {{1, 1.5}, {2, 1.0}});
  check_light_labels(kOne / 2, kOne / 4, kOne / 4, {{1, 0.75}, {2, 0.25}});
}

TEST_CASE("the label weights of a leaf are exact") {
  check_weights_of_a_leaf(10);
  check_weights_of_a_leaf(100);
}

TEST_CASE("a leaf is paused if it has one label or fewer points than min_samples_split") {
  const auto points = labelled({1, 1, 1, 0});
  const std::vector<Slot> all{0, 1, 2, 3}, pure{0, 1, 2}, single{3};
  const LabelTarget strict(2), loose(4);
  CHECK(strict.may_pause(points, pure));
  CHECK(strict.may_pause(points, single));
  CHECK(!strict.may_pause(points, all));
  CHECK(!loose.may_pause(points, all));
  CHECK(loose.may_pause(points, std::vector<Slot>{1, 2, 3}));  // mixed, but fewer than 4

  LabelTarget target(2);
  target.reserve_nodes(1);
  target.add_to_leaf(0, 0, kNoSlot, points, pure);
  CHECK(target.is_paused(0, 3));
  Node leaf;
  leaf.n_points = 3;
  CHECK(target.stays_paused(0, leaf, points, pure));
  CHECK(!target.stays_paused(0, leaf, points, single));
  CHECK(!target.stays_paused(0, leaf, points, all));
}

TEST_CASE("the label counts of a leaf are exact") {
  check_counts_of_a_leaf(10);
  check_counts_of_a_leaf(100);
}

}  // namespace
