#include "numbers/gaussian_options.hpp"

#include <stdexcept>
#include <string>

namespace onlineforest {

void check_options(const GaussianOptions& options) {
  check_options(static_cast<const ForestOptions&>(options));
  if (!(options.noise >= kLeastNoise && options.noise <= 1.0)) {
    throw std::invalid_argument("noise must lie in [1e-9, 1], got " + std::to_string(options.noise));
  }
  if (!(options.learns_discount || options.discount > 0.0)) {
    throw std::invalid_argument("discount must be positive, got " + std::to_string(options.discount));
  }
}

}  // namespace onlineforest
