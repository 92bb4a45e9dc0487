#include "labels/label_options.hpp"

#include <stdexcept>
#include <string>

namespace onlineforest {

void check_options(const LabelOptions& options) {
  check_options(static_cast<const ForestOptions&>(options));
  if (!(options.leaf_discount >= 0.0 && options.leaf_discount <= 1.0)) {
    throw std::invalid_argument("leaf_discount must lie in [0, 1], got " + std::to_string(options.leaf_discount));
  }
}

}  // namespace onlineforest
