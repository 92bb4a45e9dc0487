// A forest of classification trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "forest/forest.hpp"
#include "labels/label_options.hpp"
#include "labels/label_target.hpp"
#include "labels/label_walk.hpp"

namespace onlineforest {

class LabelForest : public Forest<LabelTarget, LabelOptions> {
 public:
  // What its state has that those of other forests have not.
  struct Extra {
    std::int32_t n_classes = 0;
  };

  explicit LabelForest(LabelOptions options) : Forest(std::move(options)) {}

  // Learns points with labels in [0, n_classes); see Forest::learn_values.
  void learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes, std::size_t n_threads,
             const StopRequested& requested = {}, bool one_by_one = false);

  // The mean of the trees' distributions, n_rows x n_classes. Uniform before anything is learned.
  std::vector<double> predict(std::span<const float> rows, std::size_t n_threads,
                              const StopRequested& requested = {}) const;

  // The same for a part of a forest, in two steps, as with novelty.
  Terms predict_terms(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested = {}) const;
  std::vector<double> predict_from(std::span<const float> rows, const TreeSums& sums,
                                   const StopRequested& requested = {}) const;

  // Predicts with another discount at the leaves, until the measure is computed anew.
  void set_leaf_discount(double leaf_discount);

  std::int32_t n_classes() const;
  std::int32_t current_n_classes() const { return n_classes_; }  // only inside read()

 private:
  template <class ForestType>
  friend class Archive;

  Learned<LabelPrior> learn_measure(std::size_t n_threads, StopSignal& signal) const override;
  std::vector<double> relevance_of_features(const Columns& columns, std::uint64_t seed, std::size_t n_threads,
                                            StopSignal& signal) const override;
  void prepare(LabelTarget& target) const override { target.reserve_classes(n_classes_); }

  auto prediction() const;

  Extra extra() const { return {n_classes_}; }
  void restore(const Extra& extra);  // after the points; throws std::invalid_argument if it makes no sense

  std::int32_t n_classes_ = 0;
  mutable Pool<LabelWalk> walks_;
};

}  // namespace onlineforest
