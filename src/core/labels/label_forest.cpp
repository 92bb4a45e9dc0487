#include "labels/label_forest.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>

#include "forest/relevance.hpp"
#include "forest/sums.hpp"
#include "forest/trial.hpp"
#include "labels/label_impurity.hpp"

namespace onlineforest {

namespace {

constexpr std::size_t kTestedNumbers = std::size_t{1} << 22;  // at most: points tested times classes
constexpr std::size_t kMostClasses = kTestedNumbers / 16;     // beyond, too few points could be tested
constexpr double kLeastProbability = 1e-9;                    // in a loss

// What is tried. The first is the usual choice, which another must beat clearly.
constexpr double kLeafDiscounts[] = {0.3, 0.03, 0.1, 0.6, 0.9};

// A trial of forests over labels: what is tuned is the leaf discount, by the log loss.
class LabelSubject {
 public:
  using Forest = LabelForest;
  using Tuning = double;

  LabelSubject(std::int32_t n_classes, const LabelOptions& options)
      : n_classes_(n_classes), leaf_discounts_(kLeafDiscounts) {
    if (!options.learns_leaf_discount) leaf_discounts_ = std::span(&options.leaf_discount, 1);
  }

  // Fewer where there are very many classes, for predictions take memory and time for each.
  std::size_t most_tested() const { return kTestedNumbers / static_cast<std::size_t>(n_classes_); }

  static LabelOptions fixed(LabelOptions options) {
    options.learns_leaf_discount = false;
    return options;
  }

  std::vector<double> relevance(const PointStore<Label>& points, const Columns& columns, std::uint64_t seed,
                                std::size_t n_threads, StopSignal& signal) const {
    return measure_relevance(columns, seed, n_threads, signal,
                             [&] { return LabelImpurity(points.values(), n_classes_); });
  }

  void learn(LabelForest& forest, const PointStore<Label>& points, std::size_t n_threads,
             const StopRequested& requested) const {
    forest.learn(points.rows(), points.values(), n_classes_, n_threads, requested);
  }

  Losses losses(LabelForest& forest, const PointStore<Label>& tested, double leaf_discount, std::size_t n_threads,
                const StopRequested& requested) const {
    forest.set_leaf_discount(leaf_discount);
    const std::vector<double> predicted = forest.predict(tested.rows(), n_threads, requested);
    Losses losses;
    for (std::size_t i = 0; i < tested.size(); ++i) {
      const auto label = static_cast<std::size_t>(tested.value(static_cast<Slot>(i)));
      const double p = predicted[i * static_cast<std::size_t>(n_classes_) + label];
      losses.each.push_back(-std::log(std::max(p, kLeastProbability)));
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

}  // namespace

void LabelForest::learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes,
                        std::size_t n_threads, const StopRequested& requested, bool one_by_one) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  if (n_rows(rows) != labels.size()) throw std::invalid_argument("rows and labels differ in number");
  if (n_classes < n_classes_) throw std::invalid_argument("the number of classes cannot shrink");
  for (const Label label : labels) {
    if (label < 0 || label >= n_classes) throw std::invalid_argument("a label lies outside [0, n_classes)");
  }
  learn_values(rows, labels, n_threads, requested, one_by_one, [&] { n_classes_ = n_classes; });
}

Learned<LabelPrior> LabelForest::learn_measure(std::size_t n_threads, StopSignal& signal) const {
  Learned<LabelPrior> learned{std::vector<double>(options_.n_features, 1.0),
                              options_.discount,
                              {options_.learns_leaf_discount ? kLeafDiscounts[0] : options_.leaf_discount}};
  const bool learns_weights = options_.weight_rule == WeightRule::kLearned;
  if (!learns_weights && !options_.learns_leaf_discount) return learned;
  if (points_.size() < kFewestPoints || static_cast<std::size_t>(n_classes_) > kMostClasses) return learned;
  const LabelSubject subject(n_classes_, options_);
  const auto result = Trial(subject, points_, options_, n_threads, signal).run();
  learned.prior.leaf_discount = result.tuning;
  learned.shares = learned_shares(subject, points_, result.power, options_.seed, n_threads, signal);
  return learned;
}

std::vector<double> LabelForest::relevance_of_features(const Columns& columns, std::uint64_t seed,
                                                       std::size_t n_threads, StopSignal& signal) const {
  return LabelSubject(n_classes_, options_).relevance(points_, columns, seed, n_threads, signal);
}

void LabelForest::set_leaf_discount(double leaf_discount) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  if (measure_) set_measure({measure_->weights, measure_->discount_rate, {leaf_discount}});
}

auto LabelForest::prediction() const {
  const std::size_t k = static_cast<std::size_t>(n_classes_);
  return Prediction{LabelWalk::width(n_classes_),
                    k,
                    [this] { return walks_.lend(); },
                    [this](std::span<const TargetTree> trees, const Queries& queries, Pool<LabelWalk>::Loan& walk,
                           double* sums, StopProbe& stop) {
                      (*walk).add_predictions(trees, points_, queries, n_classes_, sums,
                                              [&stop](std::size_t work) { stop.tick(work); });
                    },
                    [this, k](const Completed& queries, std::vector<double> sums, std::size_t n_grown) {
                      if (n_grown == 0) return std::vector<double>(queries.size() * k, 1.0 / static_cast<double>(k));
                      LabelWalk::finish(sums, n_classes_, static_cast<double>(n_grown));
                      return sums;
                    },
                    MeanOfCompletions{k}};
}

std::vector<double> LabelForest::predict(std::span<const float> rows, std::size_t n_threads,
                                         const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  const std::size_t k = static_cast<std::size_t>(n_classes_);
  if (n_grown() == 0) return std::vector<double>(n_rows(rows) * k, 1.0 / static_cast<double>(k));
  StopSignal signal(requested);
  return predicted(prediction(), rows, n_threads, signal);
}

Terms LabelForest::predict_terms(std::span<const float> rows, std::size_t n_threads,
                                 const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  StopSignal signal(requested);
  return terms(prediction(), rows, n_threads, signal);
}

std::vector<double> LabelForest::predict_from(std::span<const float> rows, const TreeSums& sums,
                                              const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  StopSignal signal(requested);
  std::vector<double> result = finished(prediction(), rows, sums, signal);
  // As predict() has it: a mean of completions would not be even to the last bit.
  if (sums.n_grown == 0) std::ranges::fill(result, 1.0 / static_cast<double>(n_classes_));
  return result;
}

void LabelForest::restore(const Extra& extra) {
  if (extra.n_classes < 0) throw std::invalid_argument("the number of classes is negative");
  for (const Label label : points_.values()) {
    if (label < 0 || label >= extra.n_classes) throw std::invalid_argument("a label is no class");
  }
  n_classes_ = extra.n_classes;
}

std::int32_t LabelForest::n_classes() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return n_classes_;
}

}  // namespace onlineforest
