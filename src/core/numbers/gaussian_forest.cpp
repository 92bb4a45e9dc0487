#include "numbers/gaussian_forest.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/require.hpp"
#include "forest/relevance.hpp"
#include "forest/sums.hpp"
#include "forest/trial.hpp"
#include "numbers/gaussian_subject.hpp"
#include "numbers/mixture.hpp"

namespace onlineforest {

namespace {

constexpr std::size_t kTrendPoints = 4096;               // at most, for a trend
constexpr std::size_t kKnots[] = {2, 4, 8, kMostKnots};  // of a trend, per feature
constexpr std::size_t kPointsPerColumn = 6;              // at least; fewer knots where there are few points
constexpr std::size_t kFewestLeftOut = 256, kMostLeftOut = 1000, kLeftOutOneIn = 20;  // for a calibration

// Random numbers apart from those of the trees and the trial.
constexpr std::uint64_t kSeedOfTrend = 0x7472'656e'6400'0000u, kSeedOfCalibration = 0x6361'6c69'6272'6174u;

// How many knots a trend should have per feature: as many as predict points left out clearly better than fewer.
std::size_t best_knots(const PointStore<double>& points, std::uint64_t seed, StopProbe& stop) {
  Rng rng(seed ^ kSeedOfTrend, points.size());
  const Split split(points.size(), kTrialPoints, rng);
  const double unit = deviation_from(fit_trend(points, split.learned(), 1, stop), points, split.learned());
  if (!(unit > 0.0)) return 1;
  const auto losses_with = [&](std::size_t n_knots) {
    const Trend trend = fit_trend(points, split.learned(), n_knots, stop);
    Losses losses;
    for (const Slot slot : split.tested()) {
      const double error = (points.value(slot) - trend.at(points.row(slot))) / unit;
      losses.each.push_back(error * error);
    }
    return losses;
  };
  // A curve over a single feature is for the trees to find: they know where it is not known.
  const std::size_t n_columns = std::min(kTrendColumns, split.slots.size() / kPointsPerColumn);
  const std::size_t most = points.n_features() == 1 ? 2 : 1 + n_columns / points.n_features();
  std::size_t best = 1;
  Losses least = losses_with(best);
  for (const std::size_t n_knots : kKnots) {
    if (n_knots > most || n_columns < points.n_features()) break;
    Losses losses = losses_with(n_knots);
    if (!losses.clearly_less_than(least)) continue;
    best = n_knots;
    least = std::move(losses);
  }
  return best;
}

}  // namespace

void GaussianForest::learn(std::span<const float> rows, std::span<const double> values, std::size_t n_threads,
                           const StopRequested& requested, bool one_by_one) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  if (n_rows(rows) != values.size()) throw std::invalid_argument("rows and values differ in number");
  for (const double value : values) {
    if (!(std::abs(value) <= kLargestValue)) throw std::invalid_argument("a value lies outside [-1e150, 1e150]");
  }
  learn_values(rows, values, n_threads, requested, one_by_one, [] {});
}

// One that the scale cannot take; with a scale of 0, any but the one that was learned.
std::size_t GaussianForest::n_until_outdated(std::span<const double> values) const {
  if (!measure_) return values.size() + 1;
  const double middle = measure_->prior.trend.intercept, most = kLargestResidual * measure_->prior.scale;
  const auto other = std::ranges::find_if(values, [&](double y) { return std::abs(y - middle) > most; });
  return static_cast<std::size_t>(other - values.begin()) + 1;
}

