// Left-out predictions of a forest over numbers, and the calibration fitted on them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/elementary.hpp"
#include "forest/relevance.hpp"
#include "forest/trial.hpp"
#include "numbers/gaussian_forest.hpp"
#include "numbers/mixture.hpp"

namespace onlineforest {

namespace {

constexpr std::size_t kFewestLeftOut = 256, kMostLeftOut = 1000, kLeftOutOneIn = 20;
constexpr std::uint64_t kSeedOfCalibration = 0x6361'6c69'6272'6174u;  // apart from the seeds of trees and trials

void require_finite(double x, const char* what, std::size_t i) {
  if (!std::isfinite(x)) {
    throw std::invalid_argument(std::string(what) + " of left-out point " + std::to_string(i) + " is " +
                                std::to_string(x) + ", which is not finite");
  }
}

void require_range(double x, double least, double largest, const char* what) {
  if (!(x >= least && x <= largest)) {
    throw std::invalid_argument(std::string("the ") + what + " of the calibration is " + std::to_string(x) +
                                ", outside [" + std::to_string(least) + ", " + std::to_string(largest) + "]");
  }
}

}  // namespace

// Calls use(i, mixture) for each slot, with the mixture of the forest without that point.
template <class Use>
void GaussianForest::for_each_left_out(std::span<const Slot> slots, const Call& call, Use use) const {
  constexpr std::size_t piece_size = 256;
  call.parallel_for((slots.size() + piece_size - 1) / piece_size, [&] {
    return [&, walk = walks_.lend(), mixtures = std::vector<std::vector<Component>>(piece_size)](
               std::size_t piece, StopProbe& stop) mutable {
      const std::size_t begin = piece * piece_size, n_here = std::min(piece_size, slots.size() - begin);
      for (auto& mixture : mixtures) mixture.clear();
      for (const TargetTree& tree : trees_) {  // a tree stays in cache for many points
        (*walk).leave_out(tree, points_, slots.subspan(begin, n_here), stop,
                          [&](std::size_t i, std::span<const Component> components) {
                            mixtures[i].insert(mixtures[i].end(), components.begin(), components.end());
                            stop.tick(components.size() * options_.n_features);
                          });
      }
      for (std::size_t i = 0; i < n_here; ++i) use(begin + i, Mixture(mixtures[i]));
    };
  });
}

std::vector<double> GaussianForest::predict_left_out(std::span<const Slot> slots, const Call& call) const {
  const auto pass = gate_.reading();
  for (const Slot slot : slots) {
    if (slot < 0 || static_cast<std::size_t>(slot) >= points_.size()) {
      throw std::invalid_argument("slot " + std::to_string(slot) + " is outside [0, " + std::to_string(points_.size()) +
                                  ")");
    }
  }
  for (std::size_t i = 0; i < trees_.size(); ++i) {
    if (trees_[i].n_points() < points_.size() || trees_[i].measure_pointer() != measure_) {
      throw std::invalid_argument("tree " + std::to_string(i) + " is not up to date");
    }
  }
  std::vector<double> result(2 * slots.size());
  if (!measure_) return result;  // no points, no slots
  const GaussianPrior& prior = measure_->prior;
  for_each_left_out(slots, call, [&](std::size_t i, const Mixture& mixture) {
    result[2 * i] = prior.trend.at(points_.row(slots[i])) + prior.scale * mixture.moments().mean;
    result[2 * i + 1] = prior.scale * std::sqrt(mixture.moments().variance);
  });
  return result;
}

// Calibrates after each refresh of the measure. A shard only computes its share of the left-out predictions.
void GaussianForest::settle(const Call& call) {
  if (!measure_ || n_calibrated_ == schedule_.n_refreshes()) return;
  if (!can_calibrate()) {
    calibration_ = {};
    left_out_.reset();
    awaits_calibration_ = false;
  } else if (options_.is_shard()) {
    left_out_ = leave_out(call);
    awaits_calibration_ = true;
  } else {
    calibration_ = calibration_from(leave_out(call), call);
  }
  n_calibrated_ = schedule_.n_refreshes();
}

std::optional<LeftOut> GaussianForest::take_left_out() {
  const auto pass = gate_.writing();
  return std::exchange(left_out_, std::nullopt);
}

void GaussianForest::set_calibration(Calibration calibration) {
  const auto pass = gate_.writing();
  require_valid(calibration);
  calibration_ = std::move(calibration);
  awaits_calibration_ = false;
}

Calibration GaussianForest::calibration() const {
  const auto pass = gate_.reading();
  return calibration_;
}

bool GaussianForest::can_calibrate() const {
  return options_.calibrates && points_.size() >= kFewestPoints && measure_->prior.scale > 0.0;
}

LeftOut GaussianForest::leave_out(const Call& call) const {
  const GaussianPrior& prior = measure_->prior;
  Rng rng(options_.seed ^ kSeedOfCalibration, points_.size());
  const std::size_t n_left_out = std::clamp(points_.size() / kLeftOutOneIn, kFewestLeftOut, kMostLeftOut);
  const std::vector<Slot> slots = draw_slots(points_.size(), n_left_out, rng);
  StopProbe stop = call.probe();
  const std::vector<double> leverage = leverages(prior.trend, points_, slots_of_trend(), slots, stop);
  std::vector<double> residuals;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // Trees leave the point out exactly, the trend by its leverage.
    residuals.push_back(prior.residual(points_.value(slots[i]), points_.expected(slots[i])) / (1.0 - leverage[i]));
  }
  std::vector<RowMixture> mixtures(slots.size());
  for_each_left_out(slots, call, [&](std::size_t i, const Mixture& mixture) {
    for (const Component& component : mixture.components()) mixtures[i].add(component, 0);
  });
  std::vector<Weight> weights;
  if (!points_.are_unweighted()) {
    for (const Slot slot : slots) weights.push_back(points_.weight(slot));
  }
  return {std::move(residuals), Mixtures::of_rows(std::move(mixtures)), std::move(weights)};
}

