// Corrects predicted mixtures, from left-out predictions. Knows nothing of trees.
#pragma once

#include <span>
#include <vector>

#include "numbers/mixture.hpp"
#include "points/weight.hpp"

namespace onlineforest {

// The default changes nothing.
struct Calibration {
  double scale = 1.0;          // factor by which a mixture is stretched around its mean,
  double noise = 0.0;          // after this variance is added to each component, in units of the prior
  std::vector<double> levels;  // of the left-out values in their corrected mixtures, in [0, 1], sorted

  Component with_noise(const Component& c) const { return {c.mass, c.mean, c.variance + noise}; }

  // The level of the corrected mixture below which a fraction q of the left-out values lies.
  double level(double q) const;
};

// The maximum likelihood scale and noise for normal errors with these variances; of noises with nearly the same
// likelihood, the least. Sets no levels. Without weights, each error counts once.
Calibration most_likely(std::span<const double> errors, std::span<const double> variances,
                        std::span<const Weight> weights = {});

// As many numbers as are given, sorted, of which each stands for the same weight: the quantiles of levels 1/n, 2/n, ...
std::vector<double> quantiles_of(std::span<const double> numbers, std::span<const Weight> weights);

}  // namespace onlineforest
