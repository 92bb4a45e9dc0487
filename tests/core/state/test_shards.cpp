// Parts of a forest: what they learn, say together as the whole would, and refuse.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "check.hpp"
#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"
#include "state/archive.hpp"
#include "state/invariants.hpp"

using namespace onlineforest;

namespace {

constexpr std::size_t kFeatures = 3, kTrees = 13;
constexpr std::int32_t kClasses = 5;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class Value>
struct Data {
  std::vector<float> rows;
  std::vector<Value> values;
};

// Points whose values can be learned; some of what is to know about them is missing.
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

void learn(LabelForest& forest, const Data<Label>& data) { forest.learn(data.rows, data.values, kClasses, 1); }

void learn(GaussianForest& forest, const Data<double>& data) { forest.learn(data.rows, data.values, 1); }

Laws joined(std::span<const Laws> of_parts) {
  std::vector<Law> rows(of_parts.front().ends.size());
  Law law;
  for (const Laws& laws : of_parts) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      laws.copy(i, law);
      for (std::size_t k = 0; k < law.components.size(); ++k) {
        rows[i].add(law.components[k], static_cast<std::size_t>(law.completion_of[k]));
      }
    }
  }
  return Laws::of_rows(std::move(rows));
}

template <class Forest>
struct Parts {
  std::vector<std::unique_ptr<Forest>> each;

  explicit Parts(std::initializer_list<std::size_t> ends) {
    auto options = whole_options<Forest>();
    for (std::size_t begin = 0; const std::size_t end : ends) {
      options.held = TreeRange{begin, end};
      each.push_back(std::make_unique<Forest>(options));
      begin = end;
    }
  }

  // What prediction_terms(part) of the parts adds up to, as finish(a part, sums) finishes it.
  template <class TermsOf, class Finish>
  std::vector<double> together(TermsOf terms_of_part, Finish finish) const {
    std::vector<Terms> said;
    std::vector<Term> terms;
    std::vector<const double*> numbers;
    std::size_t n = 0, n_grown = 0;
    for (const auto& part : each) said.push_back(terms_of_part(*part));
    for (std::size_t i = 0; i < each.size(); ++i) {
      const std::vector<Term> own = terms_of(each[i]->options().trees_held(), kTrees);
      n = said[i].numbers.size() / own.size();
      for (std::size_t k = 0; k < own.size(); ++k) numbers.push_back(said[i].numbers.data() + k * n);
      terms.insert(terms.end(), own.begin(), own.end());
      n_grown += said[i].n_grown;
    }
    const std::vector<double> sums = add_terms(terms, numbers, n);
    return finish(*each.back(), TreeSums{sums, n_grown});
  }

  std::vector<double> predict(std::span<const float> rows) const {
    return together([&](const Forest& part) { return part.predict_terms(rows, 2); },
                    [&](const Forest& part, const TreeSums& sums) { return part.predict_from(rows, sums); });
  }

  std::vector<double> novelty(std::span<const float> rows) const {
    return together([&](const Forest& part) { return part.novelty_terms(rows, 2); },
                    [&](const Forest& part, const TreeSums& sums) { return part.novelty_from(rows, sums); });
  }

  Laws laws(std::span<const float> rows) const {
    std::vector<Laws> of_parts;
    for (const auto& part : each) of_parts.push_back(part->laws(rows, 2));
    return joined(of_parts);
  }
};

void calibrate(Parts<LabelForest>&) {}

// Brings the parts the calibration of the whole, if they have left points out. Returns whether they had.
bool calibrate(Parts<GaussianForest>& parts) {
  std::vector<Laws> laws;
  std::vector<double> residuals;
  for (const auto& part : parts.each) {
    std::optional<LeftOut> left_out = part->take_left_out();
    CHECK(!part->take_left_out());
    if (!left_out) continue;
    CHECK(residuals.empty() || residuals == left_out->residuals);
    residuals = left_out->residuals;
    laws.push_back(std::move(left_out->laws));
  }
  CHECK(laws.empty() || laws.size() == parts.each.size());
  if (laws.empty()) return false;
  StopSignal signal({});
  const Calibration calibration = calibration_from({residuals, joined(laws)}, 1, signal);
  for (const auto& part : parts.each) part->set_calibration(calibration);
  return true;
}

