// The beliefs that a regression tree keeps about the values below its nodes, and when a block may pause. Knows no boxes
// or cuts.
//
// Every node has a mean mu_j. Above the root it is 0. Along an edge from time a to time b it changes by a normal of
// variance prior_variance (exp(-gamma a) - exp(-gamma b)). A value is the mean of its leaf plus noise. All are in units
// of the residuals from the trend.
// Differs from Lakshminarayanan, Roy and Teh (2016): exp instead of the logistic function, so that moments over the
// time of separation have a closed form.
//
// A node stores the belief about mu_j given the values below j, a normal. It depends on the subtree alone. The variance
// of the edge above is added when the belief is read, because that edge changes when a node is inserted above.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/compiler.hpp"
#include "base/elementary.hpp"
#include "numbers/trend.hpp"
#include "points/point_store.hpp"
#include "points/weight.hpp"
#include "process/measure.hpp"
#include "tree/node_store.hpp"
#include "tree/pausing.hpp"

namespace onlineforest {

struct Belief {
  double mean = 0.0, variance = 0.0;
};

// Combines two independent beliefs about the same mean. Variances may be 0.
inline Belief combined(Belief a, Belief b) {
  const double total = a.variance + b.variance;
  const double share = total > 0.0 ? a.variance / total : 0.5;  // of b
  return {a.mean + share * (b.mean - a.mean), share * b.variance};
}

// The largest |value|; its square is finite.
inline constexpr double kLargestValue = 1e150;
inline constexpr double kLargestTrendVariance = 1e20;
inline constexpr double kLargestResidual =
    1e50;  // in units of the scale; a larger residual makes the scale out of date

struct GaussianPrior {
  Trend trend;
  double scale = 0.0;           // standard deviation of the residuals from the trend
  double noise = 1.0;           // variance around the mean of a leaf, in units of scale^2; at most 1
  double trend_variance = 0.0;  // of the trend itself over the points, in units of scale^2

  double prior_variance() const { return 1.0 - noise; }

  // The residual of a value in units of the scale.
  double residual(double value, double expected) const { return scale > 0.0 ? (value - expected) / scale : 0.0; }

  bool operator==(const GaussianPrior&) const = default;
};

class GaussianTarget : public PausingRule<GaussianTarget> {
 public:
  using Value = double;
  using Prior = GaussianPrior;
  using Points = PointStore<Value>;
  using Slots = std::span<const Slot>;

  static constexpr bool kFromChildren = true, kKeepsOrder = true;  // see TreeTarget

  static constexpr bool is_from_children() { return true; }

  explicit GaussianTarget(std::int32_t min_samples_split) : PausingRule(min_samples_split) {}

  // A target without nodes and without a measure.
  GaussianTarget empty_copy() const { return GaussianTarget(min_samples_split()); }

  // Makes all stored beliefs out of date. The measure must outlive the target.
  void set_measure(const MeasureWith<GaussianPrior>& measure) {
    prior_ = &measure.prior;
    discount_rate_ = measure.discount_rate;
  }

  // Sets the split time of a node.
  void set_time(NodeIndex j, double time) { state(j).fade = fade_at(time); }

  void expect_nodes(std::size_t n_nodes) { states_.reserve(n_nodes); }

  void reserve_nodes(std::size_t n_nodes) {
    if (states_.size() < n_nodes) resize_tightly(states_, n_nodes, State());
  }

  bool holds_only(NodeIndex leaf, const Node& node, const Points& points, double value) const {
    return !state(leaf).is_mixed && points.value(node.first_point) == value;
  }

