// Options of a forest over numbers.
#pragma once

#include "forest/options.hpp"

namespace onlineforest {

inline constexpr double kLeastNoise = 1e-9;

struct GaussianOptions : ForestOptions {
  double noise = 0.01;
  // If set, the given value is ignored.
  bool learns_discount = false, learns_noise = false;
  bool has_trend = false;   // subtract an additive trend if it helps
  bool calibrates = false;  // correct predictions by left-out points
};

// Throws std::invalid_argument if a value is out of range.
void check_options(const GaussianOptions& options);

}  // namespace onlineforest