void check_kind(const LabelForest&, const Parts<LabelForest>&, const Data<Label>&) {}

void check_kind(const GaussianForest& whole, const Parts<GaussianForest>& parts, const Data<double>& data) {
  const std::vector<double> levels{0.01, 0.5, 0.9};
  const Laws laws = parts.laws(data.rows);
  CHECK(whole.calibration().levels == parts.each.front()->calibration().levels);
  CHECK(whole.quantiles(data.rows, levels, 1) == parts.each.front()->quantiles_from(data.rows, levels, laws, 2));
  CHECK(whole.log_density(data.rows, data.values, 1) ==
        parts.each.front()->log_density_from(data.rows, data.values, laws, 2));
}

template <class Forest>
void check_as_whole(const Forest& whole, const Parts<Forest>& parts, const Data<typename Forest::Value>& data) {
  CHECK(parts.predict(data.rows) == whole.predict(data.rows, 1));
  CHECK(parts.novelty(data.rows) == whole.novelty(data.rows, 1));
  check_kind(whole, parts, data);
}

template <class Forest>
void test_parts_are_the_whole() {
  using Value = typename Forest::Value;
  const auto asked = random_data<Value>(150, 99);
  const Data<Value> nothing;
  Forest whole(whole_options<Forest>());
  Parts<Forest> parts({4, 5, 11, 13});
  for (std::uint64_t batch = 0; batch < 9; ++batch) {
    const auto data = random_data<Value>(batch < 2 ? 3 : 100, batch);
    learn(whole, data);
    for (const auto& part : parts.each) learn(*part, data);
    calibrate(parts);
    check_as_whole(whole, parts, asked);
    check_as_whole(whole, parts, nothing);
    if (batch == 5) {  // one that was saved learns on as if it had not been
      auto state = Archive<Forest>::save(*parts.each[2]);
      CHECK(state.options.held == (TreeRange{5, 11}) && state.trees.size() == 6);
      parts.each[2] = Archive<Forest>::restore(state);
      state.options.held = TreeRange{5, 12};
      CHECK_THROWS(Archive<Forest>::restore(state), std::invalid_argument);
    }
  }
  for (const auto& part : parts.each) {
    check_invariants(*part);
    CHECK(part->n_points() == 500);
  }
  // It is the trees of the whole that they hold.
  const std::size_t n = asked.values.size();
  const auto all = whole.apply(asked.rows, 1), some = parts.each[2]->apply(asked.rows, 1);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t t = 0; t < 6; ++t) CHECK(some[6 * i + t] == all[kTrees * i + 5 + t]);
  }
}

template <class Forest>
void test_what_is_no_part() {
  const auto make = [](std::size_t begin, std::size_t end) {
    auto options = whole_options<Forest>();
    options.held = TreeRange{begin, end};
    return Forest(options).options().trees_held().size();
  };
  CHECK(make(0, kTrees) == kTrees && make(kTrees - 1, kTrees) == 1);
  CHECK_THROWS(make(4, 4), std::invalid_argument);
  CHECK_THROWS(make(5, 4), std::invalid_argument);
  CHECK_THROWS(make(12, kTrees + 1), std::invalid_argument);
  CHECK_THROWS(make(kTrees, kTrees + 1), std::invalid_argument);
}

template <class Forest>
void test_sums_of_other_rows() {
  const auto data = random_data<typename Forest::Value>(60, 1);
  Parts<Forest> parts({kTrees});
  learn(*parts.each[0], data);
  const Terms terms = parts.each[0]->novelty_terms(data.rows, 1);
  for (const std::size_t n : {std::size_t{0}, terms.numbers.size() - 1, terms.numbers.size() + 1}) {
    const std::vector<double> sums(n);
    CHECK_THROWS(parts.each[0]->novelty_from(data.rows, {sums, kTrees}), std::invalid_argument);
    CHECK_THROWS(parts.each[0]->predict_from(data.rows, {sums, kTrees}), std::invalid_argument);
  }
}

