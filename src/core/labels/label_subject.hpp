// The subject of a trial of forests over labels: it tunes the leaf discount by the log loss.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/call.hpp"
#include "base/elementary.hpp"
#include "forest/relevance.hpp"
#include "forest/trial.hpp"
#include "labels/label_forest.hpp"
#include "labels/label_impurity.hpp"

namespace onlineforest {

// Candidates. The first is the default, which another must clearly beat.
inline constexpr double kLeafDiscounts[] = {0.3, 0.03, 0.1, 0.6, 0.9};

class LabelSubject {
 public:
  using Forest = LabelForest;
  using Tuning = double;

  // With more classes, too few points could be tested within kTestedNumbers.
  static constexpr std::size_t kTestedNumbers = std::size_t{1} << 22;  // at most: points tested times classes
  static constexpr std::size_t kMostClasses = kTestedNumbers / 16;

  LabelSubject(std::int32_t n_classes, const LabelOptions& options)
      : n_classes_(n_classes), leaf_discounts_(kLeafDiscounts) {
    if (!options.learns_leaf_discount) leaf_discounts_ = std::span(&options.leaf_discount, 1);
  }

  // Predictions take memory and time for each class, so fewer points are tested where there are many classes.
  std::size_t most_tested() const { return kTestedNumbers / static_cast<std::size_t>(n_classes_); }

  static LabelOptions fixed(LabelOptions options) {
    options.learns_leaf_discount = false;
    return options;
  }

  std::vector<double> relevance(const PointStore<Label>& points, const Columns& columns, std::uint64_t seed,
                                const Call& call) const {
    std::vector<double> buffer;
    const RelativeWeights weights(points, buffer);
    return measure_relevance(columns, weights, seed, call,
                             [&] { return LabelImpurity(points.values(), n_classes_, weights); });
  }

  void learn(LabelForest& forest, const PointStore<Label>& points, const Call& call) const {
    forest.learn(points.rows(), points.values(), n_classes_, call, false, points.weights());
  }

  Losses losses(LabelForest& forest, const PointStore<Label>& tested, double leaf_discount, const Call& call) const {
    constexpr double least_probability = 1e-9;
    forest.set_leaf_discount(leaf_discount);
    const std::vector<double> predicted = forest.predict(tested.rows(), call);
    Losses losses;
    for (std::size_t i = 0; i < tested.size(); ++i) {
      const auto label = static_cast<std::size_t>(tested.value(static_cast<Slot>(i)));
      const double p = predicted[i * static_cast<std::size_t>(n_classes_) + label];
      losses.add(-natural_log(std::max(p, least_probability)), tested.multiplicity(static_cast<Slot>(i)));
    }
    return losses;
  }

  template <class Evaluate>
  Tuned<double> start(const Tuned<double>*, Evaluate evaluate) const {
    return {leaf_discounts_.front(), evaluate(leaf_discounts_.front())};
  }

  template <class Evaluate>
  double finish(const Tuned<double>& start, Evaluate evaluate) const {
    std::vector<Losses> all{start.losses};
    for (const double leaf_discount : leaf_discounts_.subspan(1)) all.push_back(evaluate(leaf_discount));
    return leaf_discounts_[best_of(all, 0)];
  }

 private:
  std::int32_t n_classes_;
  std::span<const double> leaf_discounts_;
};

}  // namespace onlineforest
