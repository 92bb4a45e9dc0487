// Exact sums, summaries and leaves of numbers in order-free trees, against plain code.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "base/exact_sum.hpp"
#include "orderfree/numbers/ledger.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "orderfree/numbers/summary.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

constexpr double kLeast = std::numeric_limits<double>::denorm_min();

double rounded(const ExactSum& sum) {
  const auto [high, low] = sum.rounded();
  return high + low;
}

// Finite doubles of all sizes that a forest takes, with all kinds of bits.
double draw_double(std::mt19937& draw) {
  const double fraction = static_cast<double>(Word{draw()} << 32 | draw());
  const int exponent = static_cast<int>(draw() % 1570) - 1138;  // down to denormals, up to 2^496
  const double x = std::ldexp(fraction, exponent);
  return draw() % 2 == 0 ? x : -x;
}

TEST_CASE("an exact sum does not depend on the order, and what is taken out leaves nothing") {
  std::mt19937 draw(1);
  for (int trial = 0; trial < 200; ++trial) {
    struct Term {
      double x;
      std::int64_t times;
    };
    std::vector<Term> terms;
    for (unsigned n = 1 + draw() % 30; n > 0; --n) {
      terms.push_back(
          {draw_double(draw), static_cast<std::int64_t>(draw() % 4 == 0 ? Word{draw()} << 20 : Word{draw()} % 5)});
    }
    ExactSum sum;
    for (const auto& [x, times] : terms) sum.add(x, times);
    std::ranges::shuffle(terms, draw);
    ExactSum other;
    for (const auto& [x, times] : terms) {
      // In parts, and some of it once more than is left in the end.
      const std::int64_t part = times / 3;
      other.add(x, part);
      other.add(-x, 2);
      other.add(x, times - part);
      other.add(x, 2);
    }
    const auto [high, low] = sum.rounded();
    const auto [other_high, other_low] = other.rounded();
    CHECK(high == other_high);
    CHECK(low == other_low);
    std::ranges::shuffle(terms, draw);
    for (const auto& [x, times] : terms) sum.add(x, -times);
    CHECK(sum.rounded().high == 0.0);
    CHECK(sum.rounded().low == 0.0);
    for (const auto& [x, times] : terms) sum.add(x, times - 1);
    for (const auto& [x, times] : terms) sum.add(x, 1);
    CHECK(rounded(sum) == high + low);
  }
}

TEST_CASE("an exact sum is that of whole numbers") {
  std::mt19937 draw(2);
  for (int trial = 0; trial < 2000; ++trial) {
    // Whole numbers of up to 53 bits, in units of 2^unit: 64-bit integers add them up without rounding.
    const int unit = static_cast<int>(draw() % 1400) - 1074;
    ExactSum sum;
    std::int64_t expected = 0;
    for (unsigned n = 1 + draw() % 20; n > 0; --n) {
      const auto whole = static_cast<std::int64_t>((Word{draw()} << 32 | draw()) >> (11 + draw() % 50));
      const std::int64_t times = static_cast<std::int64_t>(draw() % 40) - 20;
      expected += whole * times;
      sum.add(std::ldexp(static_cast<double>(whole), unit), times);
    }
    // The conversion rounds to nearest, ties to even. Below the normal numbers it is exact, too.
    const double nearest = static_cast<double>(expected);
    if (unit + 64 > -1000 || std::abs(expected) < std::int64_t{1} << 53) {
      CHECK(rounded(sum) == std::ldexp(nearest, unit));
    }
    const auto [high, low] = sum.rounded();
    const auto as_whole = [&](double part) { return static_cast<std::int64_t>(std::ldexp(part, -unit)); };
    CHECK(as_whole(high) + as_whole(low) == expected);
    CHECK(std::abs(high) <= std::abs(std::ldexp(nearest, unit)));
  }
}

TEST_CASE("an exact sum is rounded to nearest") {
  const double ulp = 0x1p-52;
  const auto total = [](std::initializer_list<double> terms) {
    ExactSum sum;
    for (const double x : terms) sum.add(x, 1);
    return rounded(sum);
  };
  CHECK(total({1.0, ulp / 2}) == 1.0);                       // a tie goes to even
  CHECK(total({1.0 + ulp, ulp / 2}) == 1.0 + 2 * ulp);       // here, too
  CHECK(total({1.0, ulp / 2, kLeast}) == 1.0 + ulp);         // a little more than a tie
  CHECK(total({1.0 + ulp, ulp / 2, -kLeast}) == 1.0 + ulp);  // a little less
  CHECK(total({-1.0, -ulp / 2, -kLeast}) == -1.0 - ulp);
  CHECK(total({1e150, 1.0, -1e150}) == 1.0);
  CHECK(total({1e150, kLeast, -1e150}) == kLeast);
  CHECK(total({-kLeast}) == -kLeast);
  CHECK(total({0.1, 0.2, -0.3}) == 0x1p-55);
  CHECK(total({}) == 0.0);
}

