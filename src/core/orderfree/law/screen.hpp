// Finds the numeric features that tell groups of samples apart. Must not know panels.
//
// In wide rows, few features of a uniform draw tell much about the values. So some proposals draw one of the features
// whose means differ most between groups of samples. Groups are labels, or numbers up to their mean and above it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/simd.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/proposal.hpp"

namespace onlineforest::orderfree {

class Screen {
 public:
  void clear() { n_ = 0; }

  // Finds the features for which the groups explain the largest share of the variance, at most kMostScreened; of equal
  // shares the lower features. Samples that lack a feature do not count. `rows` holds the row of each sample, by bit;
  // `may_lack` tells whether a sample of the groups may lack a feature. Rows are wide.
  void find(std::span<const float* const> rows, std::size_t n_numeric, std::span<const Block> groups, bool may_lack);

  // The features that were found since the last clear().
  [[nodiscard]] std::span<const std::int32_t> features() const { return {features_.data(), n_}; }

 private:
  // Features are read some at a time: one cache line of each row.
  static constexpr std::size_t kVectors = 4, kLine = kVectors * simd::kWidth;
  using Vectors = simd::Float4[kVectors];

  [[nodiscard]] simd::Float4 value(std::size_t i, std::size_t v) const {
    return simd::load(&lines_[i][v * simd::kWidth]);
  }

  template <bool kMayLack>
  void read(std::size_t begin, std::size_t n_numeric, Vectors& low, Vectors& scale);
  template <bool kMayLack>
  void find_shares(std::size_t begin, std::size_t n_numeric);
  void take(std::int32_t feature, float share);

  std::size_t n_ = 0;
  std::array<std::int32_t, kMostScreened> features_{};
  std::array<float, kMostScreened> shares_{};  // in decreasing order

  // The samples, group by group, and the number of samples in each group.
  std::size_t n_samples_ = 0, n_groups_ = 0;
  std::array<const float*, kMostDeciding> rows_{};
  std::array<std::uint8_t, kMostDeciding> sizes_{};
  alignas(64) std::array<std::array<float, kLine>, kMostDeciding> lines_{};  // some features of the samples
  std::array<float, kLine> of_line_{};                                       // the shares of these features
};

}  // namespace onlineforest::orderfree
