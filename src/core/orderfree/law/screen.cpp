#include "orderfree/law/screen.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/memory.hpp"

namespace onlineforest::orderfree {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

void Screen::find(std::span<const float* const> rows, std::size_t n_numeric, std::span<const Block> groups,
                  bool may_lack) {
  clear();
  n_samples_ = n_groups_ = 0;
  for (Block rest : groups) {
    sizes_[n_groups_++] = static_cast<std::uint8_t>(std::popcount(rest));
    for (; rest != 0; rest &= rest - 1) rows_[n_samples_++] = rows[first_bit(rest)];
  }
  static_assert(kLine <= kMostNarrow);  // so wide rows have at least one whole line
  for (std::size_t next = 0; next < n_numeric; next += kLine) {
    const std::size_t begin = std::min(next, n_numeric - kLine);  // the last line may begin with features of another
    may_lack ? find_shares<true>(begin, n_numeric) : find_shares<false>(begin, n_numeric);
    for (std::size_t d = next; d < begin + kLine; ++d) {
      if (of_line_[d - begin] > 0.0f) take(static_cast<std::int32_t>(d), of_line_[d - begin]);
    }
  }
}

// Copies the features of a line into lines_. Finds their least values, and the factors that scale their ranges to 1.
template <bool kMayLack>
void Screen::read(std::size_t begin, std::size_t n_numeric, Vectors& low, Vectors& scale) {
  using simd::Float4;
  const Float4 infinity = simd::all(kInfinity);
  const std::size_t further = std::min(begin + 2 * kLine, n_numeric - 1);
  Vectors least, most;
  for (std::size_t v = 0; v < kVectors; ++v) {
    least[v] = infinity;
    most[v] = simd::all(-kInfinity);
  }
  for (std::size_t i = 0; i < n_samples_; ++i) {
    prefetch(rows_[i] + further);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Float4 x = simd::load(rows_[i] + begin + v * simd::kWidth);
      simd::store(&lines_[i][v * simd::kWidth], x);
      const unsigned there = kMayLack ? simd::at_most(x, infinity) : 0;
      least[v] = simd::min(least[v], kMayLack ? simd::select(there, x, least[v]) : x);
      most[v] = simd::max(most[v], kMayLack ? simd::select(there, x, most[v]) : x);
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    low[v] = least[v];
    scale[v] = simd::divide(simd::all(1.0f), simd::subtract(most[v], least[v]));
  }
}

// Finds the shares of the features of a line. Values are shifted and scaled to the range from 0 to 1, so that no sum
// overflows. A feature that does not vary, or has values too far apart or too close for a float, has a share that is
// not a number.
template <bool kMayLack>
void Screen::find_shares(std::size_t begin, std::size_t n_numeric) {
  using simd::Float4;
  const Float4 zero = simd::all(0.0f), one = simd::all(1.0f), infinity = simd::all(kInfinity);
  Vectors low, scale, sum, squares, n, between;
  read<kMayLack>(begin, n_numeric, low, scale);
  for (std::size_t v = 0; v < kVectors; ++v) sum[v] = squares[v] = n[v] = between[v] = zero;
  for (std::size_t group = 0, i = 0; group < n_groups_; ++group) {
    Vectors of_group, n_of_group;
    for (std::size_t v = 0; v < kVectors; ++v) {
      of_group[v] = zero;
      n_of_group[v] = kMayLack ? zero : simd::all(static_cast<float>(sizes_[group]));
    }
    for (const std::size_t end = i + sizes_[group]; i < end; ++i) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        Float4 x = simd::multiply(simd::subtract(value(i, v), low[v]), scale[v]);
        if constexpr (kMayLack) {
          const unsigned there = simd::at_most(value(i, v), infinity);
          x = simd::select(there, x, zero);
          n_of_group[v] = simd::add(n_of_group[v], simd::select(there, one, zero));
        }
        of_group[v] = simd::add(of_group[v], x);
        squares[v] = simd::add(squares[v], simd::multiply(x, x));
      }
    }
    for (std::size_t v = 0; v < kVectors; ++v) {
      sum[v] = simd::add(sum[v], of_group[v]);
      n[v] = simd::add(n[v], n_of_group[v]);
      // A group without samples has the sum 0.
      const Float4 of_mean = simd::divide(simd::multiply(of_group[v], of_group[v]), simd::max(n_of_group[v], one));
      between[v] = simd::add(between[v], of_mean);
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    const Float4 of_mean = simd::divide(simd::multiply(sum[v], sum[v]), simd::max(n[v], one));
    const Float4 share = simd::divide(simd::subtract(between[v], of_mean), simd::subtract(squares[v], of_mean));
    simd::store(&of_line_[v * simd::kWidth], share);
  }
}

void Screen::take(std::int32_t feature, float share) {
  if (n_ == kMostScreened && !(share > shares_[n_ - 1])) return;
  n_ = std::min(n_ + 1, kMostScreened);
  std::size_t at = n_ - 1;
  for (; at > 0 && share > shares_[at - 1]; --at) {
    shares_[at] = shares_[at - 1];
    features_[at] = features_[at - 1];
  }
  shares_[at] = share;
  features_[at] = feature;
}

}  // namespace onlineforest::orderfree
