#include "orderfree/labels/errors.hpp"

#include <cmath>

namespace onlineforest::orderfree {

Errors<Labels>::Errors(const TreeTable<Labels>& table) : table_(table), own_(table.cell.size()) {
  for (std::size_t node = 0; node < own_.size(); ++node) {
    SquaresOfWeights squares;  // exact, so that the order of class codes does not change the result
    const auto end = static_cast<std::size_t>(table.columns.counts_end[node]);
    for (std::size_t i = table.columns.counts_begin(node); i < end; ++i) squares.add(table.columns.count[i]);
    own_[node] = std::ldexp(squares.value(), -2 * kWeightBits) / multiplicity(table.weight[node]);
  }
}

double Errors<Labels>::of(std::size_t node, Label label) const {
  const double weight = multiplicity(table_.weight[node]);
  double frequency = 0.0;
  const auto end = static_cast<std::size_t>(table_.columns.counts_end[node]);
  for (std::size_t i = table_.columns.counts_begin(node); i < end; ++i) {
    if (table_.columns.label[i] == label) frequency = multiplicity(table_.columns.count[i]) / weight;
  }
  return own_[node] / weight - 2.0 * frequency;
}

}  // namespace onlineforest::orderfree