Learned<GaussianPrior> GaussianForest::learn_measure(std::size_t n_threads, StopSignal& signal) const {
  StopProbe stop(signal, true);
  const std::vector<Slot> slots = slots_of_trend();
  const bool has_enough = points_.size() >= kFewestPoints;
  const std::size_t n_knots = options_.has_trend && has_enough ? best_knots(points_, options_.seed, stop) : 1;
  Trend trend = fit_trend(points_, slots, n_knots, stop);
  double scale = deviation_from(trend, points_, slots);
  // Rare values may not have been drawn; and something must be left for the trees to tell.
  if (!is_in_proportion(trend, scale, stop) || (!(scale > 0.0) && !trend.is_constant())) {
    const GaussianPrior of_all = prior_without_measure();
    trend = of_all.trend;
    scale = of_all.scale;
  }
  const double apart = scale > 0.0 ? deviation_of(trend, points_, slots) / scale : 0.0;
  const GaussianPrior prior{std::move(trend), scale, 1.0, std::min(apart * apart, kLargestTrendVariance)};

  const GaussianSubject subject(options_, prior);
  Learned<GaussianPrior> learned{std::vector<double>(options_.n_features, 1.0), subject.usual().discount, prior};
  learned.prior.noise = subject.usual().noise;
  const bool learns_weights = options_.weight_rule == WeightRule::kLearned;
  if (!has_enough || !(scale > 0.0)) return learned;
  if (!learns_weights && !options_.learns_discount && !options_.learns_noise) return learned;
  const auto result = Trial(subject, points_, options_, n_threads, signal).run();
  learned.discount = result.tuning.discount;
  learned.prior.noise = result.tuning.noise;
  learned.shares = learned_shares(subject, points_, result.power, options_.seed, n_threads, signal);
  return learned;
}

std::vector<double> GaussianForest::relevance_of_features(const Columns& columns, std::uint64_t seed,
                                                          std::size_t n_threads, StopSignal& signal) const {
  const GaussianPrior prior = prior_without_measure();
  return GaussianSubject(options_, prior).relevance(points_, columns, seed, n_threads, signal);
}

void GaussianForest::set_tuning(double discount, double noise) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
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
  StopSignal signal({});
  StopProbe stop(signal, false);
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

namespace {

// A calibration stretches a law around its mean, which was measured on complete rows. How far completions lie apart is
// known in units of y, and is not to be stretched: so it is shrunk before.
void unscale_between(Law& law, double scale) {
  if (law.components.empty()) return;
  const auto n = static_cast<std::size_t>(std::ranges::max(law.completion_of)) + 1;
  std::vector<double> masses(n), sums(n);
  const auto completion = [&law](std::size_t i) { return static_cast<std::size_t>(law.completion_of[i]); };
  for (std::size_t i = 0; i < law.components.size(); ++i) {
    masses[completion(i)] += law.components[i].mass;
    sums[completion(i)] += law.components[i].mass * law.components[i].mean;
  }
  const double mean = Mixture(law.components).moments().mean;
  for (std::size_t i = 0; i < law.components.size(); ++i) {
    const std::size_t k = completion(i);
    law.components[i].mean -= (1.0 - 1.0 / scale) * (sums[k] / masses[k] - mean);
  }
}

constexpr double kLargestShift = 1e10 * kLargestResidual;  // so that squares are numbers

// What turns the units of a tree's prior at a row into those of the forest's. They are the same unless a call was
// stopped.
struct Units {
  double factor = 1.0, shift = 0.0;

  Units(const GaussianPrior& from, const GaussianPrior& to, const float* row) {
    if (&from == &to || from == to || !(to.scale > 0.0)) return;
    factor = std::min(from.scale / to.scale, kLargestShift);
    shift = std::clamp((from.trend.at(row) - to.trend.at(row)) / to.scale, -kLargestShift, kLargestShift);
  }

  Component operator()(const Component& c) const {
    // A tree that has seen only one value, or hardly others, would be sure of it.
    return {c.mass, shift + factor * c.mean, std::max(factor * factor * c.variance, kLeastNoise)};
  }
};

}  // namespace

