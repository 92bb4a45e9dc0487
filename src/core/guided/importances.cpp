#include "guided/importances.hpp"

namespace onlineforest::guided {

Errors<Labels>::Errors(const TreeTable<Labels>& table) : table_(table), own_(table.cell.size()) {
  for (std::size_t node = 0; node < own_.size(); ++node) {
    double sum = 0.0;  // exact while weights are whole and below 2^26
    const auto end = static_cast<std::size_t>(table.columns.counts_end[node]);
    for (std::size_t i = table.columns.counts_begin(node); i < end; ++i) {
      const double count = multiplicity(table.columns.count[i]);
      sum += count * count;
    }
    own_[node] = sum / multiplicity(table.weight[node]);
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

}  // namespace onlineforest::guided
