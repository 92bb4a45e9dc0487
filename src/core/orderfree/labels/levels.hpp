// The labels of the samples of each level, and what the levels of a row tell about its label. Must not know trees.
//
// A split divides the levels of a feature at random, so trees separate one of a thousand levels slowly. These counts
// are exact sums over all samples that a forest holds: they do not depend on an order, and a forgotten sample leaves
// none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "orderfree/labels/counts.hpp"
#include "orderfree/law/layout.hpp"

namespace onlineforest::orderfree {

class LevelCounts {
 public:
  // The counts of a categorical feature.
  struct Feature {
    std::unordered_map<Level, LabelCounts> levels;
    std::int64_t agreement = 0;  // the sum of agreement_of() over the levels
    Weight paired = 0;           // the weight of the levels that weigh at least two samples
  };

  static constexpr std::size_t kBytesOfLevel = 100;  // the memory of a level of one label, roughly

  explicit LevelCounts(const Layout& layout) : layout_(layout), features_(layout.n_categorical) {}

  [[nodiscard]] bool empty() const { return features_.empty(); }
  [[nodiscard]] const std::vector<Feature>& features() const { return features_; }
  [[nodiscard]] Level level(const float* row, std::size_t categorical) const {
    return level_at(row + layout_.cell_of(layout_.n_numeric() + categorical));
  }

  // Adds the weight of a sample to the counts of its levels. If memory runs out, changes nothing.
  void add(const float* row, Label label, Weight weight);
  // Reverts add().
  void subtract(const float* row, Label label, Weight weight) noexcept {
    subtract(row, label, weight, features_.size());
  }

  [[nodiscard]] std::size_t nbytes() const;

 private:
  void subtract(const float* row, Label label, Weight weight, std::size_t n) noexcept;

  Layout layout_;
  std::vector<Feature> features_;
};

// The probability that two samples of a block have the same label, times the weight of the block. 0 if the block weighs
// less than two samples. The result is an integer, so that sums of it do not depend on their order.
[[nodiscard]] std::int64_t agreement_of(const LabelCounts& counts);

// Finds the evidence of the levels of rows. It holds the sums of one moment, so it must not outlive a change.
class LevelEvidence {
 public:
  // `totals` are the weights of all labels, of which there are `n_labels`.
  LevelEvidence(const LevelCounts& counts, const LabelCounts& totals, std::size_t n_labels);

  // Computes the evidence of a row for each label: the binary logarithm of how much more probable each level makes it,
  // up to a constant of the row, times how often the level counts. `own` is the label and weight of a sample that does
  // not count, the row itself.
  void find(const float* row, std::span<double> evidence, LabelCounts::Entry own = {0, 0}) const;

 private:
  const LevelCounts& counts_;
  double total_;                   // the weight of all samples, in units
  std::vector<double> strengths_;  // by feature: the number of samples at which a level counts half; infinite if never
  std::vector<double> rarities_;   // by label: the total weight divided by that of the label
};

}  // namespace onlineforest::orderfree
