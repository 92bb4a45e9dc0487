#include <cmath>
#include <numeric>
#include <set>

#include "base/rng.hpp"
#include "testing.hpp"

using onlineforest::Rng;

namespace {

TEST_CASE("the engine is xoshiro256++") {
  // First outputs for the state 1, 2, 3, 4, computed by hand from the published definition.
  Rng rng(Rng::State{1, 2, 3, 4});
  CHECK(rng.next() == 41943041u);
  CHECK(rng.next() == 58720359u);
  CHECK(rng.next() == 3588806011781223u);
}

TEST_CASE("streams of different seeds and numbers have different states") {
  std::set<std::uint64_t> words;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t stream = 0; stream < 50; ++stream) {
      const Rng rng(seed, stream);
      words.insert(rng.state().begin(), rng.state().end());
    }
  }
  CHECK(words.size() == 20 * 50 * 4);
}

TEST_CASE("exponential draws have mean 1 / rate") {
  Rng rng(1, 0);
  double sum = 0.0;
  const int n = 100'000;
  for (int i = 0; i < n; ++i) sum += rng.exponential(4.0);
  CHECK(std::abs(sum / n - 0.25) < 6 * 0.25 / std::sqrt(n));  // 6 standard errors
  CHECK(rng.exponential(0.0) == onlineforest::kInfinity);
  CHECK(rng.exponential(1e-320) > 0.0);
}

TEST_CASE("an index is chosen in proportion to its weight") {
  Rng rng(2, 0);
  const double weights[] = {0.0, 1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 4.0, 0.0};
  const auto weight = [&](std::size_t i) { return weights[i]; };
  const auto sum = [&](std::size_t begin, std::size_t end) {
    return std::accumulate(weights + begin, weights + end, 0.0);
  };
  int counts[9] = {};
  double rests[9] = {};
  const int n = 40'000;
  for (int i = 0; i < n; ++i) {
    const auto [index, rest] = rng.choose<2>(8.0, 9, sum, weight);  // in blocks of two
    ++counts[index];
    rests[index] += rest;
    CHECK(rest >= 0.0);
    CHECK(rest < weights[index]);
  }
  for (int i = 0; i < 9; ++i) {
    const double p = weights[i] / 8.0;
    CHECK(std::abs(counts[i] - n * p) <= 6 * std::sqrt(n * p * (1 - p)));
    // The rest is uniform, so it can make a second choice.
    if (counts[i] > 0) {
      CHECK(std::abs(rests[i] / counts[i] - weights[i] / 2) < 6 * weights[i] / std::sqrt(12.0 * counts[i]));
    }
  }
  // A total that is too large (rounding) falls back to the last positive weight.
  for (int i = 0; i < 100; ++i) CHECK(rng.choose<2>(1e9, 9, sum, weight).index == 7);
}

TEST_CASE("a location lies in [low, high)") {
  Rng rng(3, 0);
  const float low = 1.0f, next = std::nextafter(low, 2.0f);
  for (int i = 0; i < 1000; ++i) CHECK(rng.location(low, next) == low);
  for (int i = 0; i < 1000; ++i) {
    const float x = rng.location(-3.4e38f, 3.4e38f);
    CHECK(x >= -3.4e38f);
    CHECK(x < 3.4e38f);
  }
  for (int i = 0; i < 100; ++i) CHECK(rng.location(0.0f, 1e-45f) == 0.0f);
}

}  // namespace
