#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/elementary.hpp"

using namespace onlineforest;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kUlp = std::numeric_limits<double>::epsilon();

// The relative error against `expected`, which the standard library computes with more digits if it can.
double error(double found, long double expected) {
  return static_cast<double>(std::abs((static_cast<long double>(found) - expected) / expected));
}

}  // namespace

TEST_CASE("logarithms") {
  for (double x = 1e-320; x < 1e308; x *= 1.0137) {
    if (x != 1.0) CHECK(error(natural_log(x), std::log(static_cast<long double>(x))) < 2 * kUlp);
  }
  for (double x = 0.5; x < 2.0; x += 1.3e-4) {
    CHECK(error(natural_log(x), std::log(static_cast<long double>(x))) < 2 * kUlp);
  }
  for (double x = 3e-16; x < 0.1; x *= 1.3) {
    for (const double near_1 : {1.0 - x, 1.0 + x}) {
      CHECK(error(natural_log(near_1), std::log(static_cast<long double>(near_1))) < 2 * kUlp);
    }
  }
  CHECK(natural_log(1.0) == 0.0);
  CHECK(natural_log(0.0) == -kInf);
  CHECK(natural_log(kInf) == kInf);
  CHECK(std::isnan(natural_log(-1.0)));
  CHECK(std::isnan(natural_log(kNan)));
}

TEST_CASE("powers of e") {
  for (double x = -708.0; x < 709.7; x += 0.0137) {
    CHECK(error(natural_exp(x), std::exp(static_cast<long double>(x))) < 2 * kUlp);
  }
  for (double x = -745.0; x < -708.0; x += 0.037) {  // subnormal
    CHECK(std::abs(natural_exp(x) - std::exp(x)) <= 2 * std::numeric_limits<double>::denorm_min());
  }
  CHECK(natural_exp(0.0) == 1.0);
  CHECK(natural_exp(-kInf) == 0.0);
  CHECK(natural_exp(-1e300) == 0.0);
  CHECK(natural_exp(kInf) == kInf);
  CHECK(natural_exp(710.0) == kInf);
  CHECK(natural_exp(709.78) < kInf);
  CHECK(std::isnan(natural_exp(kNan)));
}

TEST_CASE("1 less exp(-x)") {
  for (double x = 1e-300; x < 1e3; x *= 1.0037) {
    CHECK(error(one_less_exp_of_minus(x), -std::expm1(-static_cast<long double>(x))) < 3 * kUlp);
  }
  CHECK(one_less_exp_of_minus(0.0) == 0.0);
  CHECK(one_less_exp_of_minus(kInf) == 1.0);
}

TEST_CASE("powers of any number") {
  for (const double p : {0.5, 1.0, 2.0, 3.7}) {
    for (double x = 1e-20; x < 2.0; x *= 1.07) {
      CHECK(error(power_of(x, p), std::pow(static_cast<long double>(x), static_cast<long double>(p))) < 200 * kUlp);
    }
    CHECK(power_of(0.0, p) == 0.0);
    CHECK(power_of(1.0, p) == 1.0);
  }
  CHECK(power_of(0.0, 0.0) == 1.0);
  CHECK(power_of(0.3, 1.0) == 0.3);
}
