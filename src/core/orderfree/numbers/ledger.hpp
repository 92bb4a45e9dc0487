// Checks the numbers that a forest learns. Must not know trees.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>

#include "base/require.hpp"
#include "orderfree/numbers/summary.hpp"

namespace onlineforest::orderfree {

class NumberLedger {
 public:
  static constexpr double kLargest = 1e150;  // squares and their sums stay finite

  struct State {
    template <class Visit>
    static void for_each_field(Visit&) {}
  };

  static void check(std::span<const double> values, const NumberHashes&) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      require(std::abs(values[i]) <= kLargest, [&] {
        std::ostringstream text;
        text << "row " << i << ": value " << values[i] << " is outside [-1e150, 1e150]";
        return text.str();
      });
    }
  }
  [[nodiscard]] static bool may_be(double value, const NumberHashes&) { return std::abs(value) <= kLargest; }
  [[nodiscard]] static double canonical(double value) { return value + 0.0; }  // -0 becomes 0

  static void reserve() {}
  static void add(double, Weight) {}
  static void finish() {}
  static void restore(const State&, NumberHashes&) {}
  [[nodiscard]] static State save(const NumberHashes&) { return {}; }
};

}  // namespace onlineforest::orderfree
