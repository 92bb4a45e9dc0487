// Importances of features in one tree: the decrease of the error at the splits. Must not know forests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/stop.hpp"
#include "orderfree/law/layout.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/tree/tree.hpp"
#include "orderfree/tree/tree_table.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// The error of a node's prediction. Rooms above specialise it for labels and for numbers.
template <class Target>
class Errors;

// For each feature, the decrease of the error at its splits, per sample that the tree has learned.
template <class Target>
[[nodiscard]] std::vector<double> decreases(const TreeTable<Target>& table, const Layout& layout) {
  std::vector<double> result(layout.n_features, 0.0);
  const Errors<Target> errors(table);
  for (std::size_t node = 0; node < table.cell.size(); ++node) {
    if (!table.is_split(node)) continue;
    const double gain = errors.own(node) - errors.own(static_cast<std::size_t>(table.left[node])) -
                        errors.own(static_cast<std::size_t>(table.right[node]));
    const std::size_t feature = layout.feature_of(static_cast<std::size_t>(table.cell[node]));
    result[feature] += gain / multiplicity(table.weight[0]) * errors.scale();
  }
  return result;
}

// Returns x * weight / total. Divides first if the product overflows.
[[nodiscard]] inline double share(double x, Weight weight, Weight total) {
  const double product = static_cast<double>(weight) * x, all = static_cast<double>(total);
  return std::isfinite(product) ? product / all : static_cast<double>(weight) / all * x;
}

// For each feature, the decrease of the error at its splits, per sample that the tree has left out. For a feature of
// pure noise the expected value is at most 0.
template <class Target>
[[nodiscard]] std::vector<double> left_out_decreases(const SampleStore<typename Target::Values>& samples,
                                                     const Tree<Target>& tree, const TreeTable<Target>& table,
                                                     StopProbe& stop) {
  std::vector<double> result(samples.layout().n_features, 0.0);
  if (table.cell.empty()) return result;
  const Errors<Target> errors(table);
  // The samples are sorted by key, so that rounding of the sums does not depend on slots.
  std::vector<Slot> slots;
  Weight total = 0;
  for (Slot slot = 0; slot < static_cast<Slot>(samples.n_slots()); ++slot) {
    if (samples.weight(slot) == 0 || tree.takes(samples, slot)) continue;
    slots.push_back(slot);
    total += samples.weight(slot);
  }
  std::ranges::sort(slots, [&](Slot a, Slot b) {
    return samples.key(a) != samples.key(b) ? samples.key(a) < samples.key(b) : samples.content_less(a, b);
  });
  for (const Slot slot : slots) {
    const float* const x = samples.row(slot);
    const auto value = samples.value(slot);
    double before = errors.of(0, value);
    for (std::size_t node = 0; table.is_split(node);) {
      const std::size_t feature = samples.layout().feature_of(static_cast<std::size_t>(table.cell[node]));
      node = table.child(node, x);
      const double after = errors.of(node, value);
      result[feature] += share(before - after, samples.weight(slot), total);
      before = after;
    }
    stop.tick(256);
  }
  return result;
}

}  // namespace onlineforest::orderfree
