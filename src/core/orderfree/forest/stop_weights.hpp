// The stop weights among which the calibrators of a forest choose. Must not know trees.
#pragma once

#include <vector>

#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// The stop weights that are at least `least` and below `limit`.
struct StopRange {
  Weight least = 0, limit = kMostWeight;
};

// The stop weights of a range that a forest of this total weight may choose: 0, and 10 * 2^k samples up to a tenth of
// the total.
[[nodiscard]] inline std::vector<Weight> stop_weights(Weight total, StopRange range) {
  constexpr Weight kLeast = 10 * kOne;
  constexpr Weight kMostShare = 10;  // a stop weight is at most the total weight divided by this
  std::vector<Weight> result;
  const auto add = [&](Weight stop) {
    if (stop >= range.least && stop < range.limit) result.push_back(stop);
  };
  add(0);
  for (Weight stop = kLeast; stop <= total / kMostShare; stop *= 2) add(stop);
  return result;
}

}  // namespace onlineforest::orderfree
