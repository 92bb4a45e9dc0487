// The credit that a split of numbers gets for one sample, for importances. Must not know forests.
#pragma once

#include <algorithm>
#include <cstddef>

#include "orderfree/numbers/ledger.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "orderfree/tree/importances.hpp"
#include "orderfree/tree/tree_table.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

template <>
class Credit<Numbers> {
 public:
  explicit Credit(const TreeTable<Numbers>& table) : table_(table) {}

  // Chooses the split node that of() is about.
  void enter(std::size_t node) {
    node_ = block(node);
    left_ = block(static_cast<std::size_t>(table_.left[node]));
    right_ = block(static_cast<std::size_t>(table_.right[node]));
  }
  // `learned` is the weight of the sample in the tree. The child must weigh more.
  [[nodiscard]] double of(bool goes_left, double value, Weight learned) const {
    const double mean = node_.mean_without(value, learned);
    return ((goes_left ? left_ : right_).mean_without(value, learned) - mean) * (value - mean);
  }

 private:
  struct Block {
    Weight weight = 0;
    double mean = 0.0;

    [[nodiscard]] double mean_without(double value, Weight learned) const {
      const double odds = static_cast<double>(learned) / static_cast<double>(weight - learned);
      // Rounding of a mean may exceed all values if the sample weighs much more than the others.
      return std::clamp(mean + odds * (mean - value), -NumberLedger::kLargest, NumberLedger::kLargest);
    }
  };

  [[nodiscard]] Block block(std::size_t node) const { return {table_.weight[node], table_.columns.mean[node]}; }

  const TreeTable<Numbers>& table_;
  Block node_, left_, right_;
};

}  // namespace onlineforest::orderfree
