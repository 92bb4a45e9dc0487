// Bounds on a box that is not computed: one interval per dimension that contains the box, and its rate of cuts. Must
// not know trees.
//
// A cut proposed from the bounds that misses the box is rejected. So a block can be sampled with the true range of only
// the proposed dimensions.
//
// The bounds of a child differ from those of its parent in a few dimensions. So there is a single set of bounds, with a
// log of changes: `mark` and `rewind` undo them when sampling moves from one child to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "mondrian/points/box.hpp"

namespace onlineforest::mondrian {

class Bounds {
 public:
  using Mark = std::size_t;

  // Starts with a box that contains all points of the block. `weights` must outlive this.
  void start(const double* weights, BoxView box, std::size_t n_features) {
    weights_ = weights;
    lower_.assign(box.lower, box.lower + n_features);
    upper_.assign(box.upper, box.upper + n_features);
    changes_.clear();
    const std::size_t n_groups = (n_features + kGroup - 1) / kGroup;
    rates_.assign(n_groups * kGroup, 0.0);
    sums_.resize(n_groups);
    for (std::size_t d = 0; d < n_features; ++d) rates_[d] = rate(d);
    for (std::size_t g = 0; g < n_groups; ++g) sums_[g] = group_sum(g);
  }

  [[nodiscard]] float lower(std::size_t d) const { return lower_[d]; }
  [[nodiscard]] float upper(std::size_t d) const { return upper_[d]; }

  // Narrows the bounds of dimension d.
  void set(std::size_t d, float lower, float upper) {
    changes_.push_back({static_cast<std::uint32_t>(d), lower_[d], upper_[d]});
    assign(d, lower, upper);
  }

  [[nodiscard]] Mark mark() const { return changes_.size(); }

  // Undoes all calls of set() since the mark.
  void rewind(Mark mark) {
    while (changes_.size() > mark) {
      const Change& change = changes_.back();
      assign(change.dimension, change.lower, change.upper);
      changes_.pop_back();
    }
  }

  // The rate of cuts within the bounds. Summed from the groups: rounding would keep a running total from reaching 0.
  [[nodiscard]] double total() const {
    double total = 0.0;
    for (const double sum : sums_) total += sum;
    return total;
  }

  // Draws a dimension with probability proportional to its rate.
  [[nodiscard]] std::size_t choose_dimension(Rng& rng, double total) const {
    const auto choice = rng.choose<kGroup>(
        total, rates_.size(), [this](std::size_t begin, std::size_t) { return sums_[begin / kGroup]; },
        [this](std::size_t d) { return rates_[d]; });
    return choice.index;
  }

 private:
  // Rates are summed in groups, so that a change of one rate updates one group only.
  static constexpr std::size_t kGroup = 8;

  struct Change {
    std::uint32_t dimension;
    float lower, upper;
  };

  double rate(std::size_t d) const { return weights_[d] * length(lower_[d], upper_[d]); }

  double group_sum(std::size_t g) const {
    const double* r = rates_.data() + g * kGroup;
    return ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }

  void assign(std::size_t d, float lower, float upper) {
    lower_[d] = lower;
    upper_[d] = upper;
    rates_[d] = rate(d);
    sums_[d / kGroup] = group_sum(d / kGroup);
  }

  const double* weights_ = nullptr;
  std::vector<float> lower_, upper_;
  std::vector<double> rates_, sums_;
  std::vector<Change> changes_;
};

}  // namespace onlineforest::mondrian
