// A sum of doubles without rounding. It does not depend on the order, and a summand can be subtracted again. Must not
// know what is added.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace onlineforest {

// The rounding error of product = a * b, itself rounded: std::fma(a, b, -product) where that is right. Some C libraries
// have an fma that is not, for large numbers, and without an instruction for it most are slow. |a| and |b| are below
// 2^900.
[[nodiscard]] inline double error_of_product(double a, double b, double product) {
  struct Halves {
    explicit Halves(double x) : high(x * 0x1p27 + x), low(0.0) {
      high -= high - x;
      low = x - high;
    }
    double high, low;  // each has 26 bits, so products of halves are exact
  };
  const auto error = [](double x, double y, double xy) {  // Dekker's
    const Halves u(x), v(y);
    return ((u.high * v.high - xy) + u.high * v.low + u.low * v.high) + u.low * v.low;
  };
  const double size = std::abs(product);
  if (size >= 0x1p-900) return error(a, b, product);
  if (size < 0x1p-1022) return 0.0;  // the error is at most half of the smallest double
  // Scaled by 2^200, so that no part of the error underflows before the end.
  return error(a * 0x1p100, b * 0x1p100, product * 0x1p200) * 0x1p-200;
}

// An integer multiple of the smallest double, in two's complement: digits of 32 bits, the lowest first.
class ExactSum {
 public:
  // A sum as two doubles that do not overlap, both rounded towards zero: high + low is the double nearest to the sum.
  struct Rounded {
    double high, low;
  };

  // Adds `times` times x, which is finite. With a negative `times` it subtracts.
  void add(double x, std::int64_t times) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<unsigned>(bits >> 52 & 2047u);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    const std::uint64_t whole = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
    const unsigned shift = exponent == 0 ? 0 : exponent - 1;
    const bool is_negative = (bits >> 63 != 0) != (times < 0);
    const auto n = static_cast<std::uint64_t>(times < 0 ? -times : times);
    // whole << (shift % 32) has at most 85 bits, three digits.
    const unsigned by = shift % 32;
    const std::uint64_t low = (whole & 0xffffffffu) << by, high = (whole >> 32) << by;
    const std::uint64_t middle = (low >> 32) + (high & 0xffffffffu);
    const Parts parts{low & 0xffffffffu, middle & 0xffffffffu, (high >> 32) + (middle >> 32)};
    add_product(parts, n & 0xffffffffu, shift / 32, is_negative);
    if (n >> 32 != 0) add_product(parts, n >> 32, shift / 32 + 1, is_negative);
  }

  // The sum times a power of two.
  [[nodiscard]] Rounded rounded(int exponent = 0) const {
    auto [digits, is_negative] = magnitude();
    const double high = take_leading(digits, exponent);
    double low = take_leading(digits, exponent);
    // The last bit of `low` stands for all lower digits, so that high + low is not mistaken for a tie.
    const bool is_inexact = std::any_of(digits.begin(), digits.end(), [](std::uint32_t digit) { return digit != 0; });
    if (is_inexact) low = std::bit_cast<double>(std::bit_cast<std::uint64_t>(low) | 1u);
    return is_negative ? Rounded{-high, -low} : Rounded{high, low};
  }

  // Calls use(x) for doubles that add up to the sum times a power of two, without rounding.
  template <class Use>
  void for_each_part(int exponent, Use use) const {
    auto [digits, is_negative] = magnitude();
    while (const double part = take_leading(digits, exponent)) use(is_negative ? -part : part);
  }

 private:
  static constexpr std::size_t kDigits = 68;  // 2098 bits for one double, and 64 more for the number of summands

  using Digits = std::array<std::uint32_t, kDigits>;
  using Parts = std::array<std::uint64_t, 3>;  // digits

  // Adds or subtracts n times a number of three digits. Its lowest digit is aligned with digit `at` of the sum.
  void add_product(const Parts& parts, std::uint64_t n, std::size_t at, bool is_negative) {
    std::uint64_t carry = 0;
    for (std::size_t k = 0; at < digits_.size(); ++k, ++at) {
      if (k >= parts.size() && carry == 0) break;
      // A part and n have at most 32 bits, so that products and carries fit.
      const std::uint64_t more = (k < parts.size() ? parts[k] * n : 0) + carry;
      const std::uint64_t digit = digits_[at];
      if (is_negative) {
        const std::uint64_t borrow = (more & 0xffffffffu) > digit ? 1 : 0;
        digits_[at] = static_cast<std::uint32_t>(digit - more);
        carry = (more >> 32) + borrow;
      } else {
        digits_[at] = static_cast<std::uint32_t>(digit + more);
        carry = (more + digit) >> 32;
      }
    }
  }

  struct Magnitude {
    Digits digits;
    bool is_negative;
  };

  [[nodiscard]] Magnitude magnitude() const {
    Magnitude result{digits_, digits_.back() >> 31 != 0};
    if (!result.is_negative) return result;
    std::uint64_t carry = 1;
    for (std::uint32_t& digit : result.digits) {
      carry += static_cast<std::uint32_t>(~digit);
      digit = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return result;
  }

  // Returns the leading 53 bits as a double, times 2^exponent, and clears them.
  static double take_leading(Digits& digits, int exponent) {
    std::size_t top = kDigits;
    while (top > 0 && digits[top - 1] == 0) --top;
    if (top == 0) return 0.0;
    double result = 0.0;
    int n_left = 53;
    for (std::size_t i = top; i-- > 0 && n_left > 0;) {
      const int width = static_cast<int>(std::bit_width(digits[i]));
      const int n_bits = i + 1 == top ? width : 32;
      const int n_dropped = n_bits > n_left ? n_bits - n_left : 0;
      const std::uint32_t kept = digits[i] >> n_dropped << n_dropped;
      result += std::ldexp(static_cast<double>(kept), static_cast<int>(32 * i) - 1074 + exponent);
      digits[i] -= kept;
      n_left -= n_bits;
    }
    return result;
  }

  Digits digits_{};
};

}  // namespace onlineforest
