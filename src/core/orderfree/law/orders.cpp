#include "orderfree/law/orders.hpp"

#include <bit>
#include <limits>

#include "base/simd.hpp"

namespace onlineforest::orderfree {

namespace {

constexpr float kLast = std::numeric_limits<float>::infinity();  // stands for a missing value, and for no sample

using Column = std::array<float, kMostDeciding>;
using Keys = std::array<std::int8_t, kMostDeciding>;

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

// Sorts the first n entries by key. A sample comes after all of lesser keys: counting them has no branch to mispredict,
// and is faster for at most 64 samples than other sorts.
void sort_keys(const Keys& keys, std::size_t n, std::array<std::uint8_t, kMostDeciding>& sorted) {
  alignas(16) std::array<std::uint8_t, kMostDeciding> begins{};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int8_t key = keys[i];
    for (std::size_t k = 0; k < keys.size(); ++k) begins[k] = static_cast<std::uint8_t>(begins[k] + (key < keys[k]));
  }
  std::array<std::uint8_t, kMostDeciding> n_placed{};  // by place of the first sample of the key
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t begin = begins[i];
    sorted[begin + n_placed[begin]++] = static_cast<std::uint8_t>(i);
  }
}

}  // namespace

void FeatureOrder::sort(Block block, const float* column) {
  alignas(16) Column x;
  x.fill(kLast);
  std::array<std::uint8_t, kMostDeciding> members, sorted;
  n = static_cast<std::size_t>(std::popcount(block));
  if ((block & (block + 1)) == 0) {  // the first n samples
    for (std::size_t i = 0; i < n; ++i) members[i] = static_cast<std::uint8_t>(i);
    for (std::size_t i = 0; i < n; ++i) x[i] = is_missing(column[i]) ? kLast : column[i];
  } else {
    for (std::size_t k = 0; k < n; ++k, block &= block - 1) {
      members[k] = static_cast<std::uint8_t>(first_bit(block));
      x[k] = is_missing(column[members[k]]) ? kLast : column[members[k]];
    }
  }
  alignas(16) Keys keys;
  find_keys(x, keys);
  sort_keys(keys, n, sorted);
  for (std::size_t i = 1; i < n; ++i) {  // sorts samples of equal keys by insertion
    const std::uint8_t moved = sorted[i];
    const float value = x[moved];
    std::size_t at = i;
    for (; at > 0 && value < x[sorted[at - 1]]; --at) sorted[at] = sorted[at - 1];
    sorted[at] = moved;
  }
  std::uint8_t run = 0;
  float last = x[sorted[0]];
  for (std::size_t i = 0; i < n; ++i) {
    const float value = x[sorted[i]];
    run = static_cast<std::uint8_t>(run + (value > last));
    last = value;
    bits[i] = members[sorted[i]];
    runs[i] = run;
  }
}

const FeatureOrder& FeatureOrders::along(PanelRows& panel, Block block, const Split& split) {
  if (panel.layout().width() > kMostCached) {
    find(panel, block, split, order_);
    return order_;
  }
  FeatureOrder& order = orders_[static_cast<std::size_t>(split.cell)];
  if ((known_ >> split.cell & 1) == 0) {
    find(panel, panel.all(), split, order);
    known_ |= Block{1} << split.cell;
  }
  return order;
}

void FeatureOrders::find(PanelRows& panel, Block block, const Split& split, FeatureOrder& order) {
  if (split.is_of_levels) {
    order.group(block, [&](std::size_t i) { return panel.level(i, split.cell); });
  } else {
    order.sort(block, panel.column(block, split.cell));
  }
}

}  // namespace onlineforest::orderfree
