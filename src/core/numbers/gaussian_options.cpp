#include "numbers/gaussian_options.hpp"

#include "base/require.hpp"

namespace onlineforest {

void check_options(const GaussianOptions& options) {
  check_options(static_cast<const ForestOptions&>(options));
  require(options.noise >= kLeastNoise && options.noise <= 1.0, "the noise must lie in [1e-9, 1]");
  require(options.learns_discount || options.discount > 0.0, "the discount must be positive");
}

}  // namespace onlineforest