// Rows to which much is missing take long to complete.
template <class Forest>
void test_finishing_can_be_stopped() {
  const auto data = random_data<typename Forest::Value>(600, 1, 0.0);
  const std::size_t n = 200'000;
  std::vector<float> rows;
  for (std::size_t i = 0; i < n; ++i) rows.insert(rows.end(), {kNan, 0.5f, 0.5f});
  Parts<Forest> parts({6, kTrees});
  learn(*parts.each[0], data);
  const std::vector<double> sums(n * 8 * (kClasses + 1));
  CHECK_THROWS(parts.each[0]->novelty_from(rows, {sums, kTrees}, [] { return true; }), Interrupted);
  CHECK_THROWS(parts.each[0]->predict_from(rows, {sums, kTrees}, [] { return true; }), Interrupted);
}

void test_parts_that_have_learned_nothing() {
  const auto asked = random_data<Label>(20, 1);
  const LabelForest whole(whole_options<LabelForest>());
  const Parts<LabelForest> parts({4, kTrees});
  CHECK(parts.novelty(asked.rows) == whole.novelty(asked.rows, 1));
  CHECK(parts.predict(asked.rows).empty() && whole.predict(asked.rows, 1).empty());
  const Parts<GaussianForest> of_numbers({4, kTrees});
  CHECK_THROWS(of_numbers.each[0]->predict_terms(asked.rows, 1), std::invalid_argument);
  CHECK_THROWS(of_numbers.each[0]->laws(asked.rows, 1), std::invalid_argument);
}

// If the trees of all parts are empty, as a call that was stopped may leave them, no class is likelier than others.
void test_parts_without_trees() {
  const auto data = random_data<Label>(60, 1);
  Parts<LabelForest> parts({4, kTrees});
  learn(*parts.each[0], data);
  const std::vector<double> sums(data.values.size() * 8 * (kClasses + 1));
  const std::size_t n = parts.each[0]->novelty_terms(data.rows, 1).numbers.size();
  const auto even = parts.each[0]->predict_from(data.rows, {std::span(sums).first(n * (kClasses + 1)), 0});
  CHECK(even.size() == data.values.size() * kClasses);
  CHECK(std::ranges::count(even, 1.0 / kClasses) == static_cast<std::ptrdiff_t>(even.size()));
}

void test_laws_of_other_rows() {
  const auto data = random_data<double>(300, 1);
  Parts<GaussianForest> parts({kTrees});
  const GaussianForest& forest = *parts.each[0];
  learn(*parts.each[0], data);
  const std::vector<double> levels{0.5};
  const Laws sound = forest.laws(data.rows, 1);
  const auto rejected = [&](auto change) {
    Laws laws = sound;
    change(laws);
    CHECK_THROWS(forest.quantiles_from(data.rows, levels, laws, 2), std::invalid_argument);
    CHECK_THROWS(forest.log_density_from(data.rows, data.values, laws, 2), std::invalid_argument);
  };
  CHECK(forest.quantiles_from(data.rows, levels, sound, 1) == forest.quantiles(data.rows, levels, 1));
  rejected([](Laws& laws) { laws.ends.pop_back(); });
  rejected([](Laws& laws) { laws.ends.push_back(laws.ends.back()); });
  rejected([](Laws& laws) { laws.ends.back() += 1; });
  rejected([](Laws& laws) { laws.ends[4] = laws.ends[5] + 1; });
  rejected([](Laws& laws) { laws.ends[4] = std::numeric_limits<std::uint64_t>::max(); });
  rejected([](Laws& laws) { laws.means.pop_back(); });
  rejected([](Laws& laws) { laws.variances.pop_back(); });
  rejected([](Laws& laws) { laws.completion_of.pop_back(); });
  rejected([](Laws& laws) { laws.completion_of.front() = -1; });
  rejected([](Laws& laws) { laws.completion_of.front() = 8; });
  for (const double bad : {std::nan(""), kInfinity, -1.0}) {
    rejected([bad](Laws& laws) { laws.masses.front() = bad; });
    rejected([bad](Laws& laws) { laws.variances.front() = bad; });
  }
  rejected([](Laws& laws) { laws.variances.front() = 0.0; });
  for (const double bad : {std::nan(""), -kInfinity}) rejected([bad](Laws& laws) { laws.means.front() = bad; });
}

