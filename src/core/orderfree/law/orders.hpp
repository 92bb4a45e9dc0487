// Sorts the samples of a panel along a feature, and keeps the orders. Must not know values of samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "orderfree/law/law.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/proposal.hpp"

namespace onlineforest::orderfree {

// Samples in the order of a feature. Samples of equal values form a run. Missing values form the last run. The levels
// of a categorical feature have no order, so each level is a run, and the runs are in the order of their first samples.
struct FeatureOrder {
  std::size_t n = 0;
  std::array<std::uint8_t, kMostDeciding> bits;  // the samples; within a run in the order of their bits
  std::array<std::uint8_t, kMostDeciding> runs;  // the number of the run of each, counted from 0

  // Sorts the samples of a block. `column` holds the value of each sample, by bit.
  void sort(Block block, const float* column);
  // Groups the samples of a block. level_of(i) is the level of sample i.
  template <class LevelOf>
  void group(Block block, LevelOf level_of) {
    Groups levels;
    for (; block != 0; block &= block - 1) levels.add(first_bit(block), level_of(first_bit(block)));
    n = 0;
    for (std::size_t run = 0; run < levels.size(); ++run) {
      for (Block rest = levels.block(run); rest != 0; rest &= rest - 1) {
        bits[n] = static_cast<std::uint8_t>(first_bit(rest));
        runs[n++] = static_cast<std::uint8_t>(run);
      }
    }
  }
};

// The orders of a panel. Each is computed at its first use and kept, if rows have few cells.
class FeatureOrders {
 public:
  void clear() { known_ = 0; }

  // The samples of a block in the order of the feature of a split. May include samples outside the block.
  [[nodiscard]] const FeatureOrder& along(PanelRows& panel, Block block, const Split& split);

 private:
  static constexpr std::size_t kMostCached = 64;  // in wider rows, orders are computed again for each block

  static void find(PanelRows& panel, Block block, const Split& split, FeatureOrder& order);

  Block known_ = 0;  // cells whose order is in orders_
  std::array<FeatureOrder, kMostCached> orders_;
  FeatureOrder order_;
};

}  // namespace onlineforest::orderfree
