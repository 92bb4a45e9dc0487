// Tests shards: together they predict what the whole forest predicts, and they reject inconsistent terms and mixtures.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "data.hpp"
#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"
#include "state/archive.hpp"
#include "state/invariants.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

constexpr std::size_t kFeatures = 3, kTrees = 13;
constexpr std::int32_t kClasses = 5;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using testing::Data;

// Points whose values depend on feature 0; a share `missing` of the cells is missing.
template <class Value>
Data<Value> random_data(std::size_t n, std::uint64_t seed, double missing = 0.1) {
  Rng rng(seed, 0);
  Data<Value> data;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = rng.uniform();
    for (std::size_t d = 0; d < kFeatures; ++d) {
      const double value = d == 0 ? x : rng.uniform();
      data.rows.push_back(rng.uniform() < missing ? kNan : static_cast<float>(value));
    }
    data.values.push_back(static_cast<Value>(kClasses * (0.8 * x + 0.2 * rng.uniform())));
  }
  return data;
}

void set_kind(LabelOptions& options) { options.learns_leaf_discount = true; }

void set_kind(GaussianOptions& options) {
  options.learns_discount = options.learns_noise = true;
  options.has_trend = options.calibrates = true;
}

template <class Forest>
typename Forest::Options whole_options() {
  typename Forest::Options options;
  options.n_trees = kTrees;
  options.n_features = kFeatures;
  options.weight_rule = WeightRule::kLearned;
  options.seed = 3;
  options.keep = {KeepRule::kLatest, 500, kInfinity};
  set_kind(options);
  return options;
}

template <class Forest>
void learn(Forest& forest, const Data<typename Forest::Value>& data) {
  testing::learn(forest, data, kClasses);
}

Mixtures joined(std::span<const Mixtures> of_shards) {
  std::vector<RowMixture> rows(of_shards.front().ends.size());
  RowMixture mixture;
  for (const Mixtures& mixtures : of_shards) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      mixtures.copy(i, mixture);
      for (std::size_t k = 0; k < mixture.components.size(); ++k) {
        rows[i].add(mixture.components[k], static_cast<std::size_t>(mixture.completion_of[k]));
      }
    }
  }
  return Mixtures::of_rows(std::move(rows));
}

template <class Forest>
struct Shards {
  std::vector<std::unique_ptr<Forest>> each;

  explicit Shards(std::initializer_list<std::size_t> ends) {
    auto options = whole_options<Forest>();
    for (std::size_t begin = 0; const std::size_t end : ends) {
      options.held = TreeRange{begin, end};
      each.push_back(std::make_unique<Forest>(options));
      begin = end;
    }
  }

  // Adds up the terms that terms_of_shard(shard) gives, and returns finish(last shard, sums).
  template <class TermsOf, class Finish>
  std::vector<double> together(TermsOf terms_of_shard, Finish finish) const {
    std::vector<Terms> answers;
    std::vector<Term> terms;
    std::vector<const double*> numbers;
    std::size_t n = 0, n_grown = 0;
    for (const auto& shard : each) answers.push_back(terms_of_shard(*shard));
    for (std::size_t i = 0; i < each.size(); ++i) {
      const std::vector<Term> own = terms_of(each[i]->options().trees_held(), kTrees);
      n = answers[i].numbers.size() / own.size();
      for (std::size_t k = 0; k < own.size(); ++k) numbers.push_back(answers[i].numbers.data() + k * n);
      terms.insert(terms.end(), own.begin(), own.end());
      n_grown += answers[i].n_grown;
    }
    const std::vector<double> sums = add_terms(terms, numbers, n);
    return finish(*each.back(), TreeSums{sums, n_grown});
  }

  std::vector<double> predict(std::span<const float> rows) const {
    return together(
        [&](const Forest& shard) { return shard.terms(Quantity::kPrediction, rows, Call(2)); },
        [&](const Forest& shard, const TreeSums& sums) { return shard.finish(Quantity::kPrediction, rows, sums); });
  }

  std::vector<double> novelty(std::span<const float> rows) const {
    return together(
        [&](const Forest& shard) { return shard.terms(Quantity::kNovelty, rows, Call(2)); },
        [&](const Forest& shard, const TreeSums& sums) { return shard.finish(Quantity::kNovelty, rows, sums); });
  }

  Mixtures mixtures(std::span<const float> rows) const {
    std::vector<Mixtures> of_shards;
    for (const auto& shard : each) of_shards.push_back(shard->mixtures(rows, Call(2)));
    return joined(of_shards);
  }
};

