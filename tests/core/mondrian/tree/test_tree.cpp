#include "mondrian/tree/tree.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "mondrian/labels/target.hpp"
#include "mondrian/labels/walk.hpp"
#include "mondrian/process/rates.hpp"
#include "mondrian/state/invariants.hpp"
#include "mondrian/tree/stages.hpp"
#include "mondrian/tree/walk.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

using LabelTree = Tree<LabelTarget>;

LabelTree new_tree(std::size_t n_features, double lifetime = kInfinity, std::uint64_t seed = 1) {
  return LabelTree(n_features, lifetime, LabelTarget(2), Rng(seed, 0));
}

MeasurePointer measure_of(std::vector<double> weights, double discount_rate) {
  return std::make_shared<const Measure>(std::move(weights), discount_rate, 0.0);
}

PointStore random_points(std::size_t n, std::size_t n_features, std::int32_t n_classes) {
  Rng rng(7, n);
  std::vector<float> rows;
  std::vector<Label> labels;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t d = 0; d < n_features; ++d) rows.push_back(static_cast<float>(rng.uniform()));
    labels.push_back(static_cast<Label>(rng.uniform() * n_classes));
  }
  PointStore points(n_features);
  points.append(rows, labels);
  return points;
}

TEST_CASE("growing and extending keep the invariants") {
  const auto points = random_points(300, 3, 4);
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  for (const double lifetime : {kInfinity, 2.0, 0.0}) {
    LabelTree tree = new_tree(3, lifetime);
    tree.grow(points, Columns(points, 50), measure_of({1.0, 0.0, 2.0}, 30.0), work, stop);
    check_invariants(tree, points, 2);
    for (const std::size_t end : {51, 52, 60, 150, 300}) {
      tree.extend(points, end, work, stop);
      check_invariants(tree, points, 2);
    }
    CHECK(tree.n_points() == 300);
    CHECK((lifetime > 0.0) == (tree.nodes().size() > 1));
  }
}

// Forgets points of a tree and of its store, as a forest does.
void forget(LabelTree& tree, PointStore& points, std::vector<Slot> slots, Workspace& work) {
  const std::vector<Move> moves = moves_after(slots, points.size());
  StopSignal signal({});
  StopProbe stop(signal, true);
  tree.forget(slots, moves, points, work, stop);
  points.remove(slots, moves);
}

TEST_CASE("forgetting labels keeps the invariants") {
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  for (const std::int32_t min_samples_split : {2, 6}) {
    for (const std::int32_t n_classes : {1, 3, 70}) {
      for (const double lifetime : {kInfinity, 1.0}) {
        auto points = random_points(200, 3, n_classes);
        LabelTree tree(3, lifetime, LabelTarget(min_samples_split), Rng(3, 0));
        tree.target().reserve_classes(n_classes);
        tree.grow(points, Columns(points, 200), measure_of({1.0, 2.0, 1.0}, 30.0), work, stop);
        Rng rng(5, 0);
        const auto more = random_points(300, 3, n_classes);
        std::size_t n_more = 0;
        while (points.size() > 0) {
          if (rng.uniform() < 0.4 && n_more + 3 <= more.size()) {
            points.append(more.rows().subspan(n_more * 3, 9), more.labels().subspan(n_more, 3));
            n_more += 3;
            tree.extend(points, points.size(), work, stop);
          } else {
            std::vector<Slot> slots;
            const std::size_t most = std::min<std::size_t>(points.size(), 4);
            while (slots.size() < most) {
              const Slot slot = static_cast<Slot>(rng.uniform() * static_cast<double>(points.size()));
              if (std::ranges::find(slots, slot) == slots.end()) slots.push_back(slot);
            }
            std::ranges::sort(slots, std::greater());
            forget(tree, points, slots, work);
          }
          CHECK(tree.n_points() == points.size());
          check_invariants(tree, points, min_samples_split);
        }
        CHECK(tree.empty());
      }
    }
  }
}

