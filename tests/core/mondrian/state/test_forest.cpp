// Tests what a forest promises: learning, forgetting, windows, saving and restoring.
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "data.hpp"
#include "mondrian/forest/forest.hpp"
#include "mondrian/state/archive.hpp"
#include "mondrian/state/invariants.hpp"
#include "mondrian/state/tree_arrays.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

using testing::Data;
using testing::learn;

Data<Label> random_data(std::size_t n, std::size_t n_features, double most, std::uint64_t seed) {
  Rng rng(seed, 0);
  Data<Label> data;
  for (std::size_t i = 0; i < n * n_features; ++i) data.rows.push_back(static_cast<float>(rng.uniform()));
  for (std::size_t i = 0; i < n; ++i) data.values.push_back(static_cast<Label>(rng.uniform() * most));
  return data;
}

ForestOptions options_for(std::size_t n_features) {
  ForestOptions options;
  options.n_trees = 7;
  options.n_features = n_features;
  return options;
}

constexpr std::int32_t kClasses = 100;

TEST_CASE("the number of threads and restoring do not change predictions") {
  const auto first = random_data(200, 3, kClasses, 1);
  const auto second = random_data(333, 3, kClasses, 2);
  Forest one(options_for(3)), many(options_for(3));
  learn(one, first, kClasses, 1);
  learn(many, first, kClasses, 4);
  const auto resumed = Archive::restore(Archive::save(many));
  learn(one, second, kClasses, 1);
  learn(many, second, kClasses, 3);
  learn(*resumed, second, kClasses, 2);
  for (const Forest* forest : {&one, &many, resumed.get()}) check_invariants(*forest);
  const auto expected = one.predict(first.rows, Call(1));
  CHECK(many.predict(first.rows, Call(3)) == expected);
  CHECK(resumed->predict(first.rows, Call(2)) == expected);
  CHECK(one.apply(first.rows, Call(1)) == many.apply(first.rows, Call(2)));
}

TEST_CASE("rejected calls leave a forest unchanged") {
  const auto data = random_data(50, 2, 3, 1);
  Forest forest(options_for(2));
  forest.learn(data.rows, data.values, 3, Call(1));
  const auto before = forest.predict(data.rows, Call(1));
  const std::vector<float> row{0.5f, 0.5f}, short_row{0.5f};
  const std::vector<Label> label{2}, negative{-1}, too_large{3};
  CHECK_THROWS_AS(forest.learn(short_row, label, 3, Call(1)), std::invalid_argument);
  CHECK_THROWS_AS(forest.learn(row, negative, 3, Call(1)), std::invalid_argument);
  CHECK_THROWS_AS(forest.learn(row, too_large, 3, Call(1)), std::invalid_argument);
  CHECK_THROWS_AS(forest.learn(row, label, 2, Call(1)), std::invalid_argument);
  for (const float bad : {std::nanf(""), static_cast<float>(kInfinity)}) {
    CHECK_THROWS_AS(forest.learn(std::vector<float>{0.5f, bad}, label, 3, Call(1)), std::invalid_argument);
  }
  CHECK_THROWS_AS(forest.predict(short_row, Call(1)), std::invalid_argument);
  CHECK_THROWS_AS(tree_arrays(forest, 7), std::out_of_range);
  CHECK(forest.predict(data.rows, Call(1)) == before);
  CHECK(forest.n_samples() == 50);
}

TEST_CASE("invalid options are rejected") {
  const auto rejected = [](auto change) {
    auto options = options_for(2);
    change(options);
    CHECK_THROWS_AS(Forest{options}, std::invalid_argument);
  };
  rejected([](ForestOptions& o) { o.n_trees = 0; });
  rejected([](ForestOptions& o) { o.n_features = 0; });
  rejected([](ForestOptions& o) { o.lifetime = -1.0; });
  rejected([](ForestOptions& o) { o.lifetime = std::nan(""); });
  rejected([](ForestOptions& o) { o.discount = kInfinity; });
  rejected([](ForestOptions& o) { o.min_samples_split = 1; });
  rejected([](ForestOptions& o) { o.weight_rule = WeightRule::kFixed; });
}

TEST_CASE("a forest without points predicts uniform probabilities and can be saved") {
  Forest forest(options_for(2));
  forest.learn({}, {}, 4, Call(1));
  CHECK(forest.predict(std::vector<float>{1.0f, 2.0f}, Call(1)) == std::vector<double>(4, 0.25));
  check_invariants(*Archive::restore(Archive::save(forest)));
}

// Restores damaged copies of one state. Each must be rejected or give a forest that learns, predicts and keeps the
// invariants.
class DamagedStates {
 public:
  using State = ForestState;

  DamagedStates() : good_(make_good()) {}

