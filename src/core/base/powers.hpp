// Logarithms and powers of 2 with the same bits on every processor, which the standard library does not guarantee. Must
// not know what the numbers mean.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace onlineforest {

// a[0] + a[1] x + a[2] x² + a[3] x³. Halves that do not wait for each other are faster than Horner's rule.
[[nodiscard]] constexpr double cubic(const double* a, double x, double square) {
  return (a[0] + a[1] * x) + (a[2] + a[3] * x) * square;
}

// The logarithm of x to the base 2, with an error of at most 4e-14; exact if x is a power of 2. x must be positive and
// not subnormal.
[[nodiscard]] inline double binary_log(double x) {
  constexpr std::uint64_t mantissa = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  double m = std::bit_cast<double>((bits & mantissa) | (std::uint64_t{1023} << 52));  // in [1, 2)
  const bool is_large = m > 1.4142135623730951;
  m = is_large ? m * 0.5 : m;
  exponent += is_large ? 1.0 : 0.0;
  // log(m) = 2 artanh(t), and |t| < 0.172.
  constexpr std::array terms{1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15};
  const double t = (m - 1.0) / (m + 1.0), t2 = t * t, t4 = t2 * t2, t8 = t4 * t4;
  const double sum = cubic(terms.data(), t2, t4) + cubic(terms.data() + 4, t2, t4) * t8;
  return exponent + t * sum * 2.8853900817779268;  // 2 / log(2)
}

// 2 to the power x, with a relative error of at most 2e-14; exact if x is a whole number. 0 where the result would be
// subnormal. x is at most 1023.
[[nodiscard]] inline double binary_power(double x) {
  // Rounds x to the nearest whole number, halves upwards. After the addition of `shift`, the last bits of the mantissa
  // hold that number. This needs neither std::floor nor a conversion, so the compiler can vectorize loops of powers.
  constexpr double shift = 0x1.8p52;
  const double nearest = (x + shift) - shift, whole = nearest + (x - nearest == 0.5 ? 1.0 : 0.0);
  const double y = (x - whole) * 0.6931471805599453;  // |y| < 0.347
  // 1 / k! for k = 0, 1, ...
  constexpr std::array terms{1.0,       1.0,        1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,
                             1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800};
  const double y2 = y * y, y4 = y2 * y2, y8 = y4 * y4;
  const double sum =
      cubic(terms.data(), y, y2) + (cubic(terms.data() + 4, y, y2) * y4 + cubic(terms.data() + 8, y, y2) * y8);
  const double power = sum * std::bit_cast<double>(std::bit_cast<std::uint64_t>(whole + (shift + 1023.0)) << 52);
  return x > -1022.0 ? power : 0.0;
}

}  // namespace onlineforest
