#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/powers.hpp"

using namespace onlineforest;

TEST_CASE("logarithms are those of the standard library, nearly") {
  for (double x = 1e-300; x < 1e300; x *= 1.000917) {
    const double expected = std::log2(x);
    CHECK(std::abs(binary_log(x) - expected) <= 4e-16 * std::abs(expected) + 4e-14);
  }
  for (double x = 0.5; x < 2.0; x += 1e-4) CHECK(std::abs(binary_log(x) - std::log2(x)) <= 4e-14);
  for (int k = -1022; k <= 1023; ++k) CHECK(binary_log(std::ldexp(1.0, k)) == k);
}

TEST_CASE("powers are those of the standard library, nearly") {
  for (double x = -1021.9; x < 1000.0; x += 0.0137) {
    CHECK(std::abs(binary_power(x) / std::exp2(x) - 1.0) <= 2e-14);
  }
  for (int k = -1021; k <= 1023; ++k) CHECK(binary_power(k) == std::ldexp(1.0, k));
}

TEST_CASE("what is too small for a normal number becomes 0") {
  CHECK(binary_power(-1022.0) == 0.0);
  CHECK(binary_power(-1e6) == 0.0);
  CHECK(binary_power(-std::numeric_limits<double>::infinity()) == 0.0);
}
