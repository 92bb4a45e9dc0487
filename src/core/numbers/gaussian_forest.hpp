// A forest of regression trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forest/forest.hpp"
#include "numbers/calibration.hpp"
#include "numbers/gaussian_options.hpp"
#include "numbers/gaussian_target.hpp"
#include "numbers/gaussian_walk.hpp"
#include "numbers/laws.hpp"

namespace onlineforest {

// Points left out of the trees: their laws then, and what the laws should have said.
struct LeftOut {
  std::vector<double> residuals;  // without the point, too; in units of the prior
  Laws laws;
};

Calibration calibration_from(const LeftOut& left_out, std::size_t n_threads, StopSignal& signal);

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

  // The same for a part of a forest, in two steps, as with novelty; and from laws, those of all parts joined row by row
  // in the order of the parts. Laws are in units of the prior, and not calibrated.
  Terms predict_terms(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested = {}) const;
  std::vector<double> predict_from(std::span<const float> rows, const TreeSums& sums,
                                   const StopRequested& requested = {}) const;
  Laws laws(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested = {}) const;
  std::vector<double> quantiles_from(std::span<const float> rows, std::span<const double> levels, const Laws& laws,
                                     std::size_t n_threads, const StopRequested& requested = {}) const;
  std::vector<double> log_density_from(std::span<const float> rows, std::span<const double> values, const Laws& laws,
                                       std::size_t n_threads, const StopRequested& requested = {}) const;

  // A part cannot calibrate itself: that takes all trees. Whenever the whole would, it finds the laws of the points
  // left out in its own trees, for its owner to take, join with those of the other parts, and bring back as a
  // calibration; which is of use for predict_from() and the like alone. A part that was saved while it waited finds
  // them once more.
  std::optional<LeftOut> take_left_out();
  void set_calibration(Calibration calibration);

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

  Extra extra() const { return {calibration_, awaits_calibration_ ? 0 : n_calibrated_}; }
  void restore(const Extra& extra);  // after the points; throws std::invalid_argument if it makes no sense

  auto prediction() const;
  auto filling_from_trees() const;
  void require_sound(const Calibration& calibration) const;

  // Whether no point lies too far from a trend for the scale.
  bool is_in_proportion(const Trend& trend, double scale, StopProbe& stop) const;
  std::vector<Slot> slots_of_trend() const;     // the points a trend is fitted to
  GaussianPrior prior_without_measure() const;  // a constant trend, and what it leaves
  bool can_calibrate() const;
  LeftOut leave_out(std::size_t n_threads, StopSignal& signal) const;
  template <class Find>
  void with_mixtures_left_out(std::span<const Slot> slots, std::size_t n_threads, StopSignal& signal, Find find) const;
  template <class Use>
  void with_completed(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested,
                      Use use) const;
  template <class Fill, class Find>
  void with_mixtures(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested, Fill fill,
                     Find find) const;
  template <class Fill>
  std::vector<double> quantiles_of(std::span<const float> rows, std::span<const double> levels, std::size_t n_threads,
                                   const StopRequested& requested, Fill fill) const;
  template <class Fill>
  std::vector<double> log_density_of(std::span<const float> rows, std::span<const double> values, std::size_t n_threads,
                                     const StopRequested& requested, Fill fill) const;

  Calibration calibration_;
  std::uint64_t n_calibrated_ = 0;   // how often the measure had been computed then
  std::optional<LeftOut> left_out_;  // of a part, until it is taken
  bool awaits_calibration_ = false;  // a part, of what it left out
  mutable Pool<GaussianWalk> walks_;
};

}  // namespace onlineforest