TEST_CASE("forgetting that is stopped empties the tree") {
  auto points = random_points(3000, 40, 3);
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  LabelTree tree = new_tree(40);
  tree.grow(points, Columns(points, 3000), measure_of(std::vector<double>(40, 1.0), 40.0), work, stop);
  std::vector<Slot> slots(2000);
  std::iota(slots.rbegin(), slots.rend(), Slot{0});
  signal.stop();
  CHECK_THROWS_AS(tree.forget(slots, moves_after(slots, 3000), points, work, stop), Interrupted);
  CHECK(tree.empty());
  CHECK(tree.n_points() == 0);
}

// The mean and its standard error, to compare two samples.
struct Mean {
  double sum = 0.0, squares = 0.0, n = 0.0;

  void add(double x) {
    sum += x;
    squares += x * x;
    n += 1.0;
  }
  double mean() const { return sum / n; }
  double error() const { return std::sqrt((squares / n - mean() * mean()) / n); }
};

// Holds for any forgotten points whose choice does not depend on the tree. Twelve comparisons, each of which fails by
// chance once in a million.
TEST_CASE("forgetting points gives the distribution of trees that never saw them") {
  constexpr std::size_t kTrees = 4000;
  const std::vector<float> rows{0.1f, 0.2f, 0.9f, 0.3f, 0.4f, 0.8f, 0.5f, 0.5f, 0.3f, 0.6f, 5.0f, 0.4f, 0.7f, -3.0f};
  const std::vector<Label> labels{0, 1, 0, 1, 1, 2, 2};
  const auto measure = measure_of({1.0, 0.5}, 10.0);
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  for (const std::vector<Slot>& gone : {std::vector<Slot>{6, 5}, {1, 0}, {4}}) {
    for (const std::int32_t min_samples_split : {2, 4}) {
      PointStore left(2);
      for (std::size_t i = 0; i < labels.size(); ++i) {
        if (std::ranges::find(gone, static_cast<Slot>(i)) != gone.end()) continue;
        left.append(std::span(rows).subspan(2 * i, 2), std::span(labels).subspan(i, 1));
      }
      Mean times[2], sizes[2];
      for (std::size_t t = 0; t < kTrees; ++t) {
        PointStore points(2);
        points.append(rows, labels);
        LabelTree forgetful(2, kInfinity, LabelTarget(min_samples_split), Rng(17, t));
        forgetful.grow(points, Columns(points, 4), measure, work, stop);
        forgetful.extend_one_by_one(points, points.size(), work, stop);
        forget(forgetful, points, gone, work);
        LabelTree other(2, kInfinity, LabelTarget(min_samples_split), Rng(18, t));
        other.grow(left, Columns(left, left.size()), measure, work, stop);
        for (const LabelTree* tree : {&forgetful, &other}) {
          const std::size_t which = tree == &other;
          times[which].add(std::min(tree->nodes().split_time(kRoot), 100.0));
          sizes[which].add(static_cast<double>(tree->nodes().size()));
        }
      }
      for (const Mean* means : {times, sizes}) {
        const double error = std::hypot(means[0].error(), means[1].error());
        CHECK(std::abs(means[0].mean() - means[1].mean()) <= 5.0 * error);
      }
    }
  }
}

TEST_CASE("the last points move into the gaps that removed points leave") {
  const auto check = [](std::vector<Slot> gone, std::size_t n, std::vector<std::pair<Slot, Slot>> expected) {
    std::vector<std::pair<Slot, Slot>> moves;
    for (const Move& move : moves_after(gone, n)) moves.emplace_back(move.from, move.to);
    CHECK(moves == expected);
  };
  check({2}, 5, {{4, 2}});
  check({4}, 5, {});
  check({4, 3}, 5, {});
  check({4, 1}, 5, {{3, 1}});
  check({3, 0}, 5, {{4, 0}});
  check({2, 1, 0}, 3, {});
}