// Sums of means and of squares, of which mean and deviation are made.
auto GaussianForest::prediction() const {
  const auto of_all = measure_ ? std::shared_ptr<const GaussianPrior>(measure_, &measure_->prior)
                               : std::make_shared<const GaussianPrior>(prior_without_measure());
  return Prediction{2,
                    2,
                    [this] { return walks_.lend(); },
                    [this, of_all](std::span<const TargetTree> trees, const Queries& queries,
                                   Pool<GaussianWalk>::Loan& walk, double* sums, StopProbe& stop) {
                      (*walk).walk(trees, points_, queries,
                                   [&](std::size_t row, const TargetTree& tree, std::span<const Component> components) {
                                     const Units units(tree.measure().prior, *of_all,
                                                       queries.rows + row * options_.n_features);
                                     double sum = 0.0, squares = 0.0;
                                     for (const Component& component : components) {
                                       const Component c = units(component);
                                       sum += c.mass * c.mean;
                                       squares += c.mass * (c.variance + c.mean * c.mean);
                                     }
                                     sums[2 * row] += sum;
                                     sums[2 * row + 1] += squares;
                                     stop.tick(components.size() * options_.n_features);
                                   });
                    },
                    [this, of_all](const Completed& queries, std::vector<double> sums, std::size_t n_grown) {
                      const double n_trees = static_cast<double>(n_grown);
                      for (std::size_t i = 0; i < queries.size(); ++i) {
                        double mean = 0.0, variance = 1.0;
                        if (n_trees > 0.0) {
                          mean = sums[2 * i] / n_trees;
                          variance = std::max(sums[2 * i + 1] / n_trees - mean * mean, 0.0);
                        }
                        variance += calibration_.noise;
                        sums[2 * i] = of_all->trend.at(queries.row(i)) + of_all->scale * mean;
                        sums[2 * i + 1] = of_all->scale * calibration_.scale * std::sqrt(variance);
                      }
                      return sums;
                    },
                    [](const double* first, std::size_t n, double* result) {  // means and deviations
                      if (n == 1) {
                        std::copy_n(first, 2, result);
                        return;
                      }
                      std::vector<Component> law;
                      for (std::size_t i = 0; i < n; ++i)
                        law.push_back({1.0, first[2 * i], first[2 * i + 1] * first[2 * i + 1]});
                      const Moments moments = Mixture(law).moments();
                      result[0] = moments.mean;
                      result[1] = std::sqrt(moments.variance);
                    }};
}

std::vector<double> GaussianForest::predict(std::span<const float> rows, std::size_t n_threads,
                                            const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  StopSignal signal(requested);
  return predicted(prediction(), rows, n_threads, signal);
}

Terms GaussianForest::predict_terms(std::span<const float> rows, std::size_t n_threads,
                                    const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  StopSignal signal(requested);
  return terms(prediction(), rows, n_threads, signal);
}

std::vector<double> GaussianForest::predict_from(std::span<const float> rows, const TreeSums& sums,
                                                 const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  StopSignal signal(requested);
  return finished(prediction(), rows, sums, signal);
}

// Calls use(first row, empty laws, queries, prior, walk, stop) for some rows after the other, on several threads.
template <class Use>
void GaussianForest::with_completed(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested,
                                    Use use) const {
  constexpr std::size_t n_together = 64;
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  const std::size_t n = n_rows(rows), n_features = options_.n_features;
  const GaussianPrior own = measure_ ? GaussianPrior() : prior_without_measure();
  const GaussianPrior& prior = measure_ ? measure_->prior : own;
  StopSignal signal(requested);
  parallel_for((n + n_together - 1) / n_together, n_threads, signal, [&] {
    return [&, walk = walks_.lend(), laws = std::vector<Law>(n_together)](std::size_t piece, StopProbe& stop) mutable {
      const std::size_t begin = piece * n_together, n_here = std::min(n_together, n - begin);
      const Completed queries = completed(rows.subspan(begin * n_features, n_here * n_features));
      for (Law& law : laws) law.clear();
      use(begin, std::span(laws).first(n_here), queries, prior, *walk, stop);
    };
  });
}

// What puts the components of all trees that are held into laws, in units of the prior.
auto GaussianForest::filling_from_trees() const {
  return [this](std::size_t, std::span<Law> laws, const Completed& queries, const GaussianPrior& prior,
                GaussianWalk& walk, StopProbe& stop) {
    std::vector<std::size_t> row_of;
    for (std::size_t i = 0; i < laws.size(); ++i) row_of.resize(queries.end(i), i);
    walk.walk(std::span<const TargetTree>(trees_), points_, queries.queries(0, queries.size()),
              [&](std::size_t k, const TargetTree& tree, std::span<const Component> components) {
                const Units units(tree.measure().prior, prior, queries.row(k));
                const std::size_t row = row_of[k];
                for (const Component& component : components) {
                  laws[row].add(units(component), k - queries.begin(row));
                }
                stop.tick(components.size() * options_.n_features);
              });
  };
}

