#include "labels/label_forest.hpp"

#include <stdexcept>
#include <string>

#include "forest/stages.hpp"
#include "forest/trial.hpp"
#include "labels/label_subject.hpp"

namespace onlineforest {

template class Forest<LabelTarget, LabelOptions>;

namespace {

void require_label(Label label, std::int32_t n_classes) {
  if (label < 0 || label >= n_classes) {
    throw std::invalid_argument("label " + std::to_string(label) +
                                " is outside [0, n_classes = " + std::to_string(n_classes) + ")");
  }
}

}  // namespace

void LabelForest::learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes,
                        const Call& call, bool one_by_one, std::span<const Weight> weights) {
  const auto pass = gate_.writing();
  const Samples<Label> samples{rows, labels, weights};
  check_samples(samples);
  if (n_classes < n_classes_) {
    throw std::invalid_argument("n_classes is " + std::to_string(n_classes) + ", but the forest knows " +
                                std::to_string(n_classes_) + " classes already");
  }
  for (const Label label : labels) require_label(label, n_classes);
  learn_samples(samples, one_by_one, call, [&] { n_classes_ = n_classes; });
}

Learned<LabelPrior> LabelForest::learn_measure(const Call& call) const {
  Learned<LabelPrior> learned{std::vector<double>(options_.n_features, 1.0),
                              options_.discount,
                              {options_.learns_leaf_discount ? kLeafDiscounts[0] : options_.leaf_discount}};
  const bool learns_weights = options_.weight_rule == WeightRule::kLearned;
  if (!learns_weights && !options_.learns_leaf_discount) return learned;
  if (points_.size() < kFewestPoints) return learned;
  if (static_cast<std::size_t>(n_classes_) > LabelSubject::kMostClasses) return learned;
  const LabelSubject subject(n_classes_, options_);
  const auto result = Trial(subject, points_, options_, call).run();
  learned.prior.leaf_discount = result.tuning;
  learned.shares = learned_shares(subject, points_, result.power, options_.seed, call);
  return learned;
}

std::vector<double> LabelForest::relevance_of_features(const Columns& columns, std::uint64_t seed,
                                                       const Call& call) const {
  return LabelSubject(n_classes_, options_).relevance(points_, columns, seed, call);
}

void LabelForest::set_leaf_discount(double leaf_discount) {
  const auto pass = gate_.writing();
  if (measure_) set_measure({measure_->weights, measure_->discount_rate, {leaf_discount}});
}

void LabelForest::restore(const Extra& extra) {
  if (extra.n_classes < 0) {
    throw std::invalid_argument("n_classes must be at least 0, got " + std::to_string(extra.n_classes));
  }
  for (const Label label : points_.values()) require_label(label, extra.n_classes);
  n_classes_ = extra.n_classes;
}

std::int32_t LabelForest::n_classes() const {
  const auto pass = gate_.reading();
  return n_classes_;
}

}  // namespace onlineforest
