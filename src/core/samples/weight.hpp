// The weight of samples: how often they count. Must not know samples.
//
// A stored weight is a whole number of 2^-16 of a sample, so that sums of weights do not depend on the order.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/require.hpp"

namespace onlineforest {

using Weight = std::int64_t;

inline constexpr int kWeightBits = 16;
inline constexpr Weight kOne = Weight{1} << kWeightBits;  // the weight of a sample that counts once
// The largest total weight of a forest, which a double holds exactly.
inline constexpr Weight kMostWeight = Weight{1} << 52;

[[nodiscard]] constexpr bool is_whole(Weight weight) { return weight % kOne == 0; }

// The weight as a number of samples.
[[nodiscard]] constexpr double multiplicity(Weight weight) {
  return static_cast<double>(weight) / static_cast<double>(kOne);
}

// Throws std::invalid_argument unless all weights are positive, and their sum is at most kMostWeight.
inline void check_weights(std::span<const Weight> weights) {
  Weight total = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    require(weights[i] > 0 && weights[i] <= kMostWeight - total, [&] {
      return "weights must be positive, and their sum at most " + std::to_string(kMostWeight) + ": weight " +
             std::to_string(i) + " is " + std::to_string(weights[i]) + ", and the sum of those before it is " +
             std::to_string(total);
    });
    total += weights[i];
  }
}

// A sum of products of weights without rounding. The sum is at most the square of kMostWeight.
class ProductsOfWeights {
 public:
  void add(Weight a, Weight b) {
    const std::uint64_t a_high = high_half(a), a_low = low_half(a), b_high = high_half(b), b_low = low_half(b);
    add(a_high * b_high, a_low * b_low);
    add_middle(a_high * b_low);
    add_middle(a_low * b_high);
  }

  [[nodiscard]] double value() const { return static_cast<double>(high_) * 0x1p64 + static_cast<double>(low_); }

 private:
  [[nodiscard]] static std::uint64_t high_half(Weight weight) { return static_cast<std::uint64_t>(weight) >> 32; }
  [[nodiscard]] static std::uint64_t low_half(Weight weight) {
    return static_cast<std::uint64_t>(weight) & 0xffffffffu;
  }

  void add(std::uint64_t high, std::uint64_t low) {
    low_ += low;
    high_ += high + (low_ < low ? 1 : 0);
  }
  void add_middle(std::uint64_t middle) { add(middle >> 32, middle << 32); }  // adds middle * 2^32

  std::uint64_t high_ = 0, low_ = 0;
};

// A sum of squared weights without rounding.
class SquaresOfWeights {
 public:
  void add(Weight weight) { products_.add(weight, weight); }

  [[nodiscard]] double value() const { return products_.value(); }

 private:
  ProductsOfWeights products_;
};

}  // namespace onlineforest