TEST_CASE("a sum is added many times") {
  ExactSum sum;
  constexpr std::int64_t most = kMostWeight - 1;
  const double x = std::nextafter(2.0, 1.0);  // all bits are set
  sum.add(x, most);
  CHECK(rounded(sum) == static_cast<double>(most) * x);
  CHECK(sum.rounded(-kWeightBits).high == std::ldexp(sum.rounded().high, -kWeightBits));
  for (int i = 0; i < 1000; ++i) sum.add(1e150, most);
  for (int i = 0; i < 1000; ++i) sum.add(1e150, -most);
  sum.add(x, -most);
  CHECK(rounded(sum) == 0.0);
}

struct Numbered {
  double value;
  std::int64_t weight;
};

// From deviations from the first number, which are exact: the numbers are near each other.
NumberLeaf plain_leaf(const std::vector<Numbered>& numbers) {
  const double first = numbers.front().value;
  double total = 0.0, mean = 0.0, squares = 0.0;
  for (const auto& [value, weight] : numbers) {
    total += static_cast<double>(weight);
    mean += (value - first) * static_cast<double>(weight);
  }
  mean /= total;
  for (const auto& [value, weight] : numbers) {
    const double deviation = value - first - mean;
    squares += deviation * deviation * static_cast<double>(weight);
  }
  return {first + mean, squares / total};
}

