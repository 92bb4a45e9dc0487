#include "orderfree/law/orders.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/simd.hpp"

namespace onlineforest::orderfree {

namespace {

constexpr float kLast = std::numeric_limits<float>::infinity();  // stands for a missing value, and for no sample

using Column = std::array<float, kMostDeciding>;
using Bytes = std::array<std::uint8_t, kMostDeciding>;

// A key of 8 bits has a counter. Counters of keys that differ in their high half only are adjacent, so that vector
// instructions add up 16 of them at a time.
constexpr std::size_t kHalf = 16, kKeys = kHalf * kHalf;
using Counters = std::array<std::uint8_t, kKeys>;

// Finds the counters of the keys of values: a greater value has no lesser key, and only kLast has the last key. All
// loops have a fixed number of steps and no branch, so that compilers use vector instructions.
void find_counters(const Column& x, Bytes& counters) {
  constexpr float kLastKey = kKeys - 1;
  simd::Float4 lows = simd::load(x.data()), highs = simd::all(-kLast);
  for (std::size_t i = 0; i < x.size(); i += simd::kWidth) {
    const simd::Float4 values = simd::load(&x[i]), infinite = simd::all(kLast);
    lows = simd::min(lows, values);
    highs = simd::max(highs, simd::select(simd::at_most(infinite, values), simd::all(-kLast), values));
  }
  const float low = simd::least(lows), high = simd::greatest(highs);
  // Half of each value, so that no difference overflows.
  const float start = 0.5f * low, scale = (kLastKey - 1.0f) / (0.5f * high - start);
  if (!(low < high) || !(scale < kLast)) {  // one value, or values too close to each other
    for (std::size_t i = 0; i < x.size(); ++i) counters[i] = x[i] < kLast ? 0 : kKeys - 1;
    return;
  }
  std::array<std::int32_t, kMostDeciding> keys;
  for (std::size_t i = 0; i < x.size(); ++i) {
    keys[i] = static_cast<std::int32_t>(simd::min((0.5f * x[i] - start) * scale, kLastKey));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    counters[i] = static_cast<std::uint8_t>(keys[i] << 4 | keys[i] >> 4);
  }
}

// Adds eight counters to eight others.
void add_counts(const std::uint8_t* from, std::uint8_t* to) {
  Word a, b;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, to, sizeof b);
  b += a;
  std::memcpy(to, &b, sizeof b);
}

// Counts the keys. Returns by counter the number of entries of this key and lesser ones.
Counters count_up_to(const Bytes& counters, std::size_t n) {
  Counters counts{};
  for (std::size_t i = 0; i < n; ++i) ++counts[counters[i]];
  for (std::size_t k = kHalf; k < kKeys; k += 8) add_counts(&counts[k - kHalf], &counts[k]);
  std::array<std::uint8_t, kHalf> before;  // entries of lesser high halves
  unsigned sum = 0;
  for (std::size_t high = 0; high < kHalf; ++high) {
    before[high] = static_cast<std::uint8_t>(sum);
    sum += counts[kKeys - kHalf + high];
  }
  for (std::size_t k = 0; k < kKeys; k += 8) add_counts(&before[k % kHalf], &counts[k]);
  return counts;
}

// Bit k: whether a[k] is above b[k].
Block above(const float* a, const float* b) {
  Block result = 0;
  for (std::size_t i = 0; i < kMostDeciding; i += simd::kWidth) {
    result |= static_cast<Block>(simd::at_most(simd::load(a + i), simd::load(b + i)) ^ 15u) << i;
  }
  return result;
}

}  // namespace

// Sorts by key. Then sorts samples of equal keys by insertion: few, unless most values are close to each other.
void FeatureOrder::sort(Block block, const float* column) {
  alignas(16) Column x;
  x.fill(kLast);
  Bytes members;
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
  Bytes counters;
  find_counters(x, counters);
  Counters ends = count_up_to(counters, n);     // the place after the next one of each key
  std::array<float, kMostDeciding + 1> values;  // in order, after one that is less than all, before some that are not
  values[0] = -kLast;
  std::fill(values.begin() + 1 + static_cast<std::ptrdiff_t>(n), values.end(), kLast);
  float* const sorted = &values[1];
  for (std::size_t i = n; i-- > 0;) {
    const std::size_t at = --ends[counters[i]];
    bits[at] = static_cast<std::uint8_t>(i);
    sorted[at] = x[i];
  }
  for (Block lesser = above(values.data(), sorted); lesser != 0;) {
    std::size_t i = first_bit(lesser);
    for (; i < n && sorted[i] < values[i]; ++i) {
      const float value = sorted[i];
      const std::uint8_t moved = bits[i];
      std::size_t at = i;
      for (; value < values[at]; --at) {
        sorted[at] = values[at];
        bits[at] = bits[at - 1];
      }
      sorted[at] = value;
      bits[at] = moved;
    }
    lesser = i < n ? lesser >> i << i : 0;
  }
  starts = above(sorted, values.data());
  if (n < kMostDeciding) starts &= (Block{1} << n) - 1;
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