void calibrate(Shards<LabelForest>&) {}

// Calibrates all shards as the whole forest, if they have left-out predictions. Returns whether they have.
bool calibrate(Shards<GaussianForest>& shards) {
  std::vector<Mixtures> mixtures;
  std::vector<double> residuals;
  std::vector<Weight> weights;
  for (const auto& shard : shards.each) {
    std::optional<LeftOut> left_out = shard->take_left_out();
    CHECK(!shard->take_left_out());
    if (!left_out) continue;
    CHECK((residuals.empty() || residuals == left_out->residuals));
    residuals = left_out->residuals;
    weights = left_out->weights;
    mixtures.push_back(std::move(left_out->mixtures));
  }
  CHECK((mixtures.empty() || mixtures.size() == shards.each.size()));
  if (mixtures.empty()) return false;
  const Calibration calibration = calibration_from({residuals, joined(mixtures), weights}, Call(1));
  for (const auto& shard : shards.each) shard->set_calibration(calibration);
  return true;
}

void check_kind(const LabelForest&, const Shards<LabelForest>&, const Data<Label>&) {}

void check_kind(const GaussianForest& whole, const Shards<GaussianForest>& shards, const Data<double>& data) {
  const std::vector<double> levels{0.01, 0.5, 0.9};
  const Mixtures mixtures = shards.mixtures(data.rows);
  CHECK(whole.calibration().levels == shards.each.front()->calibration().levels);
  CHECK(whole.quantiles(data.rows, levels, Call(1)) ==
        shards.each.front()->quantiles(data.rows, levels, Call(2), &mixtures));
  CHECK(whole.log_density(data.rows, data.values, Call(1)) ==
        shards.each.front()->log_density(data.rows, data.values, Call(2), &mixtures));
}

template <class Forest>
void check_as_whole(const Forest& whole, const Shards<Forest>& shards, const Data<typename Forest::Value>& data) {
  CHECK(shards.predict(data.rows) == whole.predict(data.rows, Call(1)));
  CHECK(shards.novelty(data.rows) == whole.novelty(data.rows, Call(1)));
  check_kind(whole, shards, data);
}

TEST_CASE_TEMPLATE("shards together predict what the whole forest predicts", Forest, LabelForest, GaussianForest) {
  using Value = typename Forest::Value;
  const auto asked = random_data<Value>(150, 99);
  const Data<Value> nothing;
  Forest whole(whole_options<Forest>());
  Shards<Forest> shards({4, 5, 11, 13});
  for (std::uint64_t batch = 0; batch < 9; ++batch) {
    const auto data = random_data<Value>(batch < 2 ? 3 : 100, batch);
    learn(whole, data);
    for (const auto& shard : shards.each) learn(*shard, data);
    calibrate(shards);
    check_as_whole(whole, shards, asked);
    check_as_whole(whole, shards, nothing);
    if (batch == 5) {  // a restored shard learns on like the saved one
      auto state = Archive<Forest>::save(*shards.each[2]);
      CHECK(state.options.held == (TreeRange{5, 11}));
      CHECK(state.trees.size() == 6);
      shards.each[2] = Archive<Forest>::restore(state);
      state.options.held = TreeRange{5, 12};
      CHECK_THROWS_AS(Archive<Forest>::restore(state), std::invalid_argument);
    }
  }
  for (const auto& shard : shards.each) {
    check_invariants(*shard);
    CHECK(shard->n_points() == 500);
  }
  // Shards hold the trees of the whole.
  const std::size_t n = asked.values.size();
  const auto all = whole.apply(asked.rows, Call(1)), some = shards.each[2]->apply(asked.rows, Call(1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t t = 0; t < 6; ++t) CHECK(some[6 * i + t] == all[kTrees * i + 5 + t]);
  }
}

TEST_CASE_TEMPLATE("an empty or out-of-range set of trees is no shard", Forest, LabelForest, GaussianForest) {
  const auto make = [](std::size_t begin, std::size_t end) {
    auto options = whole_options<Forest>();
    options.held = TreeRange{begin, end};
    return Forest(options).options().trees_held().size();
  };
  CHECK(make(0, kTrees) == kTrees);
  CHECK(make(kTrees - 1, kTrees) == 1);
  CHECK_THROWS_AS(make(4, 4), std::invalid_argument);
  CHECK_THROWS_AS(make(5, 4), std::invalid_argument);
  CHECK_THROWS_AS(make(12, kTrees + 1), std::invalid_argument);
  CHECK_THROWS_AS(make(kTrees, kTrees + 1), std::invalid_argument);
}