Laws GaussianForest::laws(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested) const {
  std::vector<Law> of_rows(n_rows(rows));
  const auto fill = filling_from_trees();
  with_completed(rows, n_threads, requested,
                 [&](std::size_t begin, std::span<Law> laws, const Completed& queries, const GaussianPrior& prior,
                     GaussianWalk& walk, StopProbe& stop) {
                   fill(begin, laws, queries, prior, walk, stop);
                   std::ranges::copy(laws, of_rows.begin() + static_cast<std::ptrdiff_t>(begin));
                 });
  return Laws::of_rows(std::move(of_rows));
}

// Calls find(row, mixture, trend, prior) for each row, with the law of the forest in units of its prior, as what y is
// more than the trend there. `fill` puts into laws what the trees say.
template <class Fill, class Find>
void GaussianForest::with_mixtures(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested,
                                   Fill fill, Find find) const {
  with_completed(rows, n_threads, requested,
                 [&](std::size_t begin, std::span<Law> laws, const Completed& queries, const GaussianPrior& prior,
                     GaussianWalk& walk, StopProbe& stop) {
                   fill(begin, laws, queries, prior, walk, stop);
                   for (std::size_t i = 0; i < laws.size(); ++i) {
                     // The law of a row is the mixture of those of its completions, each beside the trend of the first.
                     Law& law = laws[i];
                     const std::size_t n_completions = queries.end(i) - queries.begin(i);
                     const double trend = prior.trend.at(queries.row(queries.begin(i)));
                     std::vector<double> shifts;
                     for (std::size_t k = queries.begin(i); k < queries.end(i); ++k) {
                       const double shift =
                           prior.scale > 0.0 ? (prior.trend.at(queries.row(k)) - trend) / prior.scale : 0.0;
                       shifts.push_back(std::clamp(shift, -kLargestShift, kLargestShift));
                     }
                     for (std::size_t c = 0; c < law.components.size(); ++c) {
                       const auto completion = static_cast<std::size_t>(law.completion_of[c]);
                       if (completion >= n_completions)
                         throw std::invalid_argument("the laws are not those of these rows");
                       law.components[c] = calibration_.with_noise(law.components[c]);
                       law.components[c].mean += shifts[completion];
                     }
                     if (law.components.empty()) {
                       law.components.push_back({1.0, 0.0, 1.0});  // no tree is grown
                     } else if (n_completions > 1) {
                       unscale_between(law, calibration_.scale);
                     }
                     find(begin + i, Mixture(law.components), trend, prior);
                     stop.tick(law.components.size() * 64);
                   }
                 });
}

namespace {

// What puts laws from elsewhere into those of a piece of the rows.
auto filling_from(const Laws& laws) {
  return [&laws](std::size_t begin, std::span<Law> here, auto&&...) {
    for (std::size_t i = 0; i < here.size(); ++i) laws.copy(begin + i, here[i]);
  };
}

}  // namespace

template <class Fill>
std::vector<double> GaussianForest::quantiles_of(std::span<const float> rows, std::span<const double> levels,
                                                 std::size_t n_threads, const StopRequested& requested,
                                                 Fill fill) const {
  for (const double level : levels) {
    if (!(level > 0.0 && level < 1.0)) throw std::invalid_argument("levels must lie between 0 and 1");
  }
  std::vector<double> result(n_rows(rows) * levels.size());
  with_mixtures(rows, n_threads, requested, fill,
                [&](std::size_t i, const Mixture& law, double trend, const GaussianPrior& prior) {
                  const double mean = law.moments().mean;
                  for (std::size_t k = 0; k < levels.size(); ++k) {
                    const double quantile = prior.scale > 0.0 ? law.quantile(calibration_.level(levels[k])) : mean;
                    result[i * levels.size() + k] =
                        trend + prior.scale * (mean + calibration_.scale * (quantile - mean));
                  }
                });
  return result;
}

std::vector<double> GaussianForest::quantiles(std::span<const float> rows, std::span<const double> levels,
                                              std::size_t n_threads, const StopRequested& requested) const {
  return quantiles_of(rows, levels, n_threads, requested, filling_from_trees());
}

std::vector<double> GaussianForest::quantiles_from(std::span<const float> rows, std::span<const double> levels,
                                                   const Laws& laws, std::size_t n_threads,
                                                   const StopRequested& requested) const {
  laws.check(n_rows(rows));
  return quantiles_of(rows, levels, n_threads, requested, filling_from(laws));
}

