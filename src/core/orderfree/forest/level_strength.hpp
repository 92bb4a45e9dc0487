// How strongly what is known of a level is drawn towards what is known of all samples. Must not know labels or numbers.
#pragma once

#include "samples/weight.hpp"

namespace onlineforest::orderfree {

inline constexpr double kLeastStrength = 0.25;  // where all samples of each level agree
// A level of less weight tells nothing of how much samples of one level differ.
inline constexpr Weight kPair = 2 * kOne;

}  // namespace onlineforest::orderfree