  template <class Change>
  void damage(Change change) {
    State state = good_;
    change(state);
    ++n_tried_;
    try {
      const auto restored = Archive::restore(state);
      const auto more = random_data(5, 2, 3, 9);
      learn(*restored, more, kClasses, 1);
      check_invariants(*restored);
      for (const double p : restored->predict(more.rows, Call(1))) CHECK(std::isfinite(p));
    } catch (const std::invalid_argument&) {
      ++n_rejected_;
    }
  }

  // Changes that no forest can have.
  template <class Change>
  void reject(Change change) {
    State state = good_;
    change(state);
    CHECK_THROWS_AS(Archive::restore(state), std::invalid_argument);
  }

  void damage_nodes() {
    for (std::size_t i = 0; i < good_.trees[0].left.size(); ++i) {
      for (const std::int32_t value : kOdd) {
        for (auto member : {&TreeState::left, &TreeState::right, &TreeState::split_dimension}) {
          damage([&](State& s) { (s.trees[0].*member)[i] = value; });
        }
      }
      for (const double value : {-1.0, 0.0, 1e9, std::nan(""), kInfinity}) {
        damage([&](State& s) { s.trees[0].split_time[i] = value; });
        damage([&](State& s) { s.trees[0].split_location[i] = static_cast<float>(value); });
      }
    }
  }

  void damage_points() {
    for (std::size_t i = 0; i < kPoints; ++i) {
      for (const std::int32_t value : kOdd) {
        damage([&](State& s) { s.trees[0].next_point[i] = value; });
        damage([&](State& s) { s.values[i] = value; });
      }
    }
    for (const std::size_t value : {0, 1, 29, 31}) {
      damage([&](State& s) { s.schedule.computed_from = value; });
      damage([&](State& s) { s.schedule.n_since = value; });
      damage([&](State& s) { s.n_seen = value; });
      damage([&](State& s) { s.serials[5] = static_cast<Serial>(value); });
      damage([&](State& s) { s.options.keep = {KeepRule::kLatest, value, kInfinity}; });
    }
  }

  void damage_measures() {
    for (const double value : {-1.0, 0.0, 1e-300, 1e100, 1e250, std::nan(""), kInfinity}) {
      damage([&](State& s) { s.measures[0].weights[1] = value; });
      damage([&](State& s) { s.measures[0].discount_rate = value; });
      const auto add_measure = [&](State& s) {  // forest and tree have different measures
        s.measures.push_back(s.measures[0]);
        s.measure = 1;
        s.measures[1].weights[0] = value;
      };
      damage(add_measure);
      damage([&](State& s) {
        add_measure(s);
        s.measures[1].discount_rate = value;
      });
      damage([&](State& s) { s.options.lifetime = value; });
    }
  }

  void reject_inconsistent() {
    reject([](State& s) { s.trees[0].left.pop_back(); });
    reject([](State& s) { s.rows[3] = std::nanf(""); });
    reject([](State& s) { s.trees.clear(); });
    reject([](State& s) { s.measures[0].weights.clear(); });
    reject([](State& s) { s.serials.pop_back(); });
    reject([](State& s) { s.serials[0] = -1; });
    reject([](State& s) { s.turned_away = std::nan(""); });
    reject([](State& s) { s.options.keep = {KeepRule::kSample, kPoints - 1, kInfinity}; });
    reject([](State& s) { s.trees[0].rng = {}; });
  }

  void check_most_were_rejected() const { CHECK(n_rejected_ > n_tried_ / 2); }

 private:
  static constexpr std::size_t kPoints = 30;
  static constexpr std::int32_t kOdd[] = {-2, -1, 0, 1, 5, 29, 30, 1'000'000, -1'000'000};

  static State make_good() {
    auto options = options_for(2);
    options.n_trees = 1;
    Forest forest(options);
    learn(forest, random_data(kPoints, 2, 3, 5), kClasses, 1);
    return Archive::save(forest);
  }

  State good_;
  int n_rejected_ = 0, n_tried_ = 0;
};

TEST_CASE("a damaged state is rejected or gives a valid forest") {
  DamagedStates states;
  states.damage_nodes();
  states.damage_points();
  for (const std::int32_t odd : {-1, 0, 1, 2, 1'000'000}) {
    states.damage([&](ForestState& s) { s.n_classes = odd; });
  }
  states.damage_measures();
  states.check_most_were_rejected();
  states.reject_inconsistent();
}

