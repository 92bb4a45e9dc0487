// Predictions of a forest over numbers: moments, quantiles and densities of its mixtures.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/elementary.hpp"
#include "numbers/gaussian_forest.hpp"
#include "numbers/mixture.hpp"

namespace onlineforest {

namespace {

constexpr double kLargestShift = 1e10 * kLargestResidual;  // its square is finite

// Converts components from the units of a tree's prior at a row to those of the forest's prior. The two differ only
// after a call was stopped.
struct Units {
  double factor = 1.0, shift = 0.0;

  Units(const GaussianPrior& from, const GaussianPrior& to, const float* row) {
    if (&from == &to || from == to || !(to.scale > 0.0)) return;
    factor = std::min(from.scale / to.scale, kLargestShift);
    shift = std::clamp((from.trend.at(row) - to.trend.at(row)) / to.scale, -kLargestShift, kLargestShift);
  }

  // The floor on the variance keeps a tree that has seen only one value from being certain of it.
  Component operator()(const Component& c) const {
    return {c.mass, shift + factor * c.mean, std::max(factor * factor * c.variance, kLeastNoise)};
  }
};

// A calibration stretches a mixture around its mean; it was fitted on complete rows. The spread between completions is
// known in units of y and must not be stretched, so it is shrunk first.
void unscale_between(RowMixture& mixture, double scale) {
  if (mixture.components.empty()) return;
  const auto n = static_cast<std::size_t>(std::ranges::max(mixture.completion_of)) + 1;
  std::vector<double> masses(n), sums(n);
  const auto completion = [&mixture](std::size_t i) { return static_cast<std::size_t>(mixture.completion_of[i]); };
  for (std::size_t i = 0; i < mixture.components.size(); ++i) {
    masses[completion(i)] += mixture.components[i].mass;
    sums[completion(i)] += mixture.components[i].mass * mixture.components[i].mean;
  }
  const double mean = Mixture(mixture.components).moments().mean;
  for (std::size_t i = 0; i < mixture.components.size(); ++i) {
    const std::size_t k = completion(i);
    mixture.components[i].mean -= (1.0 - 1.0 / scale) * (sums[k] / masses[k] - mean);
  }
}

}  // namespace

// Sums of means and of second moments, from which the mean and the standard deviation follow.
class GaussianForest::MomentSummation : public Summation<GaussianTarget> {
 public:
  explicit MomentSummation(const GaussianForest& forest)
      : forest_(forest),
        prior_(forest.measure_ ? std::shared_ptr<const GaussianPrior>(forest.measure_, &forest.measure_->prior)
                               : std::make_shared<const GaussianPrior>(forest.prior_without_measure())) {}

  std::size_t sum_width() const override { return 2; }
  std::size_t width() const override { return 2; }

  std::unique_ptr<Worker> make_worker() const override { return std::make_unique<Walker>(forest_, *prior_); }

  std::vector<double> finish(const Completed& queries, std::vector<double> sums, std::size_t n_grown) const override {
    const double n_trees = static_cast<double>(n_grown);
    const Calibration& calibration = forest_.calibration_;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      double mean = 0.0, variance = 1.0;
      if (n_trees > 0.0) {
        mean = sums[2 * i] / n_trees;
        variance = std::max(sums[2 * i + 1] / n_trees - mean * mean, 0.0);
      }
      variance += calibration.noise;
      sums[2 * i] = prior_->trend.at(queries.row(i)) + prior_->scale * mean;
      sums[2 * i + 1] = prior_->scale * calibration.scale * std::sqrt(variance);
    }
    return sums;
  }

  // The moments of the mixture of all completions.
  void merge(const double* first, std::size_t n, double* result) const override {
    if (n == 1) {
      std::copy_n(first, 2, result);
      return;
    }
    std::vector<Component> components;
    for (std::size_t i = 0; i < n; ++i) {
      components.push_back({1.0, first[2 * i], first[2 * i + 1] * first[2 * i + 1]});
    }
    const Moments moments = Mixture(components).moments();
    result[0] = moments.mean;
    result[1] = std::sqrt(moments.variance);
  }

