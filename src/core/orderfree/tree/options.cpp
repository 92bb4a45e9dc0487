#include "orderfree/tree/options.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "base/require.hpp"
#include "orderfree/tree/flat_tree.hpp"

namespace onlineforest::orderfree {

void check_options(const Options& options) {
  const auto in_range = [](const char* name, std::size_t value, std::size_t most) {
    require(value >= 1 && value <= most, [&] {
      return std::string(name) + " must be in [1, " + std::to_string(most) + "], got " + std::to_string(value);
    });
  };
  in_range("n_trees", options.n_trees, std::numeric_limits<std::int32_t>::max());
  in_range("n_features", options.layout.n_features, SplitCell::kMost);
  require(options.layout.n_categorical <= options.layout.n_features, [&] {
    return "n_categorical must be at most n_features, " + std::to_string(options.layout.n_features) + ", got " +
           std::to_string(options.layout.n_categorical);
  });
  in_range("the number of cells of a row", options.layout.width(), SplitCell::kMost);
  constexpr std::int64_t most_split = std::numeric_limits<std::int32_t>::max();
  require(options.min_samples_split >= 2 && options.min_samples_split <= most_split, [&] {
    return "min_samples_split must be in [2, " + std::to_string(most_split) + "], got " +
           std::to_string(options.min_samples_split);
  });
  require(options.max_samples > 0.0 && options.max_samples <= 1.0,
          [&] { return "max_samples must be in (0, 1], got " + std::to_string(options.max_samples); });
  require(options.discount >= 0.0 && options.discount <= 1.0,
          [&] { return "discount must be in [0, 1], got " + std::to_string(options.discount); });
  require(options.key_bits >= 0 && options.key_bits <= 64,
          [&] { return "key_bits must be in [0, 64], got " + std::to_string(options.key_bits); });
  require(is_known(options.keep.rule),
          [&] { return "keep_rule must be 0, 1 or 2, got " + std::to_string(static_cast<int>(options.keep.rule)); });
  require(options.keep.rule == KeepRule::kAll || options.keep.capacity >= 1,
          "the capacity of a window or reservoir must be at least 1, got 0");
  require(options.keep.half_life >= 1.0,
          [&] { return "half_life must be at least 1, got " + std::to_string(options.keep.half_life); });
}

}  // namespace onlineforest::orderfree
