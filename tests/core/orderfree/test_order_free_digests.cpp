// Order-free forests have the same bits on all platforms: each compiler, standard library and processor must find the
// digests written here. After a change that is meant to change forests or predictions, take the new ones from the
// message of the test; if trees changed, raise kLaw.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/call.hpp"
#include "base/hash.hpp"
#include "base/rng.hpp"
#include "digest.hpp"
#include "orderfree/labels/forest.hpp"
#include "orderfree/law/layout.hpp"
#include "orderfree/numbers/forest.hpp"
#include "orderfree/worlds.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

constexpr std::size_t kNumeric = 5, kWidth = kNumeric + 2, kSamples = 900, kTrees = 12;
constexpr std::int32_t kLabels = 4;

using testing::Digest;

// Rows, and a number of each that depends on them, by exact or correctly rounded operations.
struct Rows {
  std::vector<float> cells;
  std::vector<double> numbers;
};

Rows draw_rows(std::size_t n, std::uint64_t stream) {
  Rng rng(7, stream);
  Rows rows;
  for (std::size_t i = 0; i < n; ++i) {
    double x[kNumeric];
    for (double& value : x) value = rng.uniform();
    x[3] = static_cast<double>(static_cast<int>(4.0 * x[3]));  // few values, many ties
    x[4] = 1000.0 * x[4] - 300.0;                              // another scale
    const std::uint64_t level = scramble(1 + rng.next() % 6);
    for (std::size_t d = 0; d < kNumeric; ++d) {
      const bool is_missing = rng.uniform() < 0.1;
      rows.cells.push_back(is_missing ? kMissing : static_cast<float>(x[d]));
    }
    rows.cells.push_back(HashCell::of(level));
    rows.cells.push_back(HashCell::of(level >> HashCell::kBits));
    rows.numbers.push_back(x[0] * x[1] - 0.5 * x[2] + 0.25 * x[3] + 0.1 * rng.uniform());
  }
  return rows;
}

std::vector<Label> labels_of(const std::vector<double>& numbers) {
  std::vector<Label> labels;
  for (const double y : numbers) labels.push_back(static_cast<Label>(3.0 * (y + 0.5)) % kLabels);
  return labels;
}

Options options_of(double max_samples, bool calibrates) {
  Options options;
  options.n_trees = kTrees;
  options.layout = {kNumeric + 1, 1};
  options.seed = 11;
  options.max_samples = max_samples;
  options.calibrates = calibrates;
  return options;
}

// Learns most samples at once, the others in batches of different sizes with weights, and forgets some.
template <class Forest>
void learn(Forest& forest, const Rows& rows, const std::vector<typename Forest::Value>& values) {
  const Call call(2);
  const std::span<const float> cells(rows.cells);
  const std::span<const typename Forest::Value> all(values);
  for (std::size_t begin = 0, size = 600; begin < kSamples; begin += size, size = size == 600 ? 1 : size + 7) {
    size = std::min(size, kSamples - begin);
    std::vector<Weight> weights;
    for (std::size_t i = begin; begin > 0 && i < begin + size; ++i) weights.push_back(kOne / 4 * (1 + Weight(i) % 9));
    forest.learn(cells.subspan(begin * kWidth, size * kWidth), all.subspan(begin, size), weights, call);
  }
  std::vector<Serial> gone(80);
  std::iota(gone.begin(), gone.end(), Serial{450});
  forest.forget(gone, call);
  forest.keep_latest(700, call);
}

std::uint64_t digest_of_labels(double max_samples, bool calibrates) {
  const Rows rows = draw_rows(kSamples, 1), queries = draw_rows(100, 2);
  const Call call(2);
  LabelForest forest(options_of(max_samples, calibrates));
  forest.set_labels(label_hashes(kLabels), std::vector<std::uint8_t>(kLabels, 0));
  learn(forest, rows, labels_of(rows.numbers));
  Digest digest;
  LabelCalibration calibration;
  if (calibrates) {
    calibration = find_calibration(forest.left_out_votes(0, kSamples, {0, 1}, call), kTrees).of_all;
    CHECK_FALSE(calibration.is_none());
    digest.add(calibration.power);
    digest.add(calibration.spread);
  }
  digest.add(forest.predict(queries.cells, calibration, call).probabilities);
  digest.add(forest.apply(queries.cells, 0, call));
  digest.add(forest.importances(0, call));
  if (max_samples < 1.0) digest.add(forest.predict_left_out(0, call).probabilities);
  return digest.word();
}

std::uint64_t digest_of_numbers(double max_samples) {
  const Rows rows = draw_rows(kSamples, 1), queries = draw_rows(100, 2);
  const Call call(2);
  NumberForest forest(options_of(max_samples, false));
  learn(forest, rows, rows.numbers);
  Digest digest;
  const auto add = [&digest](const std::vector<TreeMoments>& moments) {
    for (const auto& [mean, within, between] : moments) {
      for (const double number : {mean, within, between}) digest.add(number);
    }
  };
  for (const Weight stop_weight : {Weight{0}, 20 * kOne, 100 * kOne}) {
    add(forest.predict(queries.cells, {stop_weight, 0.0, {}}, call));
  }
  digest.add(forest.apply(queries.cells, 0, call));
  digest.add(forest.importances(0, call));
  if (max_samples < 1.0) add(forest.predict_left_out(0, call).moments);
  return digest.word();
}

TEST_CASE("order-free forests have the same bits on all platforms") {
  CHECK(digest_of_labels(1.0, false) == 0xeb94b93a0d3073fcu);
  CHECK(digest_of_labels(1.0, true) == 0x0e6cfa653a776e3eu);
  CHECK(digest_of_labels(0.6, true) == 0xe0cf94cbd4422621u);
  CHECK(digest_of_numbers(1.0) == 0xf0f430549786c345u);
  CHECK(digest_of_numbers(0.6) == 0x4bafce4847c5f4b9u);
}

}  // namespace
