// Proposals for the cut of a block, and how hashes draw them. Must not know trees.
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

#include "guided/law.hpp"
#include "points/weight.hpp"

namespace onlineforest::guided {

// Missing values are NaN with these bits, so that equal cells have equal bits.
inline constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

[[nodiscard]] inline bool is_missing(float x) { return x != x; }
[[nodiscard]] inline bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Rows with x[feature] <= threshold go left. If the threshold is infinite, the cut asks whether the feature is missing.
struct Cut {
  std::int32_t feature = -1;
  float threshold = 0.0f;
  bool missing_left = false;  // whether rows that lack the feature go left

  [[nodiscard]] bool asks_if_missing() const { return threshold == std::numeric_limits<float>::infinity(); }

  friend bool operator==(const Cut&, const Cut&) = default;
};

// A cut on another feature, which tells where rows go that lack the feature of a cut.
struct Surrogate {
  std::int32_t feature = -1;
  float threshold = 0.0f;
  bool is_reversed = false;  // whether its left is the right of the cut

  friend bool operator==(const Surrogate&, const Surrogate&) = default;
};

using Surrogates = std::vector<Surrogate>;
inline constexpr std::size_t kMostSurrogates = 4;

// Where a row goes. If it lacks the feature, the first surrogate decides whose feature it has.
[[nodiscard]] inline bool sends_left(const Cut& cut, std::span<const Surrogate> surrogates, const float* row) {
  if (const float x = row[cut.feature]; !is_missing(x)) return x <= cut.threshold;
  for (const Surrogate& surrogate : surrogates) {
    const float x = row[surrogate.feature];
    if (!is_missing(x)) return (x <= surrogate.threshold) != surrogate.is_reversed;
  }
  return cut.missing_left;
}

// A cut with its surrogates.
struct Fork {
  Cut cut;
  Surrogates surrogates;

  [[nodiscard]] bool sends_left(const float* row) const { return guided::sends_left(cut, surrogates, row); }

  friend bool operator==(const Fork&, const Fork&) = default;
};

// A set of at most 64 samples: one bit each.
using Block = Word;

[[nodiscard]] inline std::size_t first_bit(Block block) { return static_cast<std::size_t>(std::countr_zero(block)); }

// How often the samples of a block count, if that is a whole number for each, and no more than kMost together: bit by
// bit, so that bits are counted.
class LightWeights {
 public:
  static constexpr std::int64_t kMost = 255;  // so that 16 bits hold a sum of squares

  // Whether weights with this sum may be light, if all but one of them are whole.
  [[nodiscard]] static bool may_be(Weight total) { return is_whole(total) && total <= kMost * kOne; }
  [[nodiscard]] static int whole(Weight weight) { return static_cast<int>(weight / kOne); }

  // Gives a weight to a sample that has none.
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
  // The same for the parts of a block in several others.
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
  std::array<Block, 8> bits_{};  // of weights, the lowest first
};

// A proposal, and what it was drawn from: two samples, or the range of a feature.
struct Proposal {
  Block left = 0;  // the samples that its cut sends left
  Cut cut;
  float low = 0.0f, high = 0.0f;
  std::uint8_t first = 0, second = 0;
};

// The greatest float that is not above a double, of which `nearest` is the nearest float. Has no branches: half of the
// time they would be mispredicted.
[[nodiscard]] inline float round_down(double x, float nearest) {
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const std::uint32_t below = nearest == 0.0f ? 0x80000001u : bits - 1 + 2 * (bits >> 31);
  return std::bit_cast<float>(static_cast<double>(nearest) > x ? below : bits);
}

// The threshold that a proposal draws from an interval: low <= threshold < high.
[[nodiscard]] inline float draw_threshold(Word proposal, float low, float high) {
  const double span = static_cast<double>(high) - static_cast<double>(low);
  const double position = static_cast<double>(low) + unit_interval(derive(proposal, of_proposal::kPosition)) * span;
  if (!(position < static_cast<double>(high))) return low;
  return round_down(position, static_cast<float>(position));
}

// The first feature of the hashed sequence of a proposal that is fit; -1 if none of the first ones is.
template <class IsFit>
[[nodiscard]] std::int32_t first_fit(Word proposal, std::size_t n_features, IsFit is_fit) {
  for (std::uint32_t t = 0; t < kMostTries; ++t) {
    const auto feature = static_cast<std::int32_t>(below(derive(proposal, of_proposal::kTry + t), n_features));
    if (is_fit(feature)) return feature;
  }
  return -1;
}

// The feature that a proposal draws: the first that is fit, or of all that are fit the one of least hash.
// `for_each_fit(use)` calls use(feature) for each feature that is fit; -1 if there is none.
template <class IsFit, class ForEachFit>
[[nodiscard]] std::int32_t draw_feature(Word proposal, std::size_t n_features, IsFit is_fit, ForEachFit for_each_fit) {
  if (const std::int32_t first = first_fit(proposal, n_features, is_fit); first >= 0) return first;
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

// The cut on a feature that a proposal draws from the values of two rows.
[[nodiscard]] inline Cut draw_cut(Word proposal, std::int32_t feature, float a, float b) {
  if (is_missing(a) || is_missing(b)) return {feature, std::numeric_limits<float>::infinity(), false};
  return {feature, draw_threshold(proposal, std::min(a, b), std::max(a, b)), false};
}

// The cut that a proposal draws between two rows: on a feature that both have, or, if they agree in all of these, on
// one that only one of them has.
[[nodiscard]] inline Cut draw_between(Word proposal, const float* a, const float* b, std::size_t n_features) {
  const auto draw = [&](auto differ) {
    return draw_feature(proposal, n_features, differ, [&](auto use) {
      for (std::size_t k = 0; k < n_features; ++k) {
        if (differ(static_cast<std::int32_t>(k))) use(static_cast<std::int32_t>(k));
      }
    });
  };
  std::int32_t d = draw([&](std::int32_t k) { return a[k] < b[k] || a[k] > b[k]; });
  if (d < 0) d = draw([&](std::int32_t k) { return !is_same(a[k], b[k]); });
  return draw_cut(proposal, d, a[d], b[d]);
}

// The features in which rows are not constant.
[[nodiscard]] inline std::vector<std::int32_t> varying_features(std::span<const float* const> rows,
                                                                std::size_t n_features) {
  std::vector<std::uint8_t> varies(n_features, 0);
  for (const float* const x : rows.subspan(1)) {
    for (std::size_t d = 0; d < n_features; ++d) varies[d] |= static_cast<std::uint8_t>(!is_same(x[d], rows[0][d]));
  }
  std::vector<std::int32_t> result;
  for (std::size_t d = 0; d < n_features; ++d) {
    if (varies[d] != 0) result.push_back(static_cast<std::int32_t>(d));
  }
  return result;
}

}  // namespace onlineforest::guided
