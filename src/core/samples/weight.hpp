// The weight of samples: how often they count. Must not know samples.
//
// Weights are whole multiples of 1 / kOne, so that their sums do not depend on the order.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/require.hpp"

namespace onlineforest {

using Weight = std::int64_t;

inline constexpr int kWeightBits = 16;
inline constexpr Weight kOne = Weight{1} << kWeightBits;  // of a sample that counts once
// Of all samples of a forest together: a double holds it exactly.
inline constexpr Weight kMostWeight = Weight{1} << 52;

[[nodiscard]] constexpr bool is_whole(Weight weight) { return weight % kOne == 0; }

// How often samples of this weight count together.
[[nodiscard]] constexpr double multiplicity(Weight weight) {
  return static_cast<double>(weight) / static_cast<double>(kOne);
}

// Throws std::invalid_argument unless all weights are positive, and their sum is at most kMostWeight.
inline void check_weights(std::span<const Weight> weights) {
  Weight total = 0;
  for (const Weight weight : weights) {
    require(weight > 0 && weight <= kMostWeight - total, [&] {
      return "weights must be positive, and their sum at most " + std::to_string(kMostWeight) + "; one is " +
             std::to_string(weight);
    });
    total += weight;
  }
}

// A sum of squared weights without rounding: at most that of one square of kMostWeight.
class SquaresOfWeights {
 public:
  void add(Weight weight) {
    const auto whole = static_cast<std::uint64_t>(weight);
    const std::uint64_t high = whole >> 32, low = whole & 0xffffffffu, middle = high * low;
    add(high * high, low * low);
    add(middle >> 31, middle << 33);  // twice, 32 bits higher
  }

  [[nodiscard]] double value() const { return static_cast<double>(high_) * 0x1p64 + static_cast<double>(low_); }

 private:
  void add(std::uint64_t high, std::uint64_t low) {
    low_ += low;
    high_ += high + (low_ < low ? 1 : 0);
  }

  std::uint64_t high_ = 0, low_ = 0;
};

}  // namespace onlineforest
