// Options of the order-free forest. Must not know trees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "orderfree/law/law.hpp"
#include "orderfree/law/layout.hpp"
#include "samples/tenure.hpp"

namespace onlineforest::orderfree {

// Each field stands in `for_each_field` (forest_state.hpp), too: states and model files carry it by that.
struct Options {
  std::size_t n_trees = 1;
  std::size_t first_tree = 0;  // in a shard: the number of its first tree in the whole forest
  Layout layout;
  Word seed = 0;
  std::int64_t min_samples_split = 2;
  double max_samples = 1.0;  // share of the rows that a tree learns
  bool calibrates = false;   // whether some trees leave calibrators out
  double discount = 0.2;     // weight that smoothing subtracts from each label of a node
  KeepOptions keep;
  int key_bits = 64;  // tests of ties use fewer
};

// Throws std::invalid_argument if an option is out of range.
void check_options(const Options& options);

}  // namespace onlineforest::orderfree
