// Splits, surrogates, and how hashes draw proposals for the split of a block. Must not know trees.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "orderfree/law/law.hpp"
#include "orderfree/law/layout.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// The bits of every stored missing value. With one NaN only, equal cells have equal bits.
inline constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

[[nodiscard]] inline bool is_missing(float x) { return x != x; }
[[nodiscard]] inline bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Rows with x[cell] <= threshold go left. An infinite threshold separates rows that have the feature, on the left, from
// rows that lack it. If the feature is categorical, `cell` is its first cell and the threshold holds the salt of
// LevelSides.
struct Split {
  std::int32_t cell = -1;
  float threshold = 0.0f;
  bool missing_left = false;  // whether rows that lack the feature go left
  bool is_of_levels = false;

  [[nodiscard]] bool asks_if_missing() const { return threshold == std::numeric_limits<float>::infinity(); }

  friend bool operator==(const Split&, const Split&) = default;
};

// A split on another feature, which decides where rows go that lack the feature of the main split.
struct Surrogate {
  std::int32_t cell = -1;
  float threshold = 0.0f;
  bool is_reversed = false;  // whether its left side means the right side of the main split
  bool is_of_levels = false;

  friend bool operator==(const Surrogate&, const Surrogate&) = default;
};

using Surrogates = std::vector<Surrogate>;
inline constexpr std::size_t kMostSurrogates = 4;

// Whether a row goes left. If it lacks the feature of the split, the first surrogate whose feature it has decides; if
// there is none, missing_left does.
[[nodiscard]] inline bool sends_left(const Split& split, std::span<const Surrogate> surrogates, const float* row) {
  if (split.is_of_levels) return LevelSides(split.threshold).sends_left(level_at(row + split.cell));
  if (const float x = row[split.cell]; !is_missing(x)) return x <= split.threshold;
  for (const Surrogate& surrogate : surrogates) {
    const float* const x = row + surrogate.cell;
    if (surrogate.is_of_levels) {
      return LevelSides(surrogate.threshold).sends_left(level_at(x)) != surrogate.is_reversed;
    }
    if (!is_missing(*x)) return (*x <= surrogate.threshold) != surrogate.is_reversed;
  }
  return split.missing_left;
}

// A split with its surrogates.
struct Fork {
  Split split;
  Surrogates surrogates;

  [[nodiscard]] bool sends_left(const float* row) const { return orderfree::sends_left(split, surrogates, row); }

  friend bool operator==(const Fork&, const Fork&) = default;
};

// A set of at most 64 samples: one bit each.
using Block = Word;

[[nodiscard]] inline std::size_t first_bit(Block block) { return static_cast<std::size_t>(std::countr_zero(block)); }

// Weights of at most 64 samples, if all weights are whole and their sum is at most kMost. bits_[k] has bit k of each
// weight, so the weight of a block is a few counts of bits.
class LightWeights {
 public:
  static constexpr std::int64_t kMost = 255;  // so that 16 bits hold the sum of squared weights

  // Whether weights with this sum may be light. Exact if all weights but one are known to be whole.
  [[nodiscard]] static bool may_be(Weight total) { return is_whole(total) && total <= kMost * kOne; }
  [[nodiscard]] static int whole(Weight weight) { return static_cast<int>(weight / kOne); }

  // Sets the weight of sample i, which must not have one yet.
  void set(std::size_t i, Weight of_sample) {
    const int weight = whole(of_sample);
    n_ = std::max(n_, static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(weight))));
    for (std::size_t k = 0; k < n_; ++k) bits_[k] |= static_cast<Block>(weight >> k & 1) << i;
  }
  void clear() { *this = {}; }

  [[nodiscard]] int of(Block block) const {
    int sum = 0;
    for (std::size_t k = 0; k < n_; ++k) sum += std::popcount(block & bits_[k]) << k;
    return sum;
  }
  // The weights of the intersections of a block with K others.
  template <std::size_t K>
  void of(Block block, const std::array<Block, K>& others, std::array<std::uint16_t, K>& weights) const {
    weights.fill(0);
    for (std::size_t k = 0; k < n_; ++k) {
      const Block those = block & bits_[k];
      for (std::size_t q = 0; q < K; ++q) {
        weights[q] = static_cast<std::uint16_t>(weights[q] + (std::popcount(others[q] & those) << k));
      }
    }
  }

 private:
  std::size_t n_ = 1;
  std::array<Block, 8> bits_{};  // bit i of bits_[k] is bit k of the weight of sample i
};

// A proposal: a split, the samples it sends left, and its source: two samples, or the range of a numeric feature.
struct Proposal {
  Block left = 0;
  Split split;
  float low = 0.0f, high = 0.0f;
  std::uint8_t first = 0, second = 0;
};

// The greatest float that is not above x. `nearest` is the float nearest to x. Has no branches, because half of them
// would be mispredicted.
[[nodiscard]] inline float round_down(double x, float nearest) {
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const std::uint32_t below = nearest == 0.0f ? 0x80000001u : bits - 1 + 2 * (bits >> 31);
  return std::bit_cast<float>(static_cast<double>(nearest) > x ? below : bits);
}

// Draws a threshold from an interval: low <= threshold < high.
[[nodiscard]] inline float draw_threshold(Word proposal, float low, float high) {
  const double span = static_cast<double>(high) - static_cast<double>(low);
  const double position = static_cast<double>(low) + unit_interval(derive(proposal, of_proposal::kPosition)) * span;
  if (!(position < static_cast<double>(high))) return low;
  return round_down(position, static_cast<float>(position));
}

