// A forest of regression trees. Its prediction is a mixture of normals; predict() returns the mean and the standard
// deviation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "base/pool.hpp"
#include "forest/forest.hpp"
#include "numbers/calibration.hpp"
#include "numbers/gaussian_options.hpp"
#include "numbers/gaussian_target.hpp"
#include "numbers/gaussian_walk.hpp"
#include "numbers/mixtures.hpp"

namespace onlineforest {

extern template class Forest<GaussianTarget, GaussianOptions>;

// Left-out predictions of some points, and what they should have predicted.
struct LeftOut {
  std::vector<double> residuals;  // of the points, in units of the prior, with a trend that leaves the point out too
  Mixtures mixtures;
  std::vector<Weight> weights;  // of the points; none if each counts once
};

// The calibration that the left-out predictions of all trees of a forest give.
Calibration calibration_from(const LeftOut& left_out, const Call& call = Call());

class GaussianForest : public Forest<GaussianTarget, GaussianOptions> {
 public:
  static constexpr std::size_t kWidthWithoutRows = 2;  // columns of a prediction for no rows

  // The part of its state that other forests do not have.
  struct Extra {
    Calibration calibration;
    std::uint64_t n_calibrated = 0;
  };

  explicit GaussianForest(GaussianOptions options) : Forest(std::move(options)) {}

  // Learns points with |value| <= kLargestValue; see Forest::learn_samples. predict() and everything below need at
  // least one stored point.
  void learn(std::span<const float> rows, std::span<const double> values, const Call& call = Call(),
             bool one_by_one = false, std::span<const Weight> weights = {});

  // The mixture that the trees held here predict for each row, in units of the prior and not calibrated. Mixtures of
  // all shards, joined row by row in the order of the shards, are those of the whole forest.
  Mixtures mixtures(std::span<const float> rows, const Call& call = Call()) const;

  // The quantiles at each of the levels in (0, 1), n_rows x n_levels. `given` replaces the mixtures of the trees held
  // here, for a sharded forest.
  std::vector<double> quantiles(std::span<const float> rows, std::span<const double> levels, const Call& call = Call(),
                                const Mixtures* given = nullptr) const;

  // The logarithm of the density of each value at its row; `given` as above for quantiles().
  std::vector<double> log_density(std::span<const float> rows, std::span<const double> values,
                                  const Call& call = Call(), const Mixtures* given = nullptr) const;

  // A shard cannot calibrate itself, because that takes all trees. Whenever the whole forest would, the shard computes
  // left-out predictions of its own trees. The driver takes them, joins them with those of the other shards, and
  // returns the calibration, which acts on finish(), quantiles() and log_density(). A shard that was saved while it
  // waited computes them again.
  std::optional<LeftOut> take_left_out();
  void set_calibration(Calibration calibration);

  // Mean and standard deviation of stored points by exact leave-one-out, not calibrated, n_slots x 2. Throws
  // std::invalid_argument if a tree is not up to date.
  std::vector<double> predict_left_out(std::span<const Slot> slots, const Call& call = Call()) const;

  // Predicts with another discount and noise until the next refresh of the measure.
  void set_tuning(double discount, double noise);

  Calibration calibration() const;

 private:
  template <class ForestType>
  friend class Archive;

  class MomentSummation;

  Learned<GaussianPrior> learn_measure(const Call& call) const override;
  std::vector<double> relevance_of_features(const Columns& columns, std::uint64_t seed,
                                            const Call& call) const override;
  std::unique_ptr<const TargetSummation> prediction() const override;
  void set_expected(std::size_t first) override;
  void settle(const Call& call) override;
  void on_emptied() override;
  std::size_t n_until_outdated(std::span<const double> values) const override;

  Extra extra() const { return {calibration_, awaits_calibration_ ? 0 : n_calibrated_}; }
  void restore(const Extra& extra);  // after the points; throws std::invalid_argument if it contradicts them

  // Whether no residual is too large for the scale.
  bool is_in_proportion(const Trend& trend, double scale, StopProbe& stop) const;
  std::vector<Slot> slots_of_trend() const;     // the points a trend is fitted to
  GaussianPrior prior_without_measure() const;  // a constant trend and the deviation around it

  // gaussian_prediction.cpp
  template <class Use>
  void for_each_piece(std::span<const float> rows, const Call& call, Use use) const;
  void add_components(const Completed& queries, const GaussianPrior& prior, std::span<RowMixture> mixtures,
                      GaussianWalk& walk, StopProbe& stop) const;
  void calibrate(RowMixture& mixture, std::size_t row, const Completed& queries, const GaussianPrior& prior) const;
  template <class Use>
  void for_each_mixture(std::span<const float> rows, const Call& call, const Mixtures* given, Use use) const;

  // gaussian_calibration.cpp
  bool can_calibrate() const;
  void require_valid(const Calibration& calibration) const;
  LeftOut leave_out(const Call& call) const;
  template <class Use>
  void for_each_left_out(std::span<const Slot> slots, const Call& call, Use use) const;

  Calibration calibration_;
  std::uint64_t n_calibrated_ = 0;   // number of refreshes at the last calibration
  std::optional<LeftOut> left_out_;  // of a shard, until the driver takes it
  bool awaits_calibration_ = false;  // a shard has computed left-out predictions and waits for the calibration
  mutable Pool<GaussianWalk> walks_;
};

}  // namespace onlineforest
