#include "guided/importances.hpp"

#include <algorithm>
#include <cstdint>

namespace onlineforest::guided {

namespace {

double sum_of_squares(const TreeTable& table, std::size_t node) {
  double sum = 0.0;  // exact while weights stay below 2^26
  for (std::size_t i = table.counts_begin(node); i < static_cast<std::size_t>(table.counts_end[node]); ++i) {
    sum += static_cast<double>(table.count[i]) * static_cast<double>(table.count[i]);
  }
  return sum;
}

double frequency_of(const TreeTable& table, std::size_t node, Label label) {
  for (std::size_t i = table.counts_begin(node); i < static_cast<std::size_t>(table.counts_end[node]); ++i) {
    if (table.label[i] == label) return static_cast<double>(table.count[i]) / static_cast<double>(table.weight[node]);
  }
  return 0.0;
}

}  // namespace

std::vector<double> decreases(const TreeTable& table, std::size_t n_features) {
  std::vector<double> result(n_features, 0.0);
  const auto purity = [&table](std::size_t node) {
    return sum_of_squares(table, node) / static_cast<double>(table.weight[node]);
  };
  for (std::size_t node = 0; node < table.feature.size(); ++node) {
    if (table.feature[node] < 0) continue;
    const double gain = purity(static_cast<std::size_t>(table.left[node])) +
                        purity(static_cast<std::size_t>(table.right[node])) - purity(node);
    result[static_cast<std::size_t>(table.feature[node])] += gain / static_cast<double>(table.weight[0]);
  }
  return result;
}

std::vector<double> left_out_decreases(const SampleStore& samples, const Tree& tree, const TreeTable& table,
                                       StopProbe& stop) {
  std::vector<double> result(samples.n_features(), 0.0);
  if (table.feature.empty()) return result;
  // The mean of the squared frequencies of each node, which is part of the error of each sample there.
  std::vector<double> squares(table.feature.size());
  for (std::size_t node = 0; node < squares.size(); ++node) {
    const auto weight = static_cast<double>(table.weight[node]);
    squares[node] = sum_of_squares(table, node) / (weight * weight);
  }
  // Samples in the order of their content, so that sums do not depend on slots.
  std::vector<Slot> slots;
  std::int64_t total = 0;
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
    const Label label = samples.label(slot);
    double before = squares[0] - 2.0 * frequency_of(table, 0, label);
    for (std::size_t node = 0; table.feature[node] >= 0;) {
      const auto feature = static_cast<std::size_t>(table.feature[node]);
      node = static_cast<std::size_t>(x[feature] <= table.threshold[node] ? table.left[node] : table.right[node]);
      const double after = squares[node] - 2.0 * frequency_of(table, node, label);
      result[feature] += static_cast<double>(samples.weight(slot)) * (before - after) / static_cast<double>(total);
      before = after;
    }
    stop.tick(256);
  }
  return result;
}

}  // namespace onlineforest::guided
