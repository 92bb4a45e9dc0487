#include "numbers/gaussian_forest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "forest/stages.hpp"
#include "forest/trial.hpp"
#include "numbers/gaussian_subject.hpp"
#include "numbers/trend_choice.hpp"

namespace onlineforest {

template class Forest<GaussianTarget, GaussianOptions>;

namespace {

constexpr std::size_t kTrendPoints = 4096;  // at most, to fit a trend

void require_value(double value) {
  if (!(std::abs(value) <= kLargestValue)) {
    throw std::invalid_argument("value " + std::to_string(value) + " is outside [-1e150, 1e150]");
  }
}

}  // namespace

void GaussianForest::learn(std::span<const float> rows, std::span<const double> values, const Call& call,
                           bool one_by_one, std::span<const Weight> weights) {
  const auto pass = gate_.writing();
  const Samples<double> samples{rows, values, weights};
  check_samples(samples);
  for (const double value : values) require_value(value);
  learn_samples(samples, one_by_one, call, [] {});
}

// A value is too far from the intercept for the scale; with a scale of 0, any value but the learned one.
std::size_t GaussianForest::n_until_outdated(std::span<const double> values) const {
  if (!measure_) return values.size() + 1;
  const double middle = measure_->prior.trend.intercept, most = kLargestResidual * measure_->prior.scale;
  const auto other = std::ranges::find_if(values, [&](double y) { return std::abs(y - middle) > most; });
  return static_cast<std::size_t>(other - values.begin()) + 1;
}

Learned<GaussianPrior> GaussianForest::learn_measure(const Call& call) const {
  StopProbe stop = call.probe();
  const std::vector<Slot> slots = slots_of_trend();
  const bool has_enough = points_.size() >= kFewestPoints;
  const std::size_t n_knots = options_.has_trend && has_enough ? best_knots(points_, options_.seed, stop) : 1;
  Trend trend = fit_trend(points_, slots, n_knots, stop);
  double scale = deviation_from(trend, points_, slots);
  // The drawn points may lack rare values, and the trend must leave something for the trees to predict.
  if (!is_in_proportion(trend, scale, stop) || (!(scale > 0.0) && !trend.is_constant())) {
    const GaussianPrior constant = prior_without_measure();
    trend = constant.trend;
    scale = constant.scale;
  }
  const double apart = scale > 0.0 ? deviation_of(trend, points_, slots) / scale : 0.0;
  const GaussianPrior prior{std::move(trend), scale, 1.0, std::min(apart * apart, kLargestTrendVariance)};

  const GaussianSubject subject(options_, prior);
  Learned<GaussianPrior> learned{std::vector<double>(options_.n_features, 1.0), subject.usual().discount, prior};
  learned.prior.noise = subject.usual().noise;
  const bool learns_weights = options_.weight_rule == WeightRule::kLearned;
  if (!has_enough || !(scale > 0.0)) return learned;
  if (!learns_weights && !options_.learns_discount && !options_.learns_noise) return learned;
  const auto result = Trial(subject, points_, options_, call).run();
  learned.discount = result.tuning.discount;
  learned.prior.noise = result.tuning.noise;
  learned.shares = learned_shares(subject, points_, result.power, options_.seed, call);
  return learned;
}

std::vector<double> GaussianForest::relevance_of_features(const Columns& columns, std::uint64_t seed,
                                                          const Call& call) const {
  const GaussianPrior prior = prior_without_measure();
  return GaussianSubject(options_, prior).relevance(points_, columns, seed, call);
}

void GaussianForest::set_tuning(double discount, double noise) {
  const auto pass = gate_.writing();
  if (!measure_) return;
  TargetMeasure measure = *measure_;
  if (options_.discount > 0.0) measure.discount_rate *= discount / options_.discount;
  measure.prior.noise = noise;
  options_.discount = discount;
  options_.noise = noise;
  set_measure(std::move(measure));
}

GaussianPrior GaussianForest::prior_without_measure() const {
  if (points_.size() == 0) throw std::invalid_argument("the forest holds no samples: learn some first");
  std::vector<Slot> slots(points_.size());
  std::iota(slots.begin(), slots.end(), Slot{0});
  const Call unstoppable;
  StopProbe stop = unstoppable.probe();
  Trend trend = fit_trend(points_, slots, 1, stop);
  const double scale = deviation_from(trend, points_, slots);
  return {std::move(trend), scale, 1.0};
}

bool GaussianForest::is_in_proportion(const Trend& trend, double scale, StopProbe& stop) const {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    if (std::abs(points_.value(slot) - trend.at(points_.row(slot))) > kLargestResidual * scale) return false;
    stop.tick(4 * options_.n_features);
  }
  return true;
}

std::vector<Slot> GaussianForest::slots_of_trend() const {
  Rng rng(options_.seed ^ kSeedOfTrend, ~points_.size());
  return draw_slots(points_.size(), kTrendPoints, rng);
}

void GaussianForest::set_expected(std::size_t first) {
  points_.set_expected(first, [this](const float* row) { return measure_->prior.trend.at(row); });
}

void GaussianForest::on_emptied() {
  calibration_ = {};
  left_out_.reset();
  awaits_calibration_ = false;
  n_calibrated_ = 0;
}

void GaussianForest::restore(const Extra& extra) {
  for (const double value : points_.values()) require_value(value);
  require_valid(extra.calibration);
  calibration_ = extra.calibration;
  n_calibrated_ = extra.n_calibrated;
}

}  // namespace onlineforest