TEST_CASE_TEMPLATE("sums of another length than the rows need are rejected", Forest, LabelForest, GaussianForest) {
  const auto data = random_data<typename Forest::Value>(60, 1);
  Shards<Forest> shards({kTrees});
  learn(*shards.each[0], data);
  const Terms terms = shards.each[0]->terms(Quantity::kNovelty, data.rows, Call(1));
  for (const std::size_t n : {std::size_t{0}, terms.numbers.size() - 1, terms.numbers.size() + 1}) {
    const std::vector<double> sums(n);
    CHECK_THROWS_AS(shards.each[0]->finish(Quantity::kNovelty, data.rows, {sums, kTrees}), std::invalid_argument);
    CHECK_THROWS_AS(shards.each[0]->finish(Quantity::kPrediction, data.rows, {sums, kTrees}), std::invalid_argument);
  }
}

// Completing rows with missing values takes long.
TEST_CASE_TEMPLATE("finishing a prediction from sums can be stopped", Forest, LabelForest, GaussianForest) {
  const auto data = random_data<typename Forest::Value>(600, 1, 0.0);
  const std::size_t n = 200'000;
  std::vector<float> rows;
  for (std::size_t i = 0; i < n; ++i) rows.insert(rows.end(), {kNan, 0.5f, 0.5f});
  Shards<Forest> shards({6, kTrees});
  learn(*shards.each[0], data);
  const std::vector<double> sums(n * 8 * (kClasses + 1));
  CHECK_THROWS_AS(shards.each[0]->finish(Quantity::kNovelty, rows, {sums, kTrees}, Call(1, [] { return true; })),
                  Interrupted);
  CHECK_THROWS_AS(shards.each[0]->finish(Quantity::kPrediction, rows, {sums, kTrees}, Call(1, [] { return true; })),
                  Interrupted);
}

TEST_CASE("shards that have learned nothing predict as an empty forest") {
  const auto asked = random_data<Label>(20, 1);
  const LabelForest whole(whole_options<LabelForest>());
  const Shards<LabelForest> shards({4, kTrees});
  CHECK(shards.novelty(asked.rows) == whole.novelty(asked.rows, Call(1)));
  CHECK(shards.predict(asked.rows).empty());
  CHECK(whole.predict(asked.rows, Call(1)).empty());
  const Shards<GaussianForest> of_numbers({4, kTrees});
  CHECK_THROWS_AS(of_numbers.each[0]->terms(Quantity::kPrediction, asked.rows, Call(1)), std::invalid_argument);
  CHECK_THROWS_AS(of_numbers.each[0]->mixtures(asked.rows, Call(1)), std::invalid_argument);
}

// A call that was stopped may leave all trees empty.
TEST_CASE("shards whose trees are all empty predict uniform probabilities") {
  const auto data = random_data<Label>(60, 1);
  Shards<LabelForest> shards({4, kTrees});
  learn(*shards.each[0], data);
  const std::vector<double> sums(data.values.size() * 8 * (kClasses + 1));
  const std::size_t n = shards.each[0]->terms(Quantity::kNovelty, data.rows, Call(1)).numbers.size();
  const auto even =
      shards.each[0]->finish(Quantity::kPrediction, data.rows, {std::span(sums).first(n * (kClasses + 1)), 0});
  CHECK(even.size() == data.values.size() * kClasses);
  CHECK(std::ranges::count(even, 1.0 / kClasses) == static_cast<std::ptrdiff_t>(even.size()));
}