 private:
  class Walker : public Worker {
   public:
    Walker(const GaussianForest& forest, const GaussianPrior& prior)
        : forest_(forest), prior_(prior), walk_(forest.walks_.lend()) {}

    void add(Trees trees, const Queries& queries, double* sums, StopProbe& stop) override {
      const std::size_t n_features = forest_.options_.n_features;
      (*walk_).walk(trees, forest_.points_, queries,
                    [&](std::size_t row, const TargetTree& tree, std::span<const Component> components) {
                      const Units units(tree.measure().prior, prior_, queries.rows + row * n_features);
                      double sum = 0.0, squares = 0.0;
                      for (const Component& component : components) {
                        const Component c = units(component);
                        sum += c.mass * c.mean;
                        squares += c.mass * (c.variance + c.mean * c.mean);
                      }
                      sums[2 * row] += sum;
                      sums[2 * row + 1] += squares;
                      stop.tick(components.size() * n_features);
                    });
    }

   private:
    const GaussianForest& forest_;
    const GaussianPrior& prior_;
    Pool<GaussianWalk>::Loan walk_;
  };

  const GaussianForest& forest_;
  std::shared_ptr<const GaussianPrior> prior_;
};

std::unique_ptr<const Summation<GaussianTarget>> GaussianForest::prediction() const {
  return std::make_unique<const MomentSummation>(*this);
}

// Calls use(first row, empty mixtures, queries, prior, walk, stop) for each piece of the rows, on all threads of the
// call.
template <class Use>
void GaussianForest::for_each_piece(std::span<const float> rows, const Call& call, Use use) const {
  constexpr std::size_t piece_size = 64;
  const auto pass = gate_.reading();
  const std::size_t n = n_rows(rows), n_features = options_.n_features;
  const GaussianPrior own = measure_ ? GaussianPrior() : prior_without_measure();
  const GaussianPrior& prior = measure_ ? measure_->prior : own;
  call.parallel_for((n + piece_size - 1) / piece_size, [&] {
    return [&, walk = walks_.lend(), mixtures = std::vector<RowMixture>(piece_size)](std::size_t piece,
                                                                                     StopProbe& stop) mutable {
      const std::size_t begin = piece * piece_size, n_here = std::min(piece_size, n - begin);
      const Completed queries = completed(rows.subspan(begin * n_features, n_here * n_features));
      for (RowMixture& mixture : mixtures) mixture.clear();
      use(begin, std::span(mixtures).first(n_here), queries, prior, *walk, stop);
    };
  });
}

// Adds the components of all trees held here, in units of the forest's prior.
void GaussianForest::add_components(const Completed& queries, const GaussianPrior& prior,
                                    std::span<RowMixture> mixtures, GaussianWalk& walk, StopProbe& stop) const {
  std::vector<std::size_t> row_of;
  for (std::size_t i = 0; i < mixtures.size(); ++i) row_of.resize(queries.end(i), i);
  walk.walk(std::span<const TargetTree>(trees_), points_, queries.queries(0, queries.size()),
            [&](std::size_t k, const TargetTree& tree, std::span<const Component> components) {
              const Units units(tree.measure().prior, prior, queries.row(k));
              const std::size_t row = row_of[k];
              for (const Component& component : components) {
                mixtures[row].add(units(component), k - queries.begin(row));
              }
              stop.tick(components.size() * options_.n_features);
            });
}

Mixtures GaussianForest::mixtures(std::span<const float> rows, const Call& call) const {
  std::vector<RowMixture> all(n_rows(rows));
  for_each_piece(rows, call,
                 [&](std::size_t begin, std::span<RowMixture> mixtures, const Completed& queries,
                     const GaussianPrior& prior, GaussianWalk& walk, StopProbe& stop) {
                   add_components(queries, prior, mixtures, walk, stop);
                   std::ranges::copy(mixtures, all.begin() + static_cast<std::ptrdiff_t>(begin));
                 });
  return Mixtures::of_rows(std::move(all));
}

