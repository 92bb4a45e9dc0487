// How badly a node predicts labels, for importances. Must not know forests.
#pragma once

#include <cstddef>
#include <vector>

#include "orderfree/labels/labels.hpp"
#include "orderfree/tree/importances.hpp"
#include "orderfree/tree/tree_table.hpp"

namespace onlineforest::orderfree {

template <>
class Errors<Labels> {
 public:
  explicit Errors(const TreeTable<Labels>& table);

  // The sum of squared errors of the frequencies of labels on the node's own samples, up to its weight.
  [[nodiscard]] double own(std::size_t node) const { return -own_[node]; }
  [[nodiscard]] static double scale() { return 1.0; }  // of own()
  // The squared error on another sample, up to a constant.
  [[nodiscard]] double of(std::size_t node, Label label) const;

 private:
  const TreeTable<Labels>& table_;
  std::vector<double> own_;  // sum of squared counts over the weight
};

}  // namespace onlineforest::orderfree
