#include "forest/options.hpp"

#include <cmath>

#include "base/require.hpp"

namespace onlineforest {

void check_options(const ForestOptions& options) {
  require(options.n_trees > 0, "a forest needs at least one tree");
  require(options.trees_held().begin < options.trees_held().end && options.trees_held().end <= options.n_trees,
          "a part of a forest needs at least one tree, and none beyond those of the whole");
  require(options.n_features > 0, "a forest needs at least one feature");
  require(options.lifetime >= 0.0, "the lifetime must not be negative");
  require(options.discount >= 0.0 && std::isfinite(options.discount), "the discount must be finite, not negative");
  require(options.min_samples_split >= 2, "min_samples_split must be at least 2");
  require(is_known(options.weight_rule), "the rule of weights is unknown");
  require(is_known(options.keep.rule), "the rule of what to keep is unknown");
  require(options.keep.rule == KeepRule::kAll || options.keep.capacity > 0, "a forest must keep at least one point");
  require(options.keep.half_life >= 1.0, "the half-life must be at least 1");
  if (options.weight_rule == WeightRule::kFixed) {
    require(options.weights.size() == options.n_features, "there must be one weight per feature");
    for (const double w : options.weights) {
      require(w >= 0.0 && w <= kLargestWeight, "weights must lie between 0 and 1e200");
    }
  }
}

}  // namespace onlineforest
