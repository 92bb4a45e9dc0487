#include "tree.hpp"

#include <vector>

#include "check.hpp"
#include "invariants.hpp"
#include "label_target.hpp"
#include "label_walk.hpp"
#include "walk.hpp"

using namespace onlineforest;

namespace {

using LabelTree = Tree<LabelTarget>;

LabelTree new_tree(std::size_t n_features, double lifetime = kInfinity, std::uint64_t seed = 1) {
  return LabelTree(n_features, lifetime, LabelTarget(2), Rng(seed, 0));
}

PointStore<Label> random_points(std::size_t n, std::size_t n_features, std::int32_t n_classes) {
  Rng rng(7, n);
  std::vector<float> rows;
  std::vector<Label> labels;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t d = 0; d < n_features; ++d) rows.push_back(static_cast<float>(rng.uniform()));
    labels.push_back(static_cast<Label>(rng.uniform() * n_classes));
  }
  PointStore<Label> points(n_features);
  points.append(rows, labels);
  return points;
}

void test_growing_keeps_the_invariants() {
  const auto points = random_points(300, 3, 4);
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  for (const double lifetime : {kInfinity, 2.0, 0.0}) {
    LabelTree tree = new_tree(3, lifetime);
    tree.grow(points, 50, {{1.0, 0.0, 2.0}, 30.0}, work, stop);
    check_invariants(tree, points, 2);
    for (const std::size_t end : {51, 52, 60, 150, 300}) {
      tree.extend(points, end, work, stop);
      check_invariants(tree, points, 2);
    }
    CHECK(tree.n_points() == 300);
    CHECK((lifetime > 0.0) == (tree.nodes().size() > 1));
  }
}

void test_two_points_by_hand() {
  // 0 and 1 on a line with different labels: one cut between them, always.
  PointStore<Label> points(1);
  points.append(std::vector<float>{0.0f, 1.0f}, std::vector<Label>{0, 1});
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  LabelTree tree = new_tree(1);
  tree.grow(points, 1, {{1.0}, 10.0}, work, stop);
  CHECK(tree.nodes().size() == 1 && tree.nodes()[tree.root()].is_leaf());
  tree.extend(points, 2, work, stop);
  const Node& root = tree.nodes()[tree.root()];
  CHECK(tree.nodes().size() == 3 && !root.is_leaf());
  CHECK(root.split_location >= 0.0f && root.split_location < 1.0f);
  CHECK(tree.nodes()[root.left].first_point == 0 && tree.nodes()[root.right].first_point == 1);

  // At a training point the leaf answers for sure, because its duration is infinite.
  std::vector<Step> steps;
  std::vector<double> p(2, 0.0);
  const float at_zero = 0.0f, far = 1e30f;
  add_label_prediction(tree, &at_zero, p, steps);
  CHECK(p[0] == 1.0 && p[1] == 0.0);
  CHECK(steps.size() == 2 && find_leaf(tree, &at_zero) == root.left);
  // Far away the point branches off at once: uniform.
  p.assign(2, 0.0);
  add_label_prediction(tree, &far, p, steps);
  CHECK(std::abs(p[0] - 0.5) < 1e-12 && std::abs(p[1] - 0.5) < 1e-12);
  CHECK(steps.size() == 1);
}

void test_a_stopped_growth_leaves_the_tree() {
  const auto points = random_points(200'000, 4, 3);
  Workspace work;
  LabelTree tree = new_tree(4);
  {
    StopSignal signal({});
    StopProbe stop(signal, true);
    tree.grow(points, 100, {{1.0, 1.0, 1.0, 1.0}, 40.0}, work, stop);
  }
  StopSignal signal({});
  signal.stop();
  StopProbe stop(signal, true);
  CHECK_THROWS(tree.grow(points, points.size(), {{2.0, 1.0, 1.0, 1.0}, 50.0}, work, stop), Interrupted);
  CHECK(tree.n_points() == 100 && tree.measure().weights[0] == 1.0);
  check_invariants(tree, points, 2);
}

void test_a_stopped_unpausing_empties_the_tree() {
  // A giant leaf of one label, cut up by one point of another.
  const std::size_t n = 4'200'000;
  Rng rng(3, 3);
  std::vector<float> rows(4 * n);
  for (float& x : rows) x = static_cast<float>(rng.uniform());
  std::vector<Label> labels(n, 0);
  labels.back() = 1;
  PointStore<Label> points(4);
  points.append(rows, labels);
  Workspace work;
  StopSignal signal({});
  StopProbe stop(signal, true);
  LabelTree tree = new_tree(4);
  const Measure measure{{1.0, 1.0, 1.0, 1.0}, 40.0};
  tree.grow(points, n - 1, measure, work, stop);
  CHECK(tree.nodes().size() == 1);
  signal.stop();
  CHECK_THROWS(tree.extend(points, n, work, stop), Interrupted);
  CHECK(tree.empty() && tree.n_points() == 0);
  check_invariants(tree, points, 2);
}

void test_discounts() {
  CHECK(discount_of(0.0, kInfinity) == 1.0);
  CHECK(discount_of(5.0, kInfinity) == 0.0);
  CHECK(discount_of(5.0, 0.0) == 1.0);
  CHECK(expected_discount(0.0, 1.0, kInfinity) == 1.0);
  CHECK(std::abs(expected_discount(3.0, 1.0, kInfinity) - 0.25) < 1e-15);
  // Where products of rate and duration underflow, and where they overflow.
  for (const double eta : {1e-300, 1e-110, 1.0, 1e100, 1e240}) {
    for (const double gamma : {1e-300, 1.0, 1e100, 1e300}) {
      for (const double duration : {1e-320, 1e-200, 1e-100, 1.0, 1e200, kInfinity}) {
        if (!(-std::expm1(-eta * duration) > 0.0)) continue;  // never separated: not asked
        const double d = expected_discount(gamma, eta, duration);
        CHECK(d >= 0.0 && d <= 1.0);
      }
    }
  }
  // Against a Riemann sum of exp(-gamma t) eta exp(-eta t) on [0, Delta].
  const double gamma = 2.0, eta = 0.7, duration = 1.3;
  double above = 0.0, below = 0.0;
  for (int i = 0; i < 200'000; ++i) {
    const double t = (i + 0.5) / 200'000 * duration;
    above += std::exp(-gamma * t) * std::exp(-eta * t);
    below += std::exp(-eta * t);
  }
  CHECK(std::abs(expected_discount(gamma, eta, duration) - above / below) < 1e-9);
}

}  // namespace

int main() {
  test_growing_keeps_the_invariants();
  test_two_points_by_hand();
  test_a_stopped_growth_leaves_the_tree();
  test_a_stopped_unpausing_empties_the_tree();
  test_discounts();
  return testing::finish();
}
