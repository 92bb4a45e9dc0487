#include "mondrian/process/grouped_rate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

constexpr std::size_t n = 68, n_groups = n / 4;

// A random box and a row that is inside it in about half of the dimensions.
struct Case {
  std::vector<double> weights = std::vector<double>(n);
  std::vector<float> lower = std::vector<float>(n), upper = std::vector<float>(n), row = std::vector<float>(n);

  explicit Case(std::uint64_t seed) {
    Rng rng(seed, 0);
    const auto bound = [&] { return static_cast<float>((rng.uniform() - 0.5) * std::exp(40.0 * rng.uniform())); };
    for (std::size_t d = 0; d < n; ++d) {
      const float a = bound(), b = bound();
      lower[d] = std::min(a, b);
      upper[d] = std::max(a, b);
      row[d] = rng.uniform() < 0.5 ? lower[d] : bound();
      weights[d] = rng.uniform() < 0.1 ? 0.0 : std::exp(80.0 * rng.uniform() - 40.0);
    }
    lower[0] = -std::numeric_limits<float>::max();  // the distance overflows a float
    upper[0] = lower[0];
    row[0] = std::numeric_limits<float>::max();
  }

  BoxView box() const { return {lower.data(), upper.data()}; }
};

struct Result {
  double rate;
  std::vector<std::uint32_t> groups;

  bool operator==(const Result&) const = default;
};

std::vector<std::uint32_t> every_second_group() {
  std::vector<std::uint32_t> groups(n_groups / 2 + 1);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<std::uint32_t>(2 * i);
  return groups;
}

Result result_of(GroupedRate grouped_rate, const Case& data) {
  std::vector<std::uint32_t> groups = every_second_group();
  std::size_t n_left = groups.size();
  const double rate = grouped_rate(data.weights.data(), data.box(), data.row.data(), groups.data(), n_left);
  groups.resize(n_left);
  return {rate, groups};
}

// By the definition, with the order of additions that all instruction sets share.
Result expected_of(const Case& data) {
  double lanes[4] = {};
  std::vector<std::uint32_t> left;
  for (const std::uint32_t group : every_second_group()) {
    bool is_outside = false;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t d = group * 4 + i;
      const double x = data.row[d], low = data.lower[d], high = data.upper[d];
      lanes[i] += data.weights[d] * (x < low ? low - x : x > high ? x - high : 0.0);
      is_outside |= x < low || x > high;
    }
    if (is_outside) left.push_back(group);
  }
  return {(lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), left};
}

}  // namespace

TEST_CASE("each instruction set returns the bits of the definition") {
  CHECK(!grouped_rates().empty());
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case data(seed);
    const Result expected = expected_of(data);
    for (const GroupedRate grouped_rate : grouped_rates()) CHECK(result_of(grouped_rate, data) == expected);
  }
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__SSE2__)
TEST_CASE("a processor with AVX2 uses it") {
  CHECK(grouped_rates().size() == (__builtin_cpu_supports("avx2") ? 2u : 1u));
}
#endif
