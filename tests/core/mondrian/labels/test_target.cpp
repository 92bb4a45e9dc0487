#include <map>
#include <vector>

#include "mondrian/labels/target.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

PointStore labelled(const std::vector<Label>& labels, const std::vector<std::int32_t>& counts = {}) {
  PointStore points(1);
  points.append(std::vector<float>(labels.size(), 0.0f), labels, counts);
  return points;
}

using Counts = std::map<Label, LabelTarget::Count>;

Counts counts(const LabelTarget& target, std::int32_t n_points) {
  Counts result;
  target.for_each_count(0, n_points, [&](Label label, LabelTarget::Count count) { result[label] = count; });
  return result;
}

void check_counts_of_a_leaf(std::int32_t n_classes) {
  const auto points = labelled({5, 5, 2, 9, 2, 5});
  const std::vector<Slot> slots{0, 1, 2, 3, 4, 5};
  LabelTarget target(2);
  target.reserve_classes(n_classes);
  target.reserve_nodes(1);
  target.add_to_leaf(0, 0, points, std::span(slots).first(2));
  CHECK((counts(target, 2) == Counts{{5, 2}}));
  target.add_to_leaf(0, 2, points, std::span(slots).subspan(2));
  CHECK((counts(target, 6) == Counts{{2, 2}, {5, 3}, {9, 1}}));
  target.clear(0);
  CHECK(counts(target, 0).empty());
}

// Points that count more than once.
void check_recounted_leaf(std::int32_t n_classes) {
  auto points = labelled({5, 5, 2, 9}, {1, 2, 3, 1});
  const std::vector<Slot> slots{0, 1, 2, 3};
  LabelTarget target(2);
  target.reserve_classes(n_classes);
  target.reserve_nodes(1);
  target.add_to_leaf(0, 0, points, std::span(slots).first(1));
  CHECK(target.is_plain(0));
  target.add_to_leaf(0, 1, points, std::span(slots).subspan(1, 1));
  CHECK((counts(target, 2) == Counts{{5, 3}}));
  target.add_count(0, 2, 5, -1);  // the number of points says it again
  CHECK(target.is_plain(0));
  target.add_count(0, 2, 5, 1);
  CHECK(!target.is_plain(0));
  target.add_to_leaf(0, 2, points, std::span(slots).subspan(2));
  CHECK((counts(target, 4) == Counts{{2, 3}, {5, 3}, {9, 1}}));
  target.add_count(0, 4, 2, -2);
  points.set_count(2, 1);
  CHECK((counts(target, 4) == Counts{{2, 1}, {5, 3}, {9, 1}}));
  target.remove_from_leaf(0, points, 1, 3);
  CHECK((counts(target, 3) == Counts{{2, 1}, {5, 1}, {9, 1}}));
  target.remove_from_leaf(0, points, 3, 2);
  target.remove_from_leaf(0, points, 2, 1);
  CHECK((counts(target, 1) == Counts{{5, 1}}));
  CHECK(target.is_plain(0));
}

TEST_CASE("a leaf follows how often its points count") {
  check_recounted_leaf(10);
  check_recounted_leaf(100);
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
  target.add_to_leaf(0, 0, points, pure);
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
