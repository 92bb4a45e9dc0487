#include "orderfree/law/orders.hpp"

#include <bit>
#include <limits>

#include "base/simd.hpp"

namespace onlineforest::orderfree {

namespace {

constexpr float kLast = std::numeric_limits<float>::infinity();  // stands for a missing value, and for no sample

using Column = std::array<float, kMostDeciding>;
using Keys = std::array<std::int8_t, kMostDeciding>;

constexpr auto kPlaces = [] {
  std::array<std::uint8_t, kMostDeciding> places{};
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint8_t>(i);
  return places;
}();

// Maps values to keys of 8 bits: a greater value has no lesser key, and only kLast has the last key. All loops have a
// fixed number of steps and no branch, so that compilers use vector instructions.
void find_keys(const Column& x, Keys& keys) {
  constexpr float kFirstKey = -128.0f, kLastKey = 127.0f;
  simd::Float4 lows = simd::load(x.data()), highs = simd::all(-kLast);
  for (std::size_t i = 0; i < x.size(); i += simd::kWidth) {
    const simd::Float4 values = simd::load(&x[i]), infinite = simd::all(kLast);
    lows = simd::min(lows, values);
    highs = simd::max(highs, simd::select(simd::at_most(infinite, values), simd::all(-kLast), values));
  }
  const float low = simd::least(lows), high = simd::greatest(highs);
  // Half of each value, so that no difference overflows.
  const float start = 0.5f * low, scale = (kLastKey - 1.0f - kFirstKey) / (0.5f * high - start);
  if (!(low < high) || !(scale < kLast)) {  // one value, or values too close to each other
    for (std::size_t i = 0; i < x.size(); ++i) keys[i] = x[i] < kLast ? 0 : static_cast<std::int8_t>(kLastKey);
    return;
  }
  std::array<std::int32_t, kMostDeciding> whole;
  for (std::size_t i = 0; i < x.size(); ++i) {
    whole[i] = static_cast<std::int32_t>(simd::min((0.5f * x[i] - start) * scale + kFirstKey, kLastKey));
  }
  for (std::size_t i = 0; i < x.size(); ++i) keys[i] = static_cast<std::int8_t>(whole[i]);
}

// For each entry, the number of entries of lesser keys. Counting them has no branch to mispredict, and is faster for at
// most 64 samples than other sorts.
void count_lesser(const Keys& keys, std::size_t n, std::array<std::uint8_t, kMostDeciding>& n_lesser) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int8_t key = keys[i];
    for (std::size_t k = 0; k < keys.size(); ++k)
      n_lesser[k] = static_cast<std::uint8_t>(n_lesser[k] + (key < keys[k]));
  }
}

}  // namespace

void FeatureOrder::sort(Block block, const float* column) {
  alignas(16) Column x;
  x.fill(kLast);
  std::array<std::uint8_t, kMostDeciding> members;
  n = static_cast<std::size_t>(std::popcount(block));
  const bool are_first = (block & (block + 1)) == 0;  // whether the block is the first n samples
  if (are_first) {
    for (std::size_t i = 0; i < n; ++i) x[i] = is_missing(column[i]) ? kLast : column[i];
  } else {
    for (std::size_t k = 0; k < n; ++k, block &= block - 1) {
      members[k] = static_cast<std::uint8_t>(first_bit(block));
      x[k] = is_missing(column[members[k]]) ? kLast : column[members[k]];
    }
  }
  alignas(16) Keys keys;
  find_keys(x, keys);
  alignas(16) std::array<std::uint8_t, kMostDeciding> n_lesser{};
  count_lesser(keys, n, n_lesser);
  std::array<std::uint8_t, kMostDeciding> places = kPlaces;  // the next place of the key that begins at a place
  std::array<float, kMostDeciding + 1> values;               // in order, between entries that are less than all
  values.fill(-kLast);
  float* const sorted = &values[1];
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = places[n_lesser[i]]++;
    bits[at] = static_cast<std::uint8_t>(i);
    sorted[at] = x[i];
  }
  for (std::size_t i = 1; i < n; ++i) {  // sorts samples of equal keys by insertion
    const float value = sorted[i];
    if (!(value < values[i])) continue;
    const std::uint8_t moved = bits[i];
    std::size_t at = i;
    for (; value < values[at]; --at) {
      sorted[at] = values[at];
      bits[at] = bits[at - 1];
    }
    sorted[at] = value;
    bits[at] = moved;
  }
  starts = 0;
  for (std::size_t i = 0; i < kMostDeciding; i += simd::kWidth) {
    starts |= static_cast<Block>(simd::at_most(simd::load(sorted + i), simd::load(&values[i])) ^ 15u) << i;
  }
  if (are_first) return;
  for (std::size_t i = 0; i < n; ++i) bits[i] = members[bits[i]];
}

const FeatureOrder& FeatureOrders::along(PanelRows& panel, Block block, const Split& split) {
  if (panel.layout().width() > kMostCached) {
    order_.sort(block, panel.column(block, split.cell));
    return order_;
  }
  FeatureOrder& order = orders_[static_cast<std::size_t>(split.cell)];
  if ((known_ >> split.cell & 1) == 0) {
    order.sort(panel.all(), panel.column(panel.all(), split.cell));
    known_ |= Block{1} << split.cell;
  }
  return order;
}

}  // namespace onlineforest::orderfree
