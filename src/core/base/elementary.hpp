// Elementary functions with the same bits on every processor and with every C library. The standard guarantees that for
// no function, and C libraries do differ. The error of each is a few units in the last place. Must not know what the
// numbers mean. (powers.hpp has a logarithm and a power that are faster and less accurate.)
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/powers.hpp"

namespace onlineforest {

namespace elementary {

// log(2) in two parts. The product of the first and a whole number below 2^20 is exact.
inline constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 1.9082149292705877e-10;

// 2 to the power k, in [-1022, 1023].
[[nodiscard]] constexpr double power_of_two(std::int64_t k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

// exp(x) - 1 for |x| < 0.35.
[[nodiscard]] inline double exp_less_one(double x) {
  // 1 / k! for k = 2, 3, ...
  constexpr std::array terms{1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                             1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                             1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const double x2 = x * x, x4 = x2 * x2;
  const double sum =
      cubic(terms.data(), x, x2) + (cubic(terms.data() + 4, x, x2) * x4 + cubic(terms.data() + 8, x, x2) * (x4 * x4));
  return x + x2 * sum;
}

}  // namespace elementary

// The natural logarithm; -inf of 0, NaN of negative numbers.
[[nodiscard]] inline double natural_log(double x) {
  constexpr std::uint64_t mantissa = (std::uint64_t{1} << 52) - 1;
  if (!(x <= std::numeric_limits<double>::max())) return x;
  std::int64_t k = -1023;
  if (x < std::numeric_limits<double>::min()) {
    if (!(x > 0.0))
      return x < 0.0 ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity();
    x *= 0x1.0p54;  // subnormal
    k -= 54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  k += static_cast<std::int64_t>(bits >> 52);
  double m = std::bit_cast<double>((bits & mantissa) | (std::uint64_t{1023} << 52));  // in [1, 2)
  const bool is_large = m > 1.4142135623730951;  // without a branch, which no processor could predict
  m *= is_large ? 0.5 : 1.0;
  k += is_large ? 1 : 0;
  // log(1 + f) = 2 artanh(s) = 2 s + s (2/3 s² + 2/5 s⁴ + …), where |s| < 0.172; f = 2 s + s f is the largest part of
  // it.
  constexpr std::array terms{2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                             2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25};
  const double f = m - 1.0, s = f / (2.0 + f), z = s * s, z2 = z * z, z4 = z2 * z2;
  const double sum = z * (cubic(terms.data(), z, z2) +
                          (cubic(terms.data() + 4, z, z2) * z4 + cubic(terms.data() + 8, z, z2) * (z4 * z4)));
  const double half = 0.5 * f * f, exponent = static_cast<double>(k);
  return exponent * elementary::kLog2High - ((half - (s * (half + sum) + exponent * elementary::kLog2Low)) - f);
}

// e to the power x.
[[nodiscard]] inline double natural_exp(double x) {
  constexpr double underflow = -746.0, overflow = 709.782712893384;
  if (!(x > underflow)) return std::isnan(x) ? x : 0.0;
  if (x > overflow) return std::numeric_limits<double>::infinity();
  constexpr double shift = 0x1.8p52;  // a number of this size has no fraction: the sum is rounded to a whole number
  const double shifted = x * 1.4426950408889634 + shift, whole = shifted - shift;
  const double rest = (x - whole * elementary::kLog2High) - whole * elementary::kLog2Low;
  const double power = 1.0 + elementary::exp_less_one(rest);
  const auto k = std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(shift);
  if (k >= -1022 && k <= 1023) return power * elementary::power_of_two(k);
  return power * elementary::power_of_two(k / 2) * elementary::power_of_two(k - k / 2);
}

// 1 - exp(-x) for x >= 0, exact where x is small.
[[nodiscard]] inline double one_less_exp_of_minus(double x) {
  return x < 0.3 ? -elementary::exp_less_one(-x) : 1.0 - natural_exp(-x);
}

// x to the power p; x and p are not negative.
[[nodiscard]] inline double power_of(double x, double p) {
  if (p == 0.0) return 1.0;
  return p == 1.0 ? x : natural_exp(p * natural_log(x));
}

}  // namespace onlineforest