template <class Fill>
std::vector<double> GaussianForest::log_density_of(std::span<const float> rows, std::span<const double> values,
                                                   std::size_t n_threads, const StopRequested& requested,
                                                   Fill fill) const {
  if (n_rows(rows) != values.size()) throw std::invalid_argument("rows and values differ in number");
  std::vector<double> result(values.size());
  with_mixtures(rows, n_threads, requested, fill,
                [&](std::size_t i, const Mixture& law, double trend, const GaussianPrior& prior) {
                  if (!(prior.scale > 0.0)) {  // all values seen are the same
                    result[i] = values[i] == trend ? kInfinity : -kInfinity;
                    return;
                  }
                  const double mean = law.moments().mean;
                  const double x = mean + ((values[i] - trend) / prior.scale - mean) / calibration_.scale;
                  result[i] = law.log_density(x) - std::log(prior.scale) - std::log(calibration_.scale);
                });
  return result;
}

std::vector<double> GaussianForest::log_density(std::span<const float> rows, std::span<const double> values,
                                                std::size_t n_threads, const StopRequested& requested) const {
  return log_density_of(rows, values, n_threads, requested, filling_from_trees());
}

std::vector<double> GaussianForest::log_density_from(std::span<const float> rows, std::span<const double> values,
                                                     const Laws& laws, std::size_t n_threads,
                                                     const StopRequested& requested) const {
  laws.check(n_rows(rows));
  return log_density_of(rows, values, n_threads, requested, filling_from(laws));
}

// Calls find(i, mixture) for each slot, with the law of the forest without that point.
template <class Find>
void GaussianForest::with_mixtures_left_out(std::span<const Slot> slots, std::size_t n_threads, StopSignal& signal,
                                            Find find) const {
  constexpr std::size_t n_together = 256;
  parallel_for((slots.size() + n_together - 1) / n_together, n_threads, signal, [&] {
    return [&, walk = walks_.lend(), laws = std::vector<std::vector<Component>>(n_together)](std::size_t piece,
                                                                                             StopProbe& stop) mutable {
      const std::size_t begin = piece * n_together, n_here = std::min(n_together, slots.size() - begin);
      for (auto& law : laws) law.clear();
      for (const TargetTree& tree : trees_) {  // a tree stays in cache for many points
        (*walk).leave_out(tree, points_, slots.subspan(begin, n_here), stop,
                          [&](std::size_t i, std::span<const Component> components) {
                            laws[i].insert(laws[i].end(), components.begin(), components.end());
                            stop.tick(components.size() * options_.n_features);
                          });
      }
      for (std::size_t i = 0; i < n_here; ++i) find(begin + i, Mixture(laws[i]));
    };
  });
}

std::vector<double> GaussianForest::predict_left_out(std::span<const Slot> slots, std::size_t n_threads,
                                                     const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  for (const Slot slot : slots) {
    if (slot < 0 || static_cast<std::size_t>(slot) >= points_.size()) throw std::invalid_argument("no such point");
  }
  for (const TargetTree& tree : trees_) {
    if (tree.n_points() < points_.size() || tree.measure_pointer() != measure_) {
      throw std::invalid_argument("a tree is not up to date");
    }
  }
  std::vector<double> result(2 * slots.size());
  if (!measure_) return result;  // no points, no slots
  StopSignal signal(requested);
  const GaussianPrior& to = measure_->prior;
  with_mixtures_left_out(slots, n_threads, signal, [&](std::size_t i, const Mixture& law) {
    result[2 * i] = to.trend.at(points_.row(slots[i])) + to.scale * law.moments().mean;
    result[2 * i + 1] = to.scale * std::sqrt(law.moments().variance);
  });
  return result;
}

void GaussianForest::settle(std::size_t n_threads, StopSignal& signal) {
  if (!measure_ || n_calibrated_ == schedule_.n_refreshes()) return;
  if (!can_calibrate()) {
    calibration_ = {};
    left_out_.reset();
    awaits_calibration_ = false;
  } else if (options_.is_part()) {
    left_out_ = leave_out(n_threads, signal);
    awaits_calibration_ = true;
  } else {
    calibration_ = calibration_from(leave_out(n_threads, signal), n_threads, signal);
  }
  n_calibrated_ = schedule_.n_refreshes();
}

void GaussianForest::start_anew() {
  calibration_ = {};
  left_out_.reset();
  awaits_calibration_ = false;
  n_calibrated_ = 0;
}

