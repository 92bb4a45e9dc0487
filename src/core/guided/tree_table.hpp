// A tree in a form that depends on the set of samples alone: nodes in preorder, left children first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "guided/sample_store.hpp"

namespace onlineforest::guided {

struct TreeTable {
  std::vector<std::int32_t> parent, left, right, feature;  // -1 where there is none
  std::vector<float> threshold;
  std::vector<std::int64_t> weight;
  std::vector<std::int64_t> counts_end;  // the counts of node i are [counts_end[i - 1], counts_end[i])
  std::vector<Label> label;
  std::vector<std::int64_t> count;

  [[nodiscard]] std::size_t counts_begin(std::size_t node) const {
    return node == 0 ? 0 : static_cast<std::size_t>(counts_end[node - 1]);
  }

  // The leaf of a row. The tree is not empty.
  [[nodiscard]] NodeIndex leaf_of(const float* x) const {
    std::size_t at = 0;
    while (feature[at] >= 0) at = static_cast<std::size_t>(x[feature[at]] <= threshold[at] ? left[at] : right[at]);
    return static_cast<NodeIndex>(at);
  }
};

}  // namespace onlineforest::guided