TEST_CASE("two points on a line give one cut between them") {
  // 0 and 1 on a line with different labels: one cut between them, always.
  PointStore points(1);
  points.append(std::vector<float>{0.0f, 1.0f}, std::vector<Label>{0, 1});
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  LabelTree tree = new_tree(1);
  tree.grow(points, Columns(points, 1), measure_of({1.0}, 10.0), work, stop);
  CHECK(tree.nodes().size() == 1);
  CHECK(tree.nodes()[kRoot].is_leaf());
  tree.extend(points, 2, work, stop);
  const Node& root = tree.nodes()[kRoot];
  REQUIRE(tree.nodes().size() == 3);
  CHECK(!root.is_leaf());
  CHECK(root.split_location >= 0.0f);
  CHECK(root.split_location < 1.0f);
  CHECK(tree.nodes()[root.left].first_point == 0);
  CHECK(tree.nodes()[root.right()].first_point == 1);

  // At a training point the prediction is certain, because the duration of its leaf is infinite. A point far away
  // branches off at the root: its prediction is uniform.
  const std::vector<float> rows{0.0f, 1e30f};
  std::vector<double> p(2 * LabelWalk::width(2), 0.0);
  LabelWalk walk;
  walk.add_predictions(std::span(&tree, 1), points, {rows.data(), 2}, 2, p.data(), [](std::size_t) {});
  LabelWalk::finish(p, 2, 1.0);
  REQUIRE(p.size() == 4);
  CHECK(p[0] == 1.0);
  CHECK(p[1] == 0.0);
  CHECK(std::abs(p[2] - 0.5) < 1e-12);
  CHECK(std::abs(p[3] - 0.5) < 1e-12);
  CHECK(find_leaf(tree.nodes(), rows.data()) == root.left);
}

// A path has the steps to the leaf of its row and the separation rates of all boxes on it.
TEST_CASE("the path of each row in a set is the path of the row alone") {
  const auto points = random_points(500, 40, 3), queries = random_points(100, 40, 3);
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  LabelTree tree = new_tree(40);
  const auto measure = measure_of(std::vector<double>(40, 0.5), 400.0);
  tree.grow(points, Columns(points, 400), measure, work, stop);
  tree.extend_one_by_one(points, 500, work, stop);
  check_invariants(tree, points, 2);

  SetWalk walk;
  BoxBuffer buffer;
  std::size_t n_paths = 0, n_outside = 0;
  walk.walk(tree, points, {queries.rows().data(), 100}, [&](const RowPath& path) {
    ++n_paths;
    const float* row = queries.row(static_cast<Slot>(path.row));
    NodeIndex j = kRoot;
    double birth_time = 0.0;
    for (std::size_t k = 0; k < path.steps.size(); ++k) {
      CHECK(path.steps[k].node == j);
      CHECK(path.steps[k].duration == tree.nodes().split_time(j) - birth_time);
      const double rate = separation_rate(measure->weights.data(), tree.box(j, points, buffer), row, 40);
      CHECK((rate > 0.0) == (k >= path.first_outside));
      if (k >= path.first_outside) CHECK(std::abs(path.separation_rates[k] - rate) < 1e-14 * rate);
      birth_time = tree.nodes().split_time(j);
      if (k + 1 < path.steps.size()) j = tree.nodes()[j].child(row);
    }
    CHECK(tree.nodes()[j].is_leaf());
    n_outside += path.steps.size() - path.first_outside;
  });
  CHECK(n_paths == 100);
  CHECK(n_outside > 300);
}

TEST_CASE("extending one by one gives the tree of separate calls") {
  const auto points = random_points(300, 3, 2);
  StopSignal signal({});
  StopProbe stop(signal, true);
  Workspace work;
  LabelTree together = new_tree(3), alone = new_tree(3);
  for (LabelTree* tree : {&together, &alone}) {
    tree->grow(points, Columns(points, 20), measure_of({1.0, 1.0, 1.0}, 30.0), work, stop);
  }
  together.extend_one_by_one(points, 300, work, stop);
  for (std::size_t end = 21; end <= 300; ++end) alone.extend(points, end, work, stop);
  CHECK(together.rng().state() == alone.rng().state());
  REQUIRE(together.nodes().size() == alone.nodes().size());
  CHECK(together.nodes().size() > 100);
  for (std::size_t i = 0; i < alone.nodes().size(); ++i) {
    const NodeIndex j = static_cast<NodeIndex>(i);
    CHECK(together.nodes().split_time(j) == alone.nodes().split_time(j));
    CHECK(together.nodes()[j].left == alone.nodes()[j].left);
  }
}

