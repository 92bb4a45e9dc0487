// Squared errors of the mean of a node, for importances. Must not know forests.
#pragma once

#include <cstddef>

#include "orderfree/numbers/numbers.hpp"
#include "orderfree/tree/importances.hpp"
#include "orderfree/tree/tree_table.hpp"

namespace onlineforest::orderfree {

template <>
class Errors<Numbers> {
 public:
  explicit Errors(const TreeTable<Numbers>& table) : table_(table) {}

  [[nodiscard]] double own(std::size_t node) const { return table_.columns.squares[node]; }
  [[nodiscard]] double scale() const { return table_.columns.scale; }
  [[nodiscard]] double of(std::size_t node, double value) const {
    const double error = value - table_.columns.mean[node];
    return error * error;
  }

 private:
  const TreeTable<Numbers>& table_;
};

}  // namespace onlineforest::orderfree
