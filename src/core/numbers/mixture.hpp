// A mixture of normals: moments, density, distribution function and quantiles. Knows nothing of trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

#include "base/elementary.hpp"
#include "base/rng.hpp"
#include "base/types.hpp"

namespace onlineforest {

// One normal of a mixture and its mass.
struct Component {
  double mass, mean, variance;
};

struct Moments {
  double mean = 0.0, variance = 0.0;
};

// A view of components. Their masses need not sum to 1.
class Mixture {
 public:
  explicit Mixture(std::span<const Component> components) : components_(components) {
    double sum = 0.0;
    for (const Component& c : components_) {
      mass_ += c.mass;
      sum += c.mass * c.mean;
    }
    moments_.mean = sum / mass_;
    for (const Component& c : components_) {
      const double apart = c.mean - moments_.mean;
      moments_.variance += c.mass / mass_ * (c.variance + apart * apart);
    }
  }

  std::span<const Component> components() const { return components_; }
  const Moments& moments() const { return moments_; }

  double distribution(double x) const {
    double sum = 0.0;
    for (const Component& c : components_) {
      sum += c.mass * complementary_error((c.mean - x) / std::sqrt(2.0 * c.variance));
    }
    return 0.5 * sum / mass_;
  }

  double density(double x) const { return sum_of_densities(x, 0.0) / mass_; }

  // The log density; finite even where the density underflows.
  double log_density(double x) const {
    double nearest = kInfinity;
    for (const Component& c : components_) nearest = std::min(nearest, exponent(c, x));
    if (nearest == kInfinity) return -kInfinity;
    return natural_log(sum_of_densities(x, nearest) / mass_) - nearest;
  }

  // The quantile at `level`, in (0, 1).
  double quantile(double level) const {
    const double deviation = std::sqrt(moments_.variance);
    if (!(deviation > 0.0)) return moments_.mean;
    double low = moments_.mean - deviation, high = moments_.mean + deviation;
    for (double step = deviation; distribution(low) > level; step *= 2.0) low -= step;
    for (double step = deviation; distribution(high) < level; step *= 2.0) high += step;
    // Newton's method within [low, high]. Bisects when a step would leave the interval, and at every third step,
    // because Newton's method can cycle.
    double x = 0.5 * (low + high);
    for (int i = 0; i < kMostSteps && high - low > kTolerance * deviation; ++i) {
      const double excess = distribution(x) - level;
      (excess > 0.0 ? high : low) = x;
      const double next = x - excess / density(x);
      if (std::abs(next - x) <= 0.5 * kTolerance * deviation) return next;
      x = i % 3 != 2 && next > low && next < high ? next : 0.5 * (low + high);
    }
    return x;
  }

 private:
  static constexpr int kMostSteps = 100;
  static constexpr double kTolerance = 1e-9;  // in standard deviations

  static double exponent(const Component& c, double x) {
    const double apart = x - c.mean;
    return 0.5 * apart * apart / c.variance;
  }

  double sum_of_densities(double x, double less) const {
    double sum = 0.0;
    for (const Component& c : components_) sum += c.mass / std::sqrt(c.variance) * natural_exp(less - exponent(c, x));
    return sum / std::sqrt(2.0 * std::numbers::pi);
  }

  std::span<const Component> components_;
  double mass_ = 0.0;
  Moments moments_;
};

}  // namespace onlineforest
