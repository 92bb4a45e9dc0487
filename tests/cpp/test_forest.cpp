#include "forest.hpp"

#include <vector>

#include "archive.hpp"
#include "check.hpp"
#include "invariants.hpp"
#include "tree_arrays.hpp"

using namespace onlineforest;

namespace {

struct Data {
  std::vector<float> rows;
  std::vector<Label> labels;
};

Data random_data(std::size_t n, std::size_t n_features, std::int32_t n_classes, std::uint64_t seed) {
  Rng rng(seed, 0);
  Data data;
  for (std::size_t i = 0; i < n * n_features; ++i) data.rows.push_back(static_cast<float>(rng.uniform()));
  for (std::size_t i = 0; i < n; ++i) data.labels.push_back(static_cast<Label>(rng.uniform() * n_classes));
  return data;
}

ForestOptions options_for(std::size_t n_features) {
  ForestOptions options;
  options.n_trees = 7;
  options.n_features = n_features;
  return options;
}

void test_threads_and_resuming_change_nothing() {
  const Data first = random_data(200, 3, 100, 1), second = random_data(333, 3, 100, 2);
  LabelForest one(options_for(3)), many(options_for(3));
  one.learn(first.rows, first.labels, 100, 1);
  many.learn(first.rows, first.labels, 100, 4);
  const auto resumed = Archive::restore(Archive::save(many));
  one.learn(second.rows, second.labels, 100, 1);
  many.learn(second.rows, second.labels, 100, 3);
  resumed->learn(second.rows, second.labels, 100, 2);
  for (const LabelForest* forest : {&one, &many, resumed.get()}) check_invariants(*forest);
  const auto expected = one.predict(first.rows, 1);
  CHECK(many.predict(first.rows, 3) == expected);
  CHECK(resumed->predict(first.rows, 2) == expected);
  CHECK(one.apply(first.rows, 1) == many.apply(first.rows, 2));
}

void test_rejected_calls_change_nothing() {
  const Data data = random_data(50, 2, 3, 1);
  LabelForest forest(options_for(2));
  forest.learn(data.rows, data.labels, 3, 1);
  const auto before = forest.predict(data.rows, 1);
  const std::vector<float> row{0.5f, 0.5f}, short_row{0.5f};
  const std::vector<Label> label{2}, negative{-1}, too_large{3};
  CHECK_THROWS(forest.learn(short_row, label, 3, 1), std::invalid_argument);
  CHECK_THROWS(forest.learn(row, negative, 3, 1), std::invalid_argument);
  CHECK_THROWS(forest.learn(row, too_large, 3, 1), std::invalid_argument);
  CHECK_THROWS(forest.learn(row, label, 2, 1), std::invalid_argument);
  CHECK_THROWS(forest.predict(short_row, 1), std::invalid_argument);
  CHECK_THROWS(tree_arrays(forest, 7), std::out_of_range);
  CHECK(forest.predict(data.rows, 1) == before && forest.n_points() == 50);
}

void test_options_are_checked() {
  const auto rejected = [](auto change) {
    ForestOptions options = options_for(2);
    change(options);
    CHECK_THROWS(LabelForest(options), std::invalid_argument);
  };
  rejected([](ForestOptions& o) { o.n_trees = 0; });
  rejected([](ForestOptions& o) { o.n_features = 0; });
  rejected([](ForestOptions& o) { o.lifetime = -1.0; });
  rejected([](ForestOptions& o) { o.lifetime = std::nan(""); });
  rejected([](ForestOptions& o) { o.discount = kInfinity; });
  rejected([](ForestOptions& o) { o.min_samples_split = 1; });
  rejected([](ForestOptions& o) { o.weight_rule = WeightRule::kFixed; });
}

void test_an_empty_forest_predicts_nothing_yet() {
  LabelForest forest(options_for(2));
  forest.learn({}, {}, 4, 1);
  CHECK(forest.predict(std::vector<float>{1.0f, 2.0f}, 1) == std::vector<double>(4, 0.25));
  check_invariants(*Archive::restore(Archive::save(forest)));
}

// Every single-entry change of a state either gives an error or a forest that keeps the invariants.
void test_damaged_states() {
  const Data data = random_data(30, 2, 3, 5);
  ForestOptions options = options_for(2);
  options.n_trees = 1;
  LabelForest forest(options);
  forest.learn(data.rows, data.labels, 3, 1);
  const ForestState good = Archive::save(forest);
  int n_rejected = 0, n_tried = 0;
  const auto attempt = [&](const ForestState& state) {
    ++n_tried;
    try {
      // What is accepted must be of use.
      const auto restored = Archive::restore(state);
      const Data more = random_data(5, 2, restored->n_classes(), 9);
      restored->learn(more.rows, more.labels, restored->n_classes(), 1);
      check_invariants(*restored);
      for (const double p : restored->predict(more.rows, 1)) CHECK(p >= 0.0 && p <= 1.0);
    } catch (const std::invalid_argument&) {
      ++n_rejected;
    }
  };
  const std::vector<std::int32_t> odd{-2, -1, 0, 1, 5, 29, 30, 1'000'000, -1'000'000};
  for (std::size_t i = 0; i < good.trees[0].left.size(); ++i) {
    for (const std::int32_t value : odd) {
      for (auto member : {&TreeState::left, &TreeState::right, &TreeState::split_dimension}) {
        ForestState state = good;
        (state.trees[0].*member)[i] = value;
        attempt(state);
      }
    }
    for (const double value : {-1.0, 0.0, 1e9, std::nan(""), kInfinity}) {
      ForestState state = good;
      state.trees[0].split_time[i] = value;
      attempt(state);
      state = good;
      state.trees[0].split_location[i] = static_cast<float>(value);
      attempt(state);
    }
  }
  for (std::size_t i = 0; i < 30; ++i) {
    for (const std::int32_t value : odd) {
      ForestState state = good;
      state.trees[0].next_point[i] = value;
      attempt(state);
      state = good;
      state.labels[i] = value;
      attempt(state);
    }
  }
  for (const std::int32_t value : odd) {
    ForestState state = good;
    state.n_classes = value;
    attempt(state);
  }
  for (const double value : {-1.0, 0.0, 1e-300, 1e100, 1e250, std::nan(""), kInfinity}) {
    ForestState state = good;
    state.trees[0].weights[1] = value;
    attempt(state);
    state = good;
    state.weights[0] = value;
    attempt(state);
    state = good;
    state.trees[0].discount_rate = value;
    attempt(state);
    state = good;
    state.discount_rate = value;
    attempt(state);
    state = good;
    state.options.lifetime = value;
    attempt(state);
  }
  for (const std::uint64_t value : {0, 1, 29, 31}) {
    ForestState state = good;
    state.measure_computed_from = value;
    attempt(state);
  }
  CHECK(n_rejected > n_tried / 2);
  ForestState state = good;
  state.trees[0].left.pop_back();
  CHECK_THROWS(Archive::restore(state), std::invalid_argument);
  state = good;
  state.rows[3] = std::nanf("");
  CHECK_THROWS(Archive::restore(state), std::invalid_argument);
  state = good;
  state.trees.clear();
  CHECK_THROWS(Archive::restore(state), std::invalid_argument);
  state = good;
  state.trees[0].weights.clear();
  CHECK_THROWS(Archive::restore(state), std::invalid_argument);
  state = good;
  state.trees[0].rng = {};
  CHECK_THROWS(Archive::restore(state), std::invalid_argument);
}

}  // namespace

int main() {
  test_threads_and_resuming_change_nothing();
  test_rejected_calls_change_nothing();
  test_options_are_checked();
  test_an_empty_forest_predicts_nothing_yet();
  test_damaged_states();
  return testing::finish();
}
