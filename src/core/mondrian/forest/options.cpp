#include "mondrian/forest/options.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

namespace onlineforest::mondrian {

namespace {

// `what` says the quantity and its bound, `value` what came.
template <class Value>
void require_option(bool ok, const char* what, Value value) {
  if (!ok) throw std::invalid_argument(std::string(what) + ", got " + std::to_string(value));
}

}  // namespace

void check_options(const ForestOptions& options) {
  require_option(options.n_trees > 0, "n_trees must be at least 1", options.n_trees);
  require_option(options.n_features > 0, "n_features must be at least 1", options.n_features);
  require_option(options.lifetime >= 0.0, "lifetime must be at least 0", options.lifetime);
  require_option(options.discount >= 0.0 && std::isfinite(options.discount), "discount must be finite and at least 0",
                 options.discount);
  require_option(options.min_samples_split >= 2, "min_samples_split must be at least 2", options.min_samples_split);
  require_option(is_known(options.weight_rule), "weight_rule must be 0, 1, 2 or 3",
                 static_cast<int>(options.weight_rule));
  require_option(is_known(options.keep.rule), "keep_rule must be 0, 1 or 2", static_cast<int>(options.keep.rule));
  require_option(options.keep.rule == KeepRule::kAll || options.keep.capacity > 0,
                 "the capacity of a window or reservoir must be at least 1", options.keep.capacity);
  require_option(options.keep.half_life >= 1.0, "half_life must be at least 1", options.keep.half_life);
  require_option(options.leaf_discount >= 0.0 && options.leaf_discount <= 1.0, "leaf_discount must lie in [0, 1]",
                 options.leaf_discount);
  if (options.weight_rule == WeightRule::kFixed) {
    if (options.weights.size() != options.n_features) {
      throw std::invalid_argument("there are " + std::to_string(options.weights.size()) + " feature weights for " +
                                  std::to_string(options.n_features) + " features");
    }
    for (const double w : options.weights) {
      require_option(w >= 0.0 && w <= kLargestWeight, "a feature weight must lie in [0, 1e200]", w);
    }
  }
}

}  // namespace onlineforest::mondrian
