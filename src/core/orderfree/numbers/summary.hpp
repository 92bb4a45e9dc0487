// The summary of the numbers of a large block, and the exact moments of a leaf. Must not know trees.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/exact_sum.hpp"
#include "orderfree/law/law.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// Numbers are compared by their bits. NumberLedger::canonical() has replaced -0 by 0.
class NumberHashes {
 public:
  using Value = double;

  [[nodiscard]] static Word hash(double value) { return std::bit_cast<Word>(value); }
  [[nodiscard]] static Word word(double value) { return std::bit_cast<Word>(value); }
};

// The weight of a block, and the weight of the samples that have one given value. If both are equal, the block is pure.
class NumberSummary {
 public:
  void add(double value, Weight weight) {
    if (total_ == 0) value_ = value;
    total_ += weight;
    if (value == value_) n_equal_ += weight;
  }

  [[nodiscard]] Weight total() const { return total_; }
  [[nodiscard]] bool is_pure() const { return n_equal_ == total_; }
  // Whether no sample has the given value any more. The summary must then be computed again from all samples.
  [[nodiscard]] bool is_lost() const { return n_equal_ == 0 && total_ > 0; }
  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] static std::size_t nbytes() { return 0; }

 private:
  double value_ = 0.0;
  Weight total_ = 0, n_equal_ = 0;
};

// A sum of squares of the largest numbers, times the largest weights, exceeds the range of doubles, although the
// variance does not. Such sums are computed in units of 2^kRoom. A power of two does not change the bits of the
// fraction.
inline constexpr int kRoom = 64;
inline constexpr double kLargeUnit = 0x1p64;

// The mean and the variance of the numbers in a leaf.
struct NumberLeaf {
  double mean = 0.0, variance = 0.0;
};

// The sums of a leaf of many numbers. They are exact, so adding and removing a sample leaves no rounding error.
class NumberSums {
 public:
  void add(double value, Weight weight) {
    total_ += weight;
    sum_.add(value, weight);
    add_product(squares_, value, value, weight);
  }

  [[nodiscard]] Weight total() const { return total_; }
  [[nodiscard]] double mean() const { return rounded(sum_) / multiplicity(total_); }
  [[nodiscard]] NumberLeaf leaf() const {
    const double n = multiplicity(total_);
    const double mean = rounded(sum_) / n;
    // The sum of squares minus n times the squared mean would lose the variance of 1e9 and 1e9 + 1 to cancellation. So
    // the code sums the squared deviations from the rounded mean, exactly, and rounds only the result.
    ExactSum deviations = sum_, squares = squares_;
    deviations.add(mean, -total_);
    add_product(squares, mean, mean, total_);
    // A large part times a large mean may overflow. So each part is divided by 2^room, and its product added 2^room
    // times.
    const int room = std::abs(mean) > 0x1p400 ? 40 : 0;
    sum_.for_each_part(-kWeightBits - room,
                       [&](double part) { add_product(squares, mean, part, -((2 * kOne) << room)); });
    const double rest = rounded(deviations);
    const auto variance = [&](int exponent) {  // the variance times 2^exponent
      return (rounded(squares, exponent) - std::ldexp(rest * (rest / n), exponent)) / n;
    };
    double result = variance(0);
    if (!std::isfinite(result)) result = std::ldexp(variance(-kRoom), kRoom);
    return {mean, std::max(result, 0.0)};
  }

 private:
  static void add_product(ExactSum& sum, double a, double b, Weight weight) {
    const double product = a * b;
    sum.add(product, weight);
    sum.add(error_of_product(a, b, product), weight);
  }
  // The sum times 2^exponent, without the unit of weights, rounded.
  [[nodiscard]] static double rounded(const ExactSum& sum, int exponent = 0) {
    const auto [high, low] = sum.rounded(exponent - kWeightBits);
    return high + low;
  }

  Weight total_ = 0;
  ExactSum sum_, squares_;  // weighted sums of the numbers and of their squares
};

}  // namespace onlineforest::orderfree