TEST_CASE("inconsistent mixtures are rejected") {
  const auto data = random_data<double>(300, 1);
  Shards<GaussianForest> shards({kTrees});
  const GaussianForest& forest = *shards.each[0];
  learn(*shards.each[0], data);
  const std::vector<double> levels{0.5};
  const Mixtures sound = forest.mixtures(data.rows, Call(1));
  const auto rejected = [&](auto change) {
    Mixtures mixtures = sound;
    change(mixtures);
    CHECK_THROWS_AS(forest.quantiles(data.rows, levels, Call(2), &mixtures), std::invalid_argument);
    CHECK_THROWS_AS(forest.log_density(data.rows, data.values, Call(2), &mixtures), std::invalid_argument);
  };
  CHECK(forest.quantiles(data.rows, levels, Call(1), &sound) == forest.quantiles(data.rows, levels, Call(1)));
  rejected([](Mixtures& mixtures) { mixtures.ends.pop_back(); });
  rejected([](Mixtures& mixtures) { mixtures.ends.push_back(mixtures.ends.back()); });
  rejected([](Mixtures& mixtures) { mixtures.ends.back() += 1; });
  rejected([](Mixtures& mixtures) { mixtures.ends[4] = mixtures.ends[5] + 1; });
  rejected([](Mixtures& mixtures) { mixtures.ends[4] = std::numeric_limits<std::uint64_t>::max(); });
  rejected([](Mixtures& mixtures) { mixtures.means.pop_back(); });
  rejected([](Mixtures& mixtures) { mixtures.variances.pop_back(); });
  rejected([](Mixtures& mixtures) { mixtures.completion_of.pop_back(); });
  rejected([](Mixtures& mixtures) { mixtures.completion_of.front() = -1; });
  rejected([](Mixtures& mixtures) { mixtures.completion_of.front() = 8; });
  for (const double bad : {std::nan(""), kInfinity, -1.0}) {
    rejected([bad](Mixtures& mixtures) { mixtures.masses.front() = bad; });
    rejected([bad](Mixtures& mixtures) { mixtures.variances.front() = bad; });
  }
  rejected([](Mixtures& mixtures) { mixtures.variances.front() = 0.0; });
  for (const double bad : {std::nan(""), -kInfinity})
    rejected([bad](Mixtures& mixtures) { mixtures.means.front() = bad; });
}

TEST_CASE("left-out predictions and calibrations that are not finite are rejected") {
  const auto data = random_data<double>(600, 1);
  Shards<GaussianForest> shards({6, kTrees});
  learn(*shards.each[0], data);
  const LeftOut sound = shards.each[0]->take_left_out().value();
  CHECK(calibration_from(sound, Call(1)).levels.size() == sound.residuals.size());
  const auto rejected = [&](auto change) {
    LeftOut left_out = sound;
    change(left_out);
    CHECK_THROWS_AS(calibration_from(left_out, Call(2)), std::invalid_argument);
  };
  rejected([](LeftOut& left_out) { left_out = {}; });
  rejected([](LeftOut& left_out) { left_out.residuals.pop_back(); });
  rejected([](LeftOut& left_out) { left_out.residuals[3] = std::nan(""); });
  rejected([](LeftOut& left_out) { left_out.residuals[3] = kInfinity; });
  rejected([](LeftOut& left_out) { left_out.weights.assign(1, kOne); });
  rejected([](LeftOut& left_out) { left_out.weights.assign(left_out.residuals.size(), 0); });
  rejected([](LeftOut& left_out) { left_out.mixtures.means[3] = std::nan(""); });
  rejected([](LeftOut& left_out) { left_out.mixtures.ends[3] = left_out.mixtures.ends[2]; });  // an empty mixture
  rejected([](LeftOut& left_out) {
    for (std::size_t i = 0; i < left_out.mixtures.ends[0]; ++i) left_out.mixtures.masses[i] = 0.0;
  });
  const auto refused = [&](const Calibration& calibration) {
    CHECK_THROWS_AS(shards.each[0]->set_calibration(calibration), std::invalid_argument);
  };
  refused({0.0, 0.0, {}});
  refused({1.0, -1.0, {}});
  refused({std::nan(""), 0.0, {}});
  refused({1.0, 0.0, {0.5, 0.4}});
  refused({1.0, 0.0, {0.5, 1.5}});
  CHECK(shards.each[0]->calibration().scale == 1.0);
}

// A state does not hold left-out predictions, so a shard that is not calibrated computes them again after restoring.
TEST_CASE("a shard saved before it is calibrated leaves points out again once restored") {
  const auto data = random_data<double>(600, 1), more = random_data<double>(1, 2);
  for (const bool takes : {false, true}) {
    GaussianForest whole(whole_options<GaussianForest>());
    Shards<GaussianForest> shards({6, kTrees});
    learn(whole, data);
    for (const auto& shard : shards.each) {
      learn(*shard, data);
      if (takes) CHECK(shard->take_left_out().has_value());
    }
    for (auto& shard : shards.each) shard = Archive<GaussianForest>::restore(Archive<GaussianForest>::save(*shard));
    learn(whole, more);
    for (const auto& shard : shards.each) learn(*shard, more);
    CHECK(calibrate(shards));
    check_as_whole(whole, shards, random_data<double>(50, 3));
    // A calibrated shard does not compute them again.
    for (auto& shard : shards.each) shard = Archive<GaussianForest>::restore(Archive<GaussianForest>::save(*shard));
    for (const auto& shard : shards.each) learn(*shard, more);
    CHECK(!calibrate(shards));
  }
}

}  // namespace