// Adds the calibration's noise, and shifts the components of each completion to the trend of the first one, so that the
// mixture of a row is that of all its completions.
void GaussianForest::calibrate(RowMixture& mixture, std::size_t row, const Completed& queries,
                               const GaussianPrior& prior) const {
  const std::size_t first = queries.begin(row), n_completions = queries.end(row) - first;
  const double trend = prior.trend.at(queries.row(first));
  std::vector<double> shifts;
  for (std::size_t k = first; k < queries.end(row); ++k) {
    const double shift = prior.scale > 0.0 ? (prior.trend.at(queries.row(k)) - trend) / prior.scale : 0.0;
    shifts.push_back(std::clamp(shift, -kLargestShift, kLargestShift));
  }
  for (std::size_t c = 0; c < mixture.components.size(); ++c) {
    const auto completion = static_cast<std::size_t>(mixture.completion_of[c]);
    if (completion >= n_completions) {
      throw std::invalid_argument("a component of the mixtures belongs to completion " +
                                  std::to_string(mixture.completion_of[c]) + " of a row that has " +
                                  std::to_string(n_completions));
    }
    mixture.components[c] = calibration_.with_noise(mixture.components[c]);
    mixture.components[c].mean += shifts[completion];
  }
  if (mixture.components.empty()) {
    mixture.components.push_back({1.0, 0.0, 1.0});  // no tree is grown
  } else if (n_completions > 1) {
    unscale_between(mixture, calibration_.scale);
  }
}

// Calls use(row, mixture, trend, prior) for each row with the mixture of the residual from the trend, in units of the
// prior. The mixtures are those of the trees, or `given`.
template <class Use>
void GaussianForest::for_each_mixture(std::span<const float> rows, const Call& call, const Mixtures* given,
                                      Use use) const {
  if (given != nullptr) given->check(n_rows(rows));
  for_each_piece(rows, call,
                 [&](std::size_t begin, std::span<RowMixture> mixtures, const Completed& queries,
                     const GaussianPrior& prior, GaussianWalk& walk, StopProbe& stop) {
                   if (given == nullptr) add_components(queries, prior, mixtures, walk, stop);
                   for (std::size_t i = 0; i < mixtures.size(); ++i) {
                     if (given != nullptr) given->copy(begin + i, mixtures[i]);
                     calibrate(mixtures[i], i, queries, prior);
                     const double trend = prior.trend.at(queries.row(queries.begin(i)));
                     use(begin + i, Mixture(mixtures[i].components), trend, prior);
                     stop.tick(mixtures[i].components.size() * 64);
                   }
                 });
}

std::vector<double> GaussianForest::quantiles(std::span<const float> rows, std::span<const double> levels,
                                              const Call& call, const Mixtures* given) const {
  for (const double level : levels) {
    if (!(level > 0.0 && level < 1.0)) {
      throw std::invalid_argument("levels must lie in (0, 1), got " + std::to_string(level));
    }
  }
  std::vector<double> result(n_rows(rows) * levels.size());
  for_each_mixture(
      rows, call, given, [&](std::size_t i, const Mixture& mixture, double trend, const GaussianPrior& prior) {
        const double mean = mixture.moments().mean;
        for (std::size_t k = 0; k < levels.size(); ++k) {
          const double quantile = prior.scale > 0.0 ? mixture.quantile(calibration_.level(levels[k])) : mean;
          result[i * levels.size() + k] = trend + prior.scale * (mean + calibration_.scale * (quantile - mean));
        }
      });
  return result;
}

std::vector<double> GaussianForest::log_density(std::span<const float> rows, std::span<const double> values,
                                                const Call& call, const Mixtures* given) const {
  require_value_per_row(rows, values.size());
  std::vector<double> result(values.size());
  for_each_mixture(rows, call, given,
                   [&](std::size_t i, const Mixture& mixture, double trend, const GaussianPrior& prior) {
                     if (!(prior.scale > 0.0)) {  // all values seen are equal
                       result[i] = values[i] == trend ? kInfinity : -kInfinity;
                       return;
                     }
                     const double mean = mixture.moments().mean;
                     const double x = mean + ((values[i] - trend) / prior.scale - mean) / calibration_.scale;
                     result[i] = mixture.log_density(x) - natural_log(prior.scale) - natural_log(calibration_.scale);
                   });
  return result;
}

}  // namespace onlineforest
