// Squared errors of the label frequencies of a node, for importances. Must not know forests.
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

  // The sum of squared errors of the label frequencies on the samples of the node, minus the weight of the node.
  [[nodiscard]] double own(std::size_t node) const { return -own_[node]; }
  [[nodiscard]] static double scale() { return 1.0; }  // unit of own()
  // The squared error on a sample of another node, up to a constant.
  [[nodiscard]] double of(std::size_t node, Label label) const;

 private:
  const TreeTable<Labels>& table_;
  std::vector<double> own_;  // sum of squared counts, divided by the weight of the node
};

}  // namespace onlineforest::orderfree