TEST_CASE("an error of restoring names the tree, the node, the value and the bound") {
  Forest forest(options_for(2));
  learn(forest, random_data(30, 2, 3, 5), kClasses, 1);
  const ForestState good = Archive::save(forest);
  const auto error_of = [](const ForestState& state) -> std::string {
    try {
      Archive::restore(state);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of(good).empty());
  ForestState state = good;
  state.trees[3].split_dimension[0] = 9;
  CHECK(error_of(state) ==
        "not the state of a forest: tree 3: node 0 has split_dimension 9, the forest has 2 features");
  state = good;
  state.rows[5] = static_cast<float>(kInfinity);
  CHECK(error_of(state) ==
        "not the state of a forest: rows has the value inf at point 2, feature 1, which is not finite");
  state = good;
  state.serials.pop_back();
  CHECK(error_of(state) == "not the state of a forest: serials has 29 entries, there are 30 points");
}

TEST_CASE("forgetting removes exactly the named points and rejects unknown ones") {
  auto data = random_data(200, 3, kClasses, 1);
  for (std::size_t i = 0; i < 3; ++i) data.rows[150 * 3 + i] = data.rows[20 * 3 + i];  // point 150 equals point 20
  data.values[150] = data.values[20];
  Forest forest(options_for(3));
  learn(forest, data, kClasses, 2);
  const auto row = [&](std::size_t i) { return std::span(data.rows).subspan(3 * i, 3); };
  const auto value = [&](std::size_t i) { return std::span(data.values).subspan(i, 1); };
  const auto before = forest.predict(data.rows, Call(1));
  CHECK_THROWS_AS(forest.forget(std::vector<Serial>{3, 200}, Call(1)), std::invalid_argument);
  CHECK_THROWS_AS(forest.forget(std::vector<Serial>{3, 3}, Call(1)), std::invalid_argument);
  std::vector<float> rows(row(7).begin(), row(7).end());
  rows.insert(rows.end(), rows.begin(), rows.begin() + 3);
  CHECK(forest.forget(rows, std::vector<Label>{data.values[7], data.values[7]}, Call(1)) ==
        std::vector<std::size_t>{1});
  CHECK(forest.predict(data.rows, Call(1)) == before);
  CHECK(forest.n_samples() == 200);

  forest.forget(std::vector<Serial>{199, 0, 57}, Call(2));
  CHECK(forest.forget(row(20), value(20), Call(2)).empty());  // the older of the two equal points
  check_invariants(forest);
  auto serials = forest.serials();
  CHECK(serials.size() == 196);
  CHECK(forest.n_samples() == 196);
  CHECK(forest.n_seen() == 200);
  for (const Serial gone : {199, 0, 57, 20}) CHECK(std::ranges::find(serials, gone) == serials.end());
  CHECK(forest.forget(row(20), value(20), Call(2)).empty());  // the younger one
  CHECK(forest.forget(row(20), value(20), Call(2)) == std::vector<std::size_t>{0});
  CHECK(forest.forget(row(57), value(57), Call(2)) == std::vector<std::size_t>{0});

  const auto resumed = Archive::restore(Archive::save(forest));
  for (Forest* each : {&forest, resumed.get()}) each->keep_latest(150, Call(1));
  check_invariants(forest);
  CHECK(std::ranges::min(forest.serials()) == 47);
  CHECK(forest.predict(data.rows, Call(1)) == resumed->predict(data.rows, Call(1)));
  forest.keep_latest(10, Call(2));  // so few that trees are regrown
  check_invariants(forest);
  CHECK(forest.n_samples() == 10);
  CHECK(std::ranges::min(forest.serials()) == 189);

  forest.keep_latest(0, Call(1));
  check_invariants(forest);
  CHECK(forest.n_samples() == 0);
  CHECK(forest.measure().weights.empty());
  const auto empty = Archive::restore(Archive::save(forest));
  for (Forest* each : {&forest, empty.get()}) learn(*each, data, kClasses, 2);
  check_invariants(forest);
  CHECK(forest.n_samples() == 200);
  CHECK(forest.n_seen() == 400);
  CHECK(forest.predict(data.rows, Call(1)) == empty->predict(data.rows, Call(2)));
}

TEST_CASE("a window keeps the latest points for any batch size and after forgetting") {
  auto options = options_for(3);
  options.keep = {KeepRule::kLatest, 60, kInfinity};
  Forest forest(options);
  std::size_t n_seen = 0;
  for (const std::size_t n : {10, 1, 45, 30, 1, 1, 7, 200, 61, 1}) {
    learn(forest, random_data(n, 3, kClasses, n_seen + 1), kClasses, 2);
    n_seen += n;
    check_invariants(forest);
    const auto serials = forest.serials();
    CHECK(serials.size() == std::min<std::size_t>(n_seen, 60));
    CHECK(forest.n_seen() == n_seen);
    CHECK(std::ranges::min(serials) == static_cast<Serial>(n_seen - serials.size()));
  }
  const Serial last = static_cast<Serial>(n_seen) - 1;
  forest.forget(std::vector<Serial>{last, last - 30}, Call(1));
  learn(forest, random_data(2, 3, kClasses, 5), kClasses, 1);
  CHECK(forest.n_samples() == 60);
  CHECK(std::ranges::min(forest.serials()) == last - 59);  // two places were free
  learn(forest, random_data(1, 3, kClasses, 5), kClasses, 1);
  CHECK(forest.n_samples() == 60);
  CHECK(std::ranges::min(forest.serials()) == last - 58);
  check_invariants(forest);
}

}  // namespace