// Nothing that is no number gets into a calibration, nor does it look for the best of none.
void test_left_out_that_makes_no_calibration() {
  const auto data = random_data<double>(600, 1);
  Parts<GaussianForest> parts({6, kTrees});
  learn(*parts.each[0], data);
  const LeftOut sound = parts.each[0]->take_left_out().value();
  StopSignal signal({});
  CHECK(calibration_from(sound, 1, signal).levels.size() == sound.residuals.size());
  const auto rejected = [&](auto change) {
    LeftOut left_out = sound;
    change(left_out);
    StopSignal own_signal({});
    CHECK_THROWS(calibration_from(left_out, 2, own_signal), std::invalid_argument);
  };
  rejected([](LeftOut& left_out) { left_out = {}; });
  rejected([](LeftOut& left_out) { left_out.residuals.pop_back(); });
  rejected([](LeftOut& left_out) { left_out.residuals[3] = std::nan(""); });
  rejected([](LeftOut& left_out) { left_out.residuals[3] = kInfinity; });
  rejected([](LeftOut& left_out) { left_out.laws.means[3] = std::nan(""); });
  rejected([](LeftOut& left_out) { left_out.laws.ends[3] = left_out.laws.ends[2]; });  // no law
  rejected([](LeftOut& left_out) {
    for (std::size_t i = 0; i < left_out.laws.ends[0]; ++i) left_out.laws.masses[i] = 0.0;
  });
  const auto refused = [&](const Calibration& calibration) {
    CHECK_THROWS(parts.each[0]->set_calibration(calibration), std::invalid_argument);
  };
  refused({0.0, 0.0, {}});
  refused({1.0, -1.0, {}});
  refused({std::nan(""), 0.0, {}});
  refused({1.0, 0.0, {0.5, 0.4}});
  refused({1.0, 0.0, {0.5, 1.5}});
  CHECK(parts.each[0]->calibration().scale == 1.0);
}

// What was left out is no part of a state: a part that still waits for its calibration leaves it out anew.
void test_a_part_saved_while_it_waits_for_its_calibration() {
  const auto data = random_data<double>(600, 1), more = random_data<double>(1, 2);
  for (const bool takes : {false, true}) {
    GaussianForest whole(whole_options<GaussianForest>());
    Parts<GaussianForest> parts({6, kTrees});
    learn(whole, data);
    for (const auto& part : parts.each) {
      learn(*part, data);
      if (takes) CHECK(part->take_left_out().has_value());
    }
    for (auto& part : parts.each) part = Archive<GaussianForest>::restore(Archive<GaussianForest>::save(*part));
    learn(whole, more);
    for (const auto& part : parts.each) learn(*part, more);
    CHECK(calibrate(parts));
    check_as_whole(whole, parts, random_data<double>(50, 3));
    // And not once it is calibrated.
    for (auto& part : parts.each) part = Archive<GaussianForest>::restore(Archive<GaussianForest>::save(*part));
    for (const auto& part : parts.each) learn(*part, more);
    CHECK(!calibrate(parts));
  }
}

}  // namespace

int main() {
  test_parts_are_the_whole<LabelForest>();
  test_parts_are_the_whole<GaussianForest>();
  test_what_is_no_part<LabelForest>();
  test_what_is_no_part<GaussianForest>();
  test_sums_of_other_rows<LabelForest>();
  test_sums_of_other_rows<GaussianForest>();
  test_finishing_can_be_stopped<LabelForest>();
  test_finishing_can_be_stopped<GaussianForest>();
  test_parts_that_have_learned_nothing();
  test_parts_without_trees();
  test_laws_of_other_rows();
  test_left_out_that_makes_no_calibration();
  test_a_part_saved_while_it_waits_for_its_calibration();
  return testing::finish();
}