std::optional<LeftOut> GaussianForest::take_left_out() {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  return std::exchange(left_out_, std::nullopt);
}

void GaussianForest::set_calibration(Calibration calibration) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  require_sound(calibration);
  calibration_ = std::move(calibration);
  awaits_calibration_ = false;
}

bool GaussianForest::can_calibrate() const {
  return options_.calibrates && points_.size() >= kFewestPoints && measure_->prior.scale > 0.0;
}

LeftOut GaussianForest::leave_out(std::size_t n_threads, StopSignal& signal) const {
  const GaussianPrior& prior = measure_->prior;
  Rng rng(options_.seed ^ kSeedOfCalibration, points_.size());
  const std::size_t n_left_out = std::clamp(points_.size() / kLeftOutOneIn, kFewestLeftOut, kMostLeftOut);
  const std::vector<Slot> slots = draw_slots(points_.size(), n_left_out, rng);
  StopProbe own_stop(signal, true);
  const std::vector<double> of_trend = leverages(prior.trend, points_, slots_of_trend(), slots, own_stop);
  std::vector<double> residuals;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // Trees leave the point out exactly, the trend by its leverage.
    residuals.push_back(prior.residual(points_.value(slots[i]), points_.expected(slots[i])) / (1.0 - of_trend[i]));
  }
  std::vector<Law> laws(slots.size());
  with_mixtures_left_out(slots, n_threads, signal, [&](std::size_t i, const Mixture& law) {
    for (const Component& component : law.components()) laws[i].add(component, 0);
  });
  return {std::move(residuals), Laws::of_rows(std::move(laws))};
}

Calibration calibration_from(const LeftOut& left_out, std::size_t n_threads, StopSignal& signal) {
  const std::size_t n = left_out.residuals.size();
  left_out.laws.check(n);
  require(n > 0, "a calibration needs points left out");
  const auto require_number = [](double x) { require(std::isfinite(x), "the laws of the points left out are none"); };
  std::vector<double> errors(n), variances(n);
  parallel_for(n, n_threads, signal, [&] {
    return [&, law = Law()](std::size_t i, StopProbe& stop) mutable {
      left_out.laws.copy(i, law);
      const Moments moments = Mixture(law.components).moments();
      errors[i] = left_out.residuals[i] - moments.mean;
      variances[i] = moments.variance;
      require_number(errors[i] * errors[i]);
      require_number(std::log(variances[i]));
      stop.tick(law.components.size());
    };
  });
  Calibration fresh = most_likely(errors, variances);
  fresh.levels.resize(n);
  parallel_for(n, n_threads, signal, [&] {
    return [&, law = Law()](std::size_t i, StopProbe& stop) mutable {
      left_out.laws.copy(i, law);
      for (Component& component : law.components) component = fresh.with_noise(component);
      const Mixture mixture(law.components);
      fresh.levels[i] = mixture.distribution(mixture.moments().mean + errors[i] / fresh.scale);
      require_number(fresh.levels[i]);
      stop.tick(law.components.size() * 64);
    };
  });
  std::ranges::sort(fresh.levels);
  return fresh;
}

void GaussianForest::require_sound(const Calibration& calibration) const {
  constexpr double least = 1e-7, largest = 1e70;
  require(calibration.noise >= 0.0 && calibration.noise <= largest, "the noise of the calibration is out of range");
  require(calibration.scale >= least && calibration.scale <= largest, "the scale of the calibration is out of range");
  require(std::ranges::all_of(calibration.levels, [](double u) { return u >= 0.0 && u <= 1.0; }),
          "a level of the calibration is out of range");
  require(std::ranges::is_sorted(calibration.levels), "the levels of the calibration are not sorted");
  require(options_.calibrates || (calibration.scale == 1.0 && calibration.noise == 0.0 && calibration.levels.empty()),
          "it is calibrated, but should not be");
}

void GaussianForest::restore(const Extra& extra) {
  require(std::ranges::all_of(points_.values(), [](double y) { return std::abs(y) <= kLargestValue; }),
          "a value is out of range");
  require_sound(extra.calibration);
  calibration_ = extra.calibration;
  n_calibrated_ = extra.n_calibrated;
}

Calibration GaussianForest::calibration() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return calibration_;
}

}  // namespace onlineforest