TEST_CASE("the error of a product is that of a correct fma") {
  std::mt19937 draw(6);
  int n_errors = 0, n_small = 0;
  for (int trial = 0; trial < 200'000; ++trial) {
    const double a = draw_double(draw), b = trial % 2 == 0 ? draw_double(draw) : std::ldexp(draw_double(draw), -400);
    const double product = a * b, error = error_of_product(a, b, product);
    n_errors += error != 0.0;
    n_small += error != 0.0 && std::abs(product) < 0x1p-900;
    // a b - product, in whole numbers: each factor has two halves, whose products are exact.
    ExactSum sum;
    sum.add(product, -1);
    const auto add_halves = [&](double x, auto use) {
      int exponent = 0;
      const double m = std::frexp(x, &exponent), high = std::ldexp(std::floor(std::ldexp(m, 26) + 0.5), -26);
      use(std::ldexp(high, exponent));
      use(std::ldexp(m - high, exponent));
    };
    if (std::abs(product) > 0x1p-900) {
      add_halves(a, [&](double x) { add_halves(b, [&](double y) { sum.add(x * y, 1); }); });
      CHECK(rounded(sum) == error);
    }
#if defined(__GLIBC__)
    CHECK(std::fma(a, b, -product) == error);
#endif
  }
  CHECK(n_errors > 50'000);
  CHECK(n_small > 1000);
}

TEST_CASE("the sums of a leaf give its mean and variance, whatever came and left") {
  std::mt19937 draw(3);
  const std::array offsets{0.0, 1e9, -3e12, 1e150};
  for (int trial = 0; trial < 400; ++trial) {
    const double offset = offsets[static_cast<std::size_t>(trial) % offsets.size()];
    const double scale = std::ldexp(1.0, offset == 1e150 ? 470 : static_cast<int>(draw() % 20) - 10);
    std::vector<Numbered> numbers;
    for (unsigned n = 2 + draw() % 100; n > 0; --n) {
      numbers.push_back(
          {offset + scale * (static_cast<double>(draw() % 1000) - 500), 1 + static_cast<std::int64_t>(draw() % 4)});
    }
    NumberSums sums, other;
    for (const auto& [value, weight] : numbers) sums.add(value, weight);
    const NumberLeaf expected = plain_leaf(numbers), leaf = sums.leaf();
    INFO("offset " << offset);
    CHECK(std::abs(leaf.mean - expected.mean) <= 1e-15 * std::abs(offset) + 1e-14 * std::sqrt(expected.variance));
    CHECK(leaf.variance == doctest::Approx(expected.variance).scale(0).epsilon(1e-12));
    std::ranges::shuffle(numbers, draw);
    for (int k = 0; k < 20; ++k) other.add(static_cast<double>(k) - 1e140, 3);
    for (const auto& [value, weight] : numbers) other.add(value, weight);
    for (int k = 19; k >= 0; --k) other.add(static_cast<double>(k) - 1e140, -3);
    CHECK(other.leaf().mean == leaf.mean);
    CHECK(other.leaf().variance == leaf.variance);
  }
}

TEST_CASE("the variance of a leaf does not cancel, and does not overflow") {
  const auto leaf_of = [](double a, double b, std::int64_t n) {
    NumberSums sums;
    sums.add(a, n * kOne);
    sums.add(b, n * kOne);
    return sums.leaf();
  };
  CHECK(leaf_of(1e9, 1e9 + 1, 1).variance == 0.25);
  CHECK(leaf_of(1e15, 1e15 + 1, 50'000).variance == 0.25);
  CHECK(leaf_of(1e150, std::nextafter(1e150, 0.0), 7).variance == 0x1p890);  // half the distance, squared
  CHECK(leaf_of(7.0, 7.0, 3).variance == 0.0);
  CHECK(leaf_of(0.1, 0.1, 1'000'003).mean == 0.1);
  CHECK(leaf_of(0.1, 0.1, 1'000'003).variance == 0.0);
  constexpr double most = NumberLedger::kLargest;
  for (const std::int64_t n :
       {std::int64_t{1}, std::int64_t{50'000}, std::int64_t{5'000'000}, kMostWeight / kOne / 2}) {
    CHECK(leaf_of(most, -most, n).mean == 0.0);
    CHECK(leaf_of(most, -most, n).variance == doctest::Approx(most * most));
    CHECK(leaf_of(most, most, n).mean == most);
    CHECK(leaf_of(most, most, n).variance == 0.0);
    CHECK(leaf_of(kLeast, 3 * kLeast, n).mean == 2 * kLeast);
    CHECK(leaf_of(kLeast, 3 * kLeast, n).variance == 0.0);  // less than the least double
  }
}

TEST_CASE("a summary knows whether all numbers are equal, until it is lost") {
  std::mt19937 draw(4);
  int n_lost = 0;
  NumberSummary summary;
  std::vector<double> held;
  for (int step = 0; step < 5000; ++step) {
    if (held.empty() || draw() % 2 == 0) {
      held.push_back(static_cast<double>(draw() % 3));
      summary.add(held.back(), 1);
    } else {
      const std::size_t i = draw() % held.size();
      std::swap(held[i], held.back());
      summary.add(held.back(), -1);
      held.pop_back();
    }
    CHECK(summary.total() == static_cast<std::int64_t>(held.size()));
    if (summary.is_lost()) {
      CHECK(std::ranges::find(held, summary.value()) == held.end());
      summary = {};
      for (const double value : held) summary.add(value, 1);
      ++n_lost;
    }
    if (held.empty()) continue;
    const bool is_pure = std::ranges::all_of(held, [&](double value) { return value == held.front(); });
    CHECK(summary.is_pure() == is_pure);
    if (is_pure) CHECK(summary.value() == held.front());
  }
  CHECK(n_lost > 20);
}

TEST_CASE("a ledger takes numbers up to a bound, without a negative zero") {
  constexpr double most = NumberLedger::kLargest;
  const NumberHashes hashes;
  CHECK(NumberLedger::may_be(most, hashes));
  CHECK(NumberLedger::may_be(-most, hashes));
  for (const double value : {std::nextafter(most, 1e300), -std::nextafter(most, 1e300), 1e308,
                             std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_FALSE(NumberLedger::may_be(value, hashes));
    CHECK_THROWS_AS(NumberLedger::check(std::array{1.0, value}, hashes), std::invalid_argument);
  }
  CHECK_THROWS_WITH(NumberLedger::check(std::array{1.0, -1e200}, hashes),
                    "row 1: value -1e+200 is outside [-1e150, 1e150]");
  NumberLedger::check(std::array{most, -most, 0.0, kLeast}, hashes);
  CHECK(std::bit_cast<Word>(NumberLedger::canonical(-0.0)) == 0);
  CHECK(NumberLedger::canonical(-kLeast) == -kLeast);
}

}  // namespace
