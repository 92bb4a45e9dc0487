// Sorts the samples of a panel along a feature, and keeps the orders. Must not know values of samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "orderfree/law/law.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/proposal.hpp"

namespace onlineforest::orderfree {

// Samples in the order of a numeric feature. Samples of equal values form a run. Missing values form the last run.
struct FeatureOrder {
  std::size_t n = 0;
  std::array<std::uint8_t, kMostDeciding> bits;  // the samples; within a run in the order of their bits
  Block starts = 0;                              // bit k: whether the k-th sample in the order is the first of a run

  // Sorts the samples of a block. `column` holds the value of each sample, by bit.
  void sort(Block block, const float* column);
};

// The orders of a panel. Each is computed at its first use and kept, if rows have few cells.
class FeatureOrders {
 public:
  void clear() { known_ = 0; }

  // The samples of a block in the order of the feature of a split, which is numeric. May include samples outside the
  // block.
  [[nodiscard]] const FeatureOrder& along(PanelRows& panel, Block block, const Split& split);

 private:
  static constexpr std::size_t kMostCached = 64;  // in wider rows, orders are computed again for each block

  Block known_ = 0;  // cells whose order is in orders_
  std::array<FeatureOrder, kMostCached> orders_;
  FeatureOrder order_;
};

}  // namespace onlineforest::orderfree
