// An answer names the labels that are known, and has a probability for each of them.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/call.hpp"
#include "orderfree/labels/forest.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

using Words = std::vector<Word>;

const Words kHashes{40, 10, 30, 20};
const std::vector<float> kRows{0.0f, 1.0f, 2.0f, 3.0f};

// Label 2 is declared; samples have the labels 3 and 0. Label 1 is not known.
std::unique_ptr<LabelForest> some_forest() {
  Options options;
  options.n_trees = 12;
  options.layout = {1, 0};
  options.seed = 5;
  auto forest = std::make_unique<LabelForest>(options);
  forest->set_labels(kHashes, std::vector<std::uint8_t>{0, 0, 1, 0});
  forest->learn(kRows, std::vector<Label>{3, 3, 0, 0}, {}, Call(1));
  return forest;
}

}  // namespace

TEST_CASE("an answer has the known labels in the order of codes") {
  const auto forest = some_forest();
  const LabelForest::Answer plain = forest->predict(kRows, {}, Call(1));
  CHECK(plain.hashes == Words{40, 30, 20});
  REQUIRE(plain.probabilities.size() == 3 * kRows.size());
  for (const LabelCalibration& calibration : {LabelCalibration{}, LabelCalibration{2.5, 0.01}}) {
    const LabelForest::Answer answer = forest->predict(kRows, calibration, Call(1));
    CHECK(answer.hashes == plain.hashes);
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      const auto of_row = std::span(answer.probabilities).subspan(3 * i, 3);
      CHECK(std::accumulate(of_row.begin(), of_row.end(), 0.0) == doctest::Approx(1.0));
      CHECK(of_row[i < 2 ? 2 : 0] > 0.5);  // the label of the sample at this row
      CHECK(of_row[1] < 0.2);              // no sample has the label that is declared
    }
    CHECK(forest->predict(std::span(kRows).subspan(2, 1), calibration, Call(1)).probabilities ==
          std::vector<double>(answer.probabilities.begin() + 6, answer.probabilities.begin() + 9));
  }
}

TEST_CASE("the sums over trees give the same answer") {
  const auto forest = some_forest();
  const auto sums = forest->masses(kRows, 0, Call(1));
  for (const LabelCalibration& calibration : {LabelCalibration{}, LabelCalibration{2.5, 0.01}}) {
    const LabelForest::Answer expected = forest->predict(kRows, calibration, Call(1));
    const LabelForest::Answer answer = forest->finish(sums, 5, {}, calibration);
    CHECK(answer.hashes == expected.hashes);
    CHECK(answer.probabilities == expected.probabilities);
  }
  CHECK_THROWS_AS((void)forest->finish(sums, 4, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS((void)forest->finish(std::span(sums).first(9), 5, {}, {}), std::invalid_argument);
}

TEST_CASE("an answer names labels as they become known and are forgotten") {
  const auto forest = some_forest();
  forest->learn(std::vector<float>{4.0f}, std::vector<Label>{1}, {}, Call(1));
  CHECK(forest->predict(kRows, {}, Call(1)).hashes == kHashes);
  forest->keep_latest(1, Call(1));
  CHECK(forest->predict(kRows, {}, Call(1)).hashes == Words{10, 30});
  forest->keep_latest(0, Call(1));
  const LabelForest::Answer answer = forest->predict(kRows, {}, Call(1));
  CHECK(answer.hashes == Words{30});
  CHECK(answer.probabilities == std::vector<double>(kRows.size(), 1.0));
  forest->set_labels(kHashes, std::vector<std::uint8_t>(4, 0));
  CHECK(forest->predict(kRows, {}, Call(1)).hashes.empty());
  CHECK(forest->predict(kRows, {2.5, 0.01}, Call(1)).probabilities.empty());
}
