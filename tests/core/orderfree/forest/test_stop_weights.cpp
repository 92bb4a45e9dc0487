// The stop weights that a forest may choose.
#include <vector>

#include "orderfree/forest/stop_weights.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

TEST_CASE("stop weights double up to a tenth of the total weight") {
  using Weights = std::vector<Weight>;
  CHECK(stop_weights(0, {}) == Weights{0});
  CHECK(stop_weights(100 * kOne - 1, {}) == Weights{0});
  CHECK(stop_weights(100 * kOne, {}) == Weights{0, 10 * kOne});
  CHECK(stop_weights(850 * kOne, {}) == Weights{0, 10 * kOne, 20 * kOne, 40 * kOne, 80 * kOne});
  CHECK(stop_weights(850 * kOne, {10 * kOne, 40 * kOne}) == Weights{10 * kOne, 20 * kOne});
  CHECK(stop_weights(850 * kOne, {64 * kOne}) == Weights{80 * kOne});
  CHECK(stop_weights(850 * kOne, {1, 2}).empty());
}