// Tries up to kMostTries features, drawn by hash. Returns the first for which is_fit(feature) holds, or -1.
template <class IsFit>
[[nodiscard]] std::int32_t first_fit(Word proposal, std::size_t n_features, IsFit is_fit) {
  for (std::uint32_t t = 0; t < kMostTries; ++t) {
    const auto feature = static_cast<std::int32_t>(below(derive(proposal, of_proposal::kTry + t), n_features));
    if (is_fit(feature)) return feature;
  }
  return -1;
}

// Returns the fit feature of least hash, or -1 if no feature is fit. `for_each_fit(use)` calls use(feature) for each of
// them.
template <class ForEachFit>
[[nodiscard]] std::int32_t least_fit(Word proposal, ForEachFit for_each_fit) {
  std::int32_t found = -1;
  Word least = 0;
  for_each_fit([&](std::int32_t feature) {
    const Word hash = derive(proposal, of_proposal::kScan + static_cast<Word>(feature));
    if (found < 0 || hash < least) {
      found = feature;
      least = hash;
    }
  });
  return found;
}

// Draws a feature for which is_fit(feature) holds: the first fit one of some draws, or else that of least hash.
template <class IsFit, class ForEachFit>
[[nodiscard]] std::int32_t draw_feature(Word proposal, std::size_t n_features, IsFit is_fit, ForEachFit for_each_fit) {
  const std::int32_t first = first_fit(proposal, n_features, is_fit);
  return first >= 0 ? first : least_fit(proposal, for_each_fit);
}

// Draws a split between two values of a numeric feature. If one is missing, the split separates missing values.
[[nodiscard]] inline Split draw_split(Word proposal, std::int32_t cell, float a, float b) {
  if (is_missing(a) || is_missing(b)) return {cell, std::numeric_limits<float>::infinity()};
  return {cell, draw_threshold(proposal, std::min(a, b), std::max(a, b))};
}

// Draws a split on a categorical feature that separates two different levels. The salts of all kMostSalts tries fail
// with probability 2^-64; then the last one stays.
[[nodiscard]] inline Split draw_level_split(Word proposal, std::int32_t cell, Level a, Level b) {
  constexpr Word kMostSalts = 64;  // each separates the levels with probability 1/2
  LevelSides sides = LevelSides::drawn(derive(proposal, of_proposal::kSalt));
  for (Word t = 1; t < kMostSalts && sides.sends_left(a) == sides.sends_left(b); ++t) {
    sides = LevelSides::drawn(derive(proposal, of_proposal::kSalt - t));
  }
  return {cell, sides.threshold(), false, true};
}

// Whether two rows differ in a feature. With `must_have`, a missing value differs from nothing.
[[nodiscard]] inline bool differ(const Layout& layout, std::int32_t feature, const float* a, const float* b,
                                 bool must_have) {
  const std::size_t k = layout.cell_of(static_cast<std::size_t>(feature));
  if (layout.is_categorical(static_cast<std::size_t>(feature))) return level_at(a + k) != level_at(b + k);
  return must_have ? a[k] < b[k] || a[k] > b[k] : !is_same(a[k], b[k]);
}

// Draws a split that separates two rows: on a feature that both have, or, if they agree in all such features, on one
// that only one of them has.
[[nodiscard]] inline Split draw_between(Word proposal, const float* a, const float* b, const Layout& layout) {
  if (layout.n_categorical == 0) {  // a fast path: differ() without a look at the layout
    const auto are_apart = [&](std::int32_t d) { return a[d] < b[d] || a[d] > b[d]; };
    const std::int32_t d = first_fit(proposal, layout.n_features, are_apart);
    if (d >= 0) return draw_split(proposal, d, a[d], b[d]);
  }
  const auto draw = [&](bool must_have) {
    const auto is_fit = [&](std::int32_t d) { return differ(layout, d, a, b, must_have); };
    return draw_feature(proposal, layout.n_features, is_fit, [&](auto use) {
      for (std::size_t k = 0; k < layout.n_features; ++k) {
        if (is_fit(static_cast<std::int32_t>(k))) use(static_cast<std::int32_t>(k));
      }
    });
  };
  std::int32_t d = draw(true);
  if (d < 0) d = draw(false);
  const auto feature = static_cast<std::size_t>(d);
  const std::size_t k = layout.cell_of(feature);
  const auto cell = static_cast<std::int32_t>(k);
  if (layout.is_categorical(feature)) return draw_level_split(proposal, cell, level_at(a + k), level_at(b + k));
  return draw_split(proposal, cell, a[k], b[k]);
}

// The features in which the rows are not all equal.
[[nodiscard]] inline std::vector<std::int32_t> varying_features(std::span<const float* const> rows,
                                                                const Layout& layout) {
  const std::size_t width = layout.width();
  std::vector<std::uint8_t> varies(width, 0);
  for (const float* const x : rows.subspan(1)) {
    for (std::size_t k = 0; k < width; ++k) varies[k] |= static_cast<std::uint8_t>(!is_same(x[k], rows[0][k]));
  }
  std::vector<std::int32_t> result;
  for (std::size_t d = 0; d < layout.n_features; ++d) {
    const std::size_t k = layout.cell_of(d);
    if (varies[k] != 0 || (layout.is_categorical(d) && varies[k + 1] != 0)) {
      result.push_back(static_cast<std::int32_t>(d));
    }
  }
  return result;
}

}  // namespace onlineforest::orderfree