Calibration calibration_from(const LeftOut& left_out, const Call& call) {
  const std::size_t n = left_out.residuals.size();
  left_out.mixtures.check(n);
  if (n == 0) throw std::invalid_argument("a calibration needs at least one left-out point, got 0");
  if (!left_out.weights.empty() && left_out.weights.size() != n) {
    throw std::invalid_argument("there are " + std::to_string(left_out.weights.size()) + " weights for " +
                                std::to_string(n) + " left-out points");
  }
  check_weights(left_out.weights);
  std::vector<double> errors(n), variances(n);
  call.parallel_for(n, [&] {
    return [&, mixture = RowMixture()](std::size_t i, StopProbe& stop) mutable {
      left_out.mixtures.copy(i, mixture);
      const Moments moments = Mixture(mixture.components).moments();
      errors[i] = left_out.residuals[i] - moments.mean;
      variances[i] = moments.variance;
      require_finite(errors[i] * errors[i], "the squared error", i);
      require_finite(natural_log(variances[i]), "the log variance", i);
      stop.tick(mixture.components.size());
    };
  });
  Calibration fresh = most_likely(errors, variances, left_out.weights);
  fresh.levels.resize(n);
  call.parallel_for(n, [&] {
    return [&, row = RowMixture()](std::size_t i, StopProbe& stop) mutable {
      left_out.mixtures.copy(i, row);
      for (Component& component : row.components) component = fresh.with_noise(component);
      const Mixture mixture(row.components);
      fresh.levels[i] = mixture.distribution(mixture.moments().mean + errors[i] / fresh.scale);
      require_finite(fresh.levels[i], "the level", i);
      stop.tick(row.components.size() * 64);
    };
  });
  fresh.levels = quantiles_of(fresh.levels, left_out.weights);
  return fresh;
}

void GaussianForest::require_valid(const Calibration& calibration) const {
  constexpr double least_scale = 1e-7, largest = 1e70;
  require_range(calibration.noise, 0.0, largest, "noise");
  require_range(calibration.scale, least_scale, largest, "scale");
  for (const double level : calibration.levels) require_range(level, 0.0, 1.0, "level");
  if (!std::ranges::is_sorted(calibration.levels)) {
    throw std::invalid_argument("the levels of the calibration are not sorted");
  }
  if (!options_.calibrates && (calibration.scale != 1.0 || calibration.noise != 0.0 || !calibration.levels.empty())) {
    throw std::invalid_argument("the forest has a calibration although its option `calibrates` is off");
  }
}

}  // namespace onlineforest
