// Bounds on a box that is not known: for each dimension an interval that contains it, and the rate of cuts there.
// What is proposed from the bounds and lies outside the box is no cut of it; so blocks can be sampled with the true
// range of one dimension at a time. Knows nothing of trees.
//
// The bounds of a child are those of its parent but for a few dimensions. So there is one set of them, and changes
// are noted and taken back when the work goes from one child to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "points/box.hpp"

namespace onlineforest {

class Bounds {
 public:
  using Mark = std::size_t;

  // Starts with a box that contains the one to be known. `weights` must stay in place.
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

  float lower(std::size_t d) const { return lower_[d]; }
  float upper(std::size_t d) const { return upper_[d]; }

  void set(std::size_t d, float lower, float upper) {
    changes_.push_back({static_cast<std::uint32_t>(d), lower_[d], upper_[d]});
    assign(d, lower, upper);
  }

  Mark mark() const { return changes_.size(); }

  // Takes back what was set since the mark.
  void rewind(Mark mark) {
    while (changes_.size() > mark) {
      const Change& change = changes_.back();
      assign(change.dimension, change.lower, change.upper);
      changes_.pop_back();
    }
  }

  // The rate of cuts within the bounds. Summed afresh from the groups: a running total would miss an exact 0.
  double total() const {
    double total = 0.0;
    for (const double sum : sums_) total += sum;
    return total;
  }

  std::size_t choose_dimension(Rng& rng, double total) const {
    const auto choice = rng.choose<kGroup>(
        total, rates_.size(), [this](std::size_t begin, std::size_t) { return sums_[begin / kGroup]; },
        [this](std::size_t d) { return rates_[d]; });
    return choice.index;
  }

 private:
  // Rates are summed in groups of this many, so that a change costs no pass over all of them.
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

}  // namespace onlineforest
