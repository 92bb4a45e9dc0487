// How predicted laws are corrected, from values that were left out. Knows nothing of trees.
#pragma once

#include <span>
#include <vector>

#include "numbers/mixture.hpp"

namespace onlineforest {

// How predictions are corrected, from points that were left out. As it stands, they are not.
struct Calibration {
  double scale = 1.0;          // a law is stretched around its mean by this factor,
  double noise = 0.0;          // after this variance was added, in units of the prior
  std::vector<double> levels;  // where the values left out lay in their corrected laws, 0 to 1, sorted

  Component with_noise(const Component& c) const { return {c.mass, c.mean, c.variance + noise}; }

  // The level of the corrected law below which a share q of the values lies.
  double level(double q) const;
};

// The scale and the noise under which errors of normals of these variances would be most likely; the least of noises
// that are about as likely. No levels yet.
Calibration most_likely(std::span<const double> errors, std::span<const double> variances);

}  // namespace onlineforest
