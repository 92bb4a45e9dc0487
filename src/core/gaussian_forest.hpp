// A forest of regression trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "calibration.hpp"
#include "forest.hpp"
#include "gaussian_target.hpp"
#include "gaussian_walk.hpp"

namespace onlineforest {

class GaussianForest : public Forest<GaussianTarget, GaussianOptions> {
 public:
  // What its state has that those of other forests have not.
  struct Extra {
    Calibration calibration;
    std::uint64_t n_calibrated = 0;
  };

  explicit GaussianForest(GaussianOptions options) : Forest(std::move(options)) {}

  // Learns points with values of size up to kLargestValue; see Forest::learn_values.
  void learn(std::span<const float> rows, std::span<const double> values, std::size_t n_threads,
             const StopRequested& requested = {}, bool one_by_one = false);

  // Mean and standard deviation, n_rows x 2. At least one point must have been stored, here and below.
  std::vector<double> predict(std::span<const float> rows, std::size_t n_threads,
                              const StopRequested& requested = {}) const;

  // The quantiles of each of the levels, which lie in (0, 1), n_rows x n_levels.
  std::vector<double> quantiles(std::span<const float> rows, std::span<const double> levels, std::size_t n_threads,
                                const StopRequested& requested = {}) const;

  // The logarithm of the density of each value at its row.
  std::vector<double> log_density(std::span<const float> rows, std::span<const double> values, std::size_t n_threads,
                                  const StopRequested& requested = {}) const;

  // Mean and standard deviation of points learned, as they would be without each of them and without calibration,
  // n_slots x 2. All trees must be up to date.
  std::vector<double> predict_left_out(std::span<const Slot> slots, std::size_t n_threads,
                                       const StopRequested& requested = {}) const;

  // Predicts with another discount and noise, until the measure is computed anew.
  void set_tuning(double discount, double noise);

  Calibration calibration() const;

 private:
  template <class ForestType>
  friend class Archive;

  Learned<GaussianPrior> learn_measure(std::size_t n_threads, StopSignal& signal) const override;
  std::vector<double> relevance_of_features(const Columns& columns, std::uint64_t seed, std::size_t n_threads,
                                            StopSignal& signal) const override;
  void set_expected(std::size_t first) override;
  void settle(std::size_t n_threads, StopSignal& signal) override;
  void start_anew() override;
  std::size_t n_until_outdated(std::span<const double> values) const override;

  Extra extra() const { return {calibration_, n_calibrated_}; }
  void restore(const Extra& extra);  // after the points; throws std::invalid_argument if it makes no sense

  // Mean and deviation of each completion; the caller holds the lock.
  std::vector<double> predict_complete(const Completed& queries, std::size_t n_threads, StopSignal& signal) const;

  // Whether no point lies too far from a trend for the scale.
  bool is_in_proportion(const Trend& trend, double scale, StopProbe& stop) const;
  std::vector<Slot> slots_of_trend() const;     // the points a trend is fitted to
  GaussianPrior prior_without_measure() const;  // a constant trend, and what it leaves
  void calibrate(std::size_t n_threads, StopSignal& signal);
  template <class Find>
  void with_mixtures_left_out(std::span<const Slot> slots, std::size_t n_threads, StopSignal& signal, Find find) const;
  template <class Find>
  void with_mixtures(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested,
                     Find find) const;

  Calibration calibration_;
  std::uint64_t n_calibrated_ = 0;  // how often the measure had been computed then
  mutable Pool<GaussianWalk> walks_;
};

}  // namespace onlineforest
