#include "labels/label_options.hpp"

#include "base/require.hpp"

namespace onlineforest {

void check_options(const LabelOptions& options) {
  check_options(static_cast<const ForestOptions&>(options));
  require(options.leaf_discount >= 0.0 && options.leaf_discount <= 1.0, "the leaf discount must lie in [0, 1]");
}

}  // namespace onlineforest
