// The numbers of the samples of each level, and what the levels of a row tell about its number. Must not know trees.
//
// A split divides the levels of a feature at random, so trees separate one of a thousand levels slowly. These sums are
// exact, over all samples that a forest holds: they do not depend on an order, and a forgotten sample leaves none.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/exact_sum.hpp"
#include "orderfree/law/layout.hpp"
#include "orderfree/numbers/summary.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

class NumberLevels {
 public:
  static constexpr std::size_t kBytesOfLevel = 400;  // the memory of a level, roughly

  // A sample that does not count.
  struct Own {
    double value = 0.0;
    Weight weight = 0;
  };

  explicit NumberLevels(const Layout& layout) : layout_(layout), features_(layout.n_categorical) {}

  [[nodiscard]] bool empty() const { return features_.empty(); }
  // Adds the number of a sample to the sums of its levels. If memory runs out, changes nothing.
  void add(const float* row, double value, Weight weight);
  // Reverts add().
  void subtract(const float* row, double value, Weight weight) noexcept {
    subtract(row, value, weight, features_.size());
  }
  [[nodiscard]] std::size_t nbytes() const;

  // The strength of each feature: the number of samples at which a level counts half. 0 if numbers vary as much within
  // levels as among all, so that levels tell nothing.
  [[nodiscard]] std::vector<double> strengths() const;
  // How far the levels of a row lie above the mean of all numbers: the sum of the deviations of the means of its
  // levels, each drawn towards 0 as the strength of its feature says.
  [[nodiscard]] double deviation(const float* row, std::span<const double> strengths, Own own) const;
  [[nodiscard]] double deviation(const float* row, std::span<const double> strengths) const {
    return deviation(row, strengths, {});
  }

 private:
  // The exact sum of the numbers of a block.
  struct Block {
    Weight total = 0;
    ExactSum sum;

    void add(double value, Weight weight) {
      total += weight;
      sum.add(value, weight);
    }
    [[nodiscard]] double mean() const {
      const auto [high, low] = sum.rounded(-kWeightBits);
      return (high + low) / multiplicity(total);
    }
  };
  using Blocks = std::unordered_map<Level, Block>;

  [[nodiscard]] Level level(const float* row, std::size_t categorical) const {
    return level_at(row + layout_.cell_of(layout_.n_numeric() + categorical));
  }
  void subtract(const float* row, double value, Weight weight, std::size_t n) noexcept;

  Layout layout_;
  std::vector<Blocks> features_;
  NumberSums all_;
};

}  // namespace onlineforest::orderfree