  // Adds points to a leaf that holds `n_points`, 0 for a new leaf; `one` is one of the points it holds.
  void add_to_leaf(NodeIndex leaf, std::int32_t n_points, Slot one, const Points& points, Slots slots) {
    State& s = state(leaf);
    for (const Slot slot : slots) {
      const double value = points.value(slot);
      if (n_points++ == 0) {
        one = slot;
        s.belief.mean = 0.0;
        s.weight = 0;
        s.is_mixed = false;
      } else if (value != points.value(one)) {
        s.is_mixed = true;
      }
      s.weight += points.weight(slot);
      s.belief.mean += (prior_->residual(value, points.expected(slot)) - s.belief.mean) * points.multiplicity(slot) /
                       multiplicity(s.weight);
    }
    s.belief.variance = prior_->noise / multiplicity(s.weight);
  }

  // Removes a point from a leaf that keeps the points others(), at least one.
  template <class Others>
  void remove_from_leaf(NodeIndex leaf, const Points& points, Slot slot, std::int32_t, Others others) {
    reweigh_leaf(leaf, points, -points.weight(slot), others);
  }

  // Follows a change of the total weight of a leaf that now has the points all(). Unless all values are equal,
  // recomputes the mean from them: subtracting from a mean would leave a rounding error behind.
  template <class All>
  void reweigh_leaf(NodeIndex leaf, const Points& points, Weight by, All all) {
    State& s = state(leaf);
    if (!s.is_mixed && prior_->trend.is_constant()) {
      s.weight += by;
      s.belief.variance = prior_->noise / multiplicity(s.weight);
      return;
    }
    clear(leaf);
    add_to_leaf(leaf, 0, kNoSlot, points, all());
  }

  std::size_t size(NodeIndex) const { return 1; }

  bool is_mixed(NodeIndex leaf) const { return state(leaf).is_mixed; }

  void truncate(std::size_t n_nodes) { states_.resize(n_nodes); }

  // Sets an internal node from its children.
  void combine(NodeIndex j, NodeIndex left, NodeIndex right) {
    state(j).belief = combined(message(left, state(j).fade), message(right, state(j).fade));
  }

  // Updates an internal node after a child lost a point. Returns true, because the belief always changes.
  bool remove_one(NodeIndex j, NodeIndex left, NodeIndex right, double) {
    combine(j, left, right);
    return true;
  }

  void clear(NodeIndex leaf) {
    state(leaf).belief = {};
    state(leaf).weight = 0;
    state(leaf).is_mixed = false;
  }

  // Moves the contents of a node to another.
  void move(NodeIndex from, NodeIndex to) { state(to) = state(from); }

  std::size_t nbytes() const { return states_.capacity() * sizeof(State); }

  // exp(-gamma t): the fraction of the prior variance that accrues after time t.
  double fade_at(double time) const { return discount_rate_ > 0.0 ? natural_exp(-discount_rate_ * time) : 1.0; }

  ONLINEFOREST_ALWAYS_INLINE void prefetch_state(NodeIndex j) const { prefetch(&state(j)); }

  double fade(NodeIndex j) const { return state(j).fade; }  // at the split time
  const Belief& belief(NodeIndex j) const { return state(j).belief; }
  Weight weight(NodeIndex leaf) const { return state(leaf).weight; }  // of all points of a leaf

  // The variance of an edge, from the fades at its start and its end.
  double edge_variance(double from, double to) const { return prior_->prior_variance() * (from - to); }

  // The belief about a mean above j, given the values below j.
  Belief message(NodeIndex j, double fade_above) const { return message(belief(j), fade(j), fade_above); }
  Belief message(Belief below, double fade_below, double fade_above) const {
    return {below.mean, below.variance + edge_variance(fade_above, fade_below)};
  }

 private:
  struct State {
    Belief belief;
    double fade = 0.0;
    Weight weight : 63 = 0;     // of the points of a leaf; the flag fits beside it in a word
    bool is_mixed : 1 = false;  // a leaf that holds different values
  };

  State& state(NodeIndex j) { return states_[static_cast<std::size_t>(j)]; }
  const State& state(NodeIndex j) const { return states_[static_cast<std::size_t>(j)]; }

  const GaussianPrior* prior_ = nullptr;
  double discount_rate_ = 0.0;
  std::vector<State> states_;
};

}  // namespace onlineforest