TEST_CASE("growth that is stopped leaves the tree unchanged") {
  const auto points = random_points(200'000, 4, 3);
  Workspace work;
  LabelTree tree = new_tree(4);
  {
    StopSignal signal({});
    StopProbe stop(signal, true);
    tree.grow(points, Columns(points, 100), measure_of({1.0, 1.0, 1.0, 1.0}, 40.0), work, stop);
  }
  StopSignal signal({});
  signal.stop();
  StopProbe stop(signal, true);
  const Columns all(points, points.size());
  CHECK_THROWS_AS(tree.grow(points, all, measure_of({2.0, 1.0, 1.0, 1.0}, 50.0), work, stop), Interrupted);
  CHECK(tree.n_points() == 100);
  CHECK(tree.measure().weights[0] == 1.0);
  check_invariants(tree, points, 2);
}

TEST_CASE("cutting a paused leaf that is stopped empties the tree") {
  // A leaf of millions of points with one label; one point of another label makes the tree cut it.
  const std::size_t n = 4'200'000;
  Rng rng(3, 3);
  std::vector<float> rows(4 * n);
  for (float& x : rows) x = static_cast<float>(rng.uniform());
  std::vector<Label> labels(n, 0);
  labels.back() = 1;
  PointStore points(4);
  points.append(rows, labels);
  Workspace work;
  StopSignal signal({});
  StopProbe stop(signal, true);
  LabelTree tree = new_tree(4);
  tree.grow(points, Columns(points, n - 1), measure_of({1.0, 1.0, 1.0, 1.0}, 40.0), work, stop);
  CHECK(tree.nodes().size() == 1);
  signal.stop();
  CHECK_THROWS_AS(tree.extend(points, n, work, stop), Interrupted);
  CHECK(tree.empty());
  CHECK(tree.n_points() == 0);
  check_invariants(tree, points, 2);
}

TEST_CASE("discounts and separated masses are accurate over the whole range of rates") {
  CHECK(discount_of(0.0, kInfinity) == 1.0);
  CHECK(discount_of(5.0, kInfinity) == 0.0);
  CHECK(discount_of(5.0, 0.0) == 1.0);
  // With discount rate 0 all mass goes to the parent; with infinite duration, eta / (eta + gamma) of it.
  CHECK(Separated(1.0, 0.0, 1.0, 0.0, 1.0).here == 0.0);
  CHECK(std::abs(Separated(1.0, 3.0, 1.0, 0.0, 0.0).to_parent - 0.25) < 1e-15);
  // Rates and durations whose products underflow or overflow.
  for (const double eta : {1e-300, 1e-110, 1.0, 1e100, 1e240}) {
    for (const double gamma : {0.0, 1e-300, 1.0, 1e100, 1e300}) {
      for (const double duration : {1e-320, 1e-200, 1e-100, 1.0, 1e200, kInfinity}) {
        const double left = std::exp(-eta * duration);
        const Separated separated(eta, gamma, 1.0, left, discount_of(gamma, duration));
        CHECK(separated.here >= 0.0);
        CHECK(separated.to_parent >= 0.0);
        CHECK(std::abs(separated.here + separated.to_parent - (1.0 - left)) < 1e-15);
      }
    }
  }
  // Against a Riemann sum of exp(-gamma t) eta exp(-eta t) on [0, Delta].
  const double gamma = 2.0, eta = 0.7, duration = 1.3;
  double expected = 0.0;
  for (int i = 0; i < 200'000; ++i) {
    const double t = (i + 0.5) / 200'000 * duration;
    expected += std::exp(-gamma * t) * eta * std::exp(-eta * t) * duration / 200'000;
  }
  const Separated separated(eta, gamma, 1.0, std::exp(-eta * duration), std::exp(-gamma * duration));
  CHECK(std::abs(separated.to_parent - expected) < 1e-9);
}

}  // namespace
