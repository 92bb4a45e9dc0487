// The measure of a forest: when it is refreshed, and from what.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "mondrian/forest/forest.hpp"
#include "mondrian/forest/relevance.hpp"
#include "mondrian/forest/trial.hpp"
#include "mondrian/tree/stages.hpp"

namespace onlineforest::mondrian {

void Forest::refresh_measure(const Call& call) {
  const std::size_t n = points_.size();
  if (n == 0 || !schedule_.is_due()) return;
  const Learned learned = learn_measure(call);
  std::vector<float> lower(options_.n_features), upper(options_.n_features);
  start_box(lower.data(), upper.data(), points_.box(0), options_.n_features);
  for (std::size_t i = 1; i < n; ++i) {
    include(lower.data(), upper.data(), points_.box(static_cast<Slot>(i)), options_.n_features);
  }
  schedule_.refresh(measure_, {lower.data(), upper.data()}, learned, n);
}

// Estimates the measure from the points: a function of the points and the options alone.
Learned Forest::learn_measure(const Call& call) const {
  Learned learned{std::vector<double>(options_.n_features, 1.0), options_.discount,
                  options_.learns_leaf_discount ? kUsualLeafDiscount : options_.leaf_discount};
  const bool learns_weights = options_.weight_rule == WeightRule::kLearned;
  if (!learns_weights && !options_.learns_leaf_discount) return learned;
  if (!is_trial_possible(points_.size(), n_classes_)) return learned;
  Chosen chosen = choose_measure(points_, n_classes_, options_, call);
  learned.shares = std::move(chosen.shares);
  learned.leaf_discount = chosen.leaf_discount;
  return learned;
}

void Forest::refresh(const Call& call) {
  const auto pass = gate_.writing();
  bring_up_to_date(call);  // finishes what a stopped call left
  schedule_.make_due();
  bring_up_to_date(call);
}

std::vector<double> Forest::relevance(const Call& call) const {
  const auto pass = gate_.reading();
  require(points_.size() > 0, "the forest holds no samples: learn some first");
  StopProbe stop = call.probe();
  const Columns columns(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  return measure_relevance(points_, columns, n_classes_, ~options_.seed, call);
}

void Forest::set_leaf_discount(double leaf_discount) {
  const auto pass = gate_.writing();
  if (!measure_) return;
  const MeasurePointer old = std::exchange(
      measure_, std::make_shared<const Measure>(measure_->weights, measure_->discount_rate, leaf_discount));
  for (LabelTree& tree : trees_) {
    if (tree.measure_pointer() == old) tree.set_measure(measure_);
  }
}

void Forest::learn_points(PointStore points, std::int32_t n_classes, const Call& call) {
  const auto pass = gate_.writing();
  points_ = std::move(points);
  n_classes_ = n_classes;
  schedule_.add_points(points_.size());
  bring_up_to_date(call);
}

Measure Forest::measure() const {
  const auto pass = gate_.reading();
  return measure_ ? *measure_ : Measure();
}

}  // namespace onlineforest::mondrian
