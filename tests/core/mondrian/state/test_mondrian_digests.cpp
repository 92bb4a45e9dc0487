// Mondrian forests have the same bits on every platform: they call no function of the C library that may be rounded
// differently.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "data.hpp"
#include "digest.hpp"
#include "mondrian/forest/forest.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

using testing::Data;
using testing::Digest;

constexpr std::size_t kFeatures = 4;
constexpr std::int32_t kClasses = 4;

// Labels that depend on the rows, by exact or correctly rounded operations.
Data<Label> draw_data(std::size_t n, std::uint64_t stream) {
  Rng rng(7, stream);
  Data<Label> data;
  for (std::size_t i = 0; i < n; ++i) {
    double x[kFeatures];
    for (double& value : x) value = rng.uniform();
    x[3] = static_cast<double>(static_cast<int>(4.0 * x[3]));
    for (const double value : x) data.rows.push_back(static_cast<float>(value));
    data.values.push_back(static_cast<Label>(kClasses * x[0] * x[1] + 0.1 * rng.uniform()));
  }
  return data;
}

std::uint64_t digest_of(WeightRule rule) {
  ForestOptions options;
  options.n_trees = 10;
  options.n_features = kFeatures;
  options.weight_rule = rule;
  options.seed = 11;
  Forest forest(options);
  const auto data = draw_data(300, 1), more = draw_data(40, 2);
  testing::learn(forest, data, kClasses);
  testing::learn(forest, more, kClasses, 2);
  forest.keep_latest(250);
  Digest digest;
  digest.add(forest.predict(draw_data(50, 3).rows));
  digest.add(forest.novelty(draw_data(50, 3).rows));
  digest.add(forest.apply(draw_data(50, 3).rows));
  return digest.word();
}

TEST_CASE("Mondrian forests have the same bits on every platform") {
  CHECK(digest_of(WeightRule::kRange) == 0x3ff4bf1204223a33u);
  CHECK(digest_of(WeightRule::kLearned) == 0x2dff98cc9c839e0eu);
}

}  // namespace
