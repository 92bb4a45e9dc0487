// Options of a forest over numbers.
#pragma once

#include "forest/options.hpp"

namespace onlineforest {

inline constexpr double kLeastNoise = 1e-9;

struct GaussianOptions : ForestOptions {
  double noise = 0.01;
  // Then what was given is not used.
  bool learns_discount = false, learns_noise = false;
  bool has_trend = false;   // an additive one, as far as it tells something
  bool calibrates = false;  // from points left out
};

// Throws std::invalid_argument if a value is out of range.
void check_options(const GaussianOptions& options);

}  // namespace onlineforest
