// The subject of a trial of forests over numbers: it tunes the discount and the noise by the squared error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "forest/relevance.hpp"
#include "forest/trial.hpp"
#include "numbers/gaussian_forest.hpp"
#include "numbers/variance_impurity.hpp"

namespace onlineforest {

struct GaussianTuning {
  double discount, noise;
};

class GaussianSubject {
 public:
  using Forest = GaussianForest;
  using Tuning = GaussianTuning;

  GaussianSubject(const GaussianOptions& options, const GaussianPrior& prior)
      : given_{options.discount, options.noise},
        discounts_(kDiscounts),
        noises_(kNoises),
        usual_discount_(kUsualDiscount),
        usual_noise_(kUsualNoise),
        prior_(prior) {
    if (!options.learns_discount) {
      discounts_ = std::span(&given_.discount, 1);
      usual_discount_ = 0;
    }
    if (!options.learns_noise) {
      noises_ = std::span(&given_.noise, 1);
      usual_noise_ = 0;
    }
  }

  GaussianSubject(const GaussianSubject&) = delete;

  GaussianTuning usual() const { return {discounts_[usual_discount_], noises_[usual_noise_]}; }

  std::size_t most_tested() const { return kMostTested; }

  // Forests of the trial learn the residuals from the trend.
  GaussianOptions fixed(GaussianOptions options) const {
    options.learns_discount = options.learns_noise = options.has_trend = options.calibrates = false;
    options.discount = usual().discount;
    options.noise = usual().noise;
    return options;
  }

  std::vector<double> relevance(const PointStore<double>& points, const Columns& columns, std::uint64_t seed,
                                const Call& call) const {
    const std::vector<double> values = residuals(points);
    std::vector<double> buffer;
    const RelativeWeights weights(points, buffer);
    return measure_relevance(columns, weights, seed, call, [&] { return VarianceImpurity(values, weights); });
  }

  void learn(GaussianForest& forest, const PointStore<double>& points, const Call& call) const {
    forest.learn(points.rows(), residuals(points), call, false, points.weights());
  }

  Losses losses(GaussianForest& forest, const PointStore<double>& tested, const GaussianTuning& tuning,
                const Call& call) const {
    forest.set_tuning(tuning.discount, tuning.noise);
    const std::vector<double> predicted = forest.predict(tested.rows(), call);
    const std::vector<double> values = residuals(tested);
    Losses losses;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = values[i] - predicted[2 * i];
      losses.add(error * error, tested.multiplicity(static_cast<Slot>(i)));
    }
    return losses;
  }

  // The search starts from the best parameters of the first power.
  template <class Evaluate>
  Tuned<GaussianTuning> start(const Tuned<GaussianTuning>* other, Evaluate evaluate) const {
    const GaussianTuning first = other == nullptr ? usual() : other->tuning;
    const auto with = [&](double discount) { return GaussianTuning{discount, first.noise}; };
    const auto step = std::ranges::find(discounts_, first.discount) - discounts_.begin();
    return climb(discounts_, static_cast<std::size_t>(step), {first, evaluate(first)}, with, evaluate);
  }

  template <class Evaluate>
  GaussianTuning finish(const Tuned<GaussianTuning>& start, Evaluate evaluate) const {
    const auto with = [&](double noise) { return GaussianTuning{start.tuning.discount, noise}; };
    return climb(noises_, usual_noise_, start, with, evaluate).tuning;
  }

 private:
  std::vector<double> residuals(const PointStore<double>& points) const {
    std::vector<double> values;
    values.reserve(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Slot slot = static_cast<Slot>(i);
      values.push_back(prior_.residual(points.value(slot), prior_.trend.at(points.row(slot))));
    }
    return values;
  }

  // Climbs the ladder from a step in either direction while the mean loss decreases.
  template <class With, class Evaluate>
  static Tuned<GaussianTuning> climb(std::span<const double> ladder, std::size_t from, Tuned<GaussianTuning> best,
                                     With with, Evaluate evaluate) {
    for (const std::ptrdiff_t step : {1, -1}) {
      const double before = best.losses.mean();
      for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(from) + step;
           i >= 0 && i < static_cast<std::ptrdiff_t>(ladder.size()); i += step) {
        const GaussianTuning tuning = with(ladder[static_cast<std::size_t>(i)]);
        Losses losses = evaluate(tuning);
        if (!(losses.mean() < best.losses.mean())) break;
        best = {tuning, std::move(losses)};
      }
      if (best.losses.mean() < before) break;
    }
    return best;
  }

  // The ladders of candidates, and the steps where the search starts.
  static constexpr double kDiscounts[] = {0.0007, 0.002, 0.006, 0.02, 0.06, 0.18, 0.5};
  static constexpr double kNoises[] = {0.0004, 0.002, 0.01, 0.05, 0.25, 0.8};
  static constexpr std::size_t kUsualDiscount = 3, kUsualNoise = 2;
  static constexpr std::size_t kMostTested = 512;

  GaussianTuning given_;
  std::span<const double> discounts_, noises_;
  std::size_t usual_discount_, usual_noise_;
  const GaussianPrior& prior_;  // its trend and scale
};

}  // namespace onlineforest
