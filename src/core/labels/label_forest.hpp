// A forest of classification trees. Knows nothing of class names: labels are the numbers 0, 1, ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "base/pool.hpp"
#include "forest/forest.hpp"
#include "labels/label_options.hpp"
#include "labels/label_target.hpp"
#include "labels/label_walk.hpp"

namespace onlineforest {

extern template class Forest<LabelTarget, LabelOptions>;

class LabelForest : public Forest<LabelTarget, LabelOptions> {
 public:
  static constexpr std::size_t kWidthWithoutRows = 0;  // columns of a prediction for no rows

  // The part of its state that other forests do not have.
  struct Extra {
    std::int32_t n_classes = 0;
  };

  explicit LabelForest(LabelOptions options) : Forest(std::move(options)) {}

  // Learns points with labels in [0, n_classes); see Forest::learn_samples. predict() then returns the mean of the
  // trees' distributions, n_rows x n_classes; the uniform distribution while no tree is grown.
  void learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes,
             const Call& call = Call(), bool one_by_one = false, std::span<const Weight> weights = {});

  // Predicts with another leaf discount until the next refresh of the measure.
  void set_leaf_discount(double leaf_discount);

  std::int32_t n_classes() const;
  std::int32_t current_n_classes() const { return n_classes_; }  // only inside read()

 private:
  template <class ForestType>
  friend class Archive;

  class DistributionSummation;

  Learned<LabelPrior> learn_measure(const Call& call) const override;
  std::vector<double> relevance_of_features(const Columns& columns, std::uint64_t seed,
                                            const Call& call) const override;
  std::unique_ptr<const TargetSummation> prediction() const override;
  void prepare(LabelTarget& target) const override {
    target.reserve_classes(n_classes_);
    if (points_.has_light()) target.expect_light_points();
  }

  Extra extra() const { return {n_classes_}; }
  void restore(const Extra& extra);  // after the points; throws std::invalid_argument if it contradicts them

  std::int32_t n_classes_ = 0;
  mutable Pool<LabelWalk> walks_;
};

}  // namespace onlineforest
