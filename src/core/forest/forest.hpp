// A forest: one store of points, many trees that learn it independently, one measure for all trees.
//
// A point is a distinct sample: a row and a value. Equal samples that arrive are one point, which counts as often as
// all of them together. Boxes, cuts and the measure's schedule depend on the set of points; how often a point counts
// matters for what trees say about values. So a sample of weight 2 is the same as two copies of it.
//
// Knows no kind of target, no files and no Python. A kind of forest derives from it in a room of its own.
//
// The class is declared here. Its stages are defined in learning.hpp, forgetting.hpp, filling.hpp and prediction.hpp;
// stages.hpp includes them all for the file that instantiates the template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/call.hpp"
#include "base/gate.hpp"
#include "base/pool.hpp"
#include "base/types.hpp"
#include "forest/exchange.hpp"
#include "forest/options.hpp"
#include "forest/summation.hpp"
#include "forest/sums.hpp"
#include "points/arrivals.hpp"
#include "points/columns.hpp"
#include "points/completion.hpp"
#include "points/point_store.hpp"
#include "points/queries.hpp"
#include "points/tenure.hpp"
#include "process/measure.hpp"
#include "process/schedule.hpp"
#include "tree/tree.hpp"

namespace onlineforest {

// Rows are row-major float32. Each value is finite, or NaN if it is missing; the caller checks.
//
// Missing values of a point are filled in when the point arrives (completion.hpp) and again at each refresh of the
// measure. Trees know only complete points. A query with missing values is filled in several times; its prediction is
// the mean over these completions, and a missing value never separates it from the points.
//
// Any number of threads may call const functions at the same time. A call that changes the forest excludes all others.
// A StopRequested callback must not call the forest: std::runtime_error.
template <class TargetType, class OptionsType>
class Forest {
 public:
  using Target = TargetType;
  using Options = OptionsType;
  using Value = typename Target::Value;
  using Prior = typename Target::Prior;
  using Points = PointStore<Value>;
  using TargetTree = Tree<Target>;
  using TargetMeasure = MeasureWith<Prior>;
  using TargetSummation = Summation<Target>;

  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;
  virtual ~Forest() = default;

  // Forgets the arrivals with these serials. Throws std::invalid_argument, and changes nothing, if one is not stored or
  // given twice. The forest that remains has the distribution of one that never saw the points, given the measure,
  // which depends on them until the next refresh. A stop takes effect before any change, or after all points are
  // forgotten; then some trees may be empty, and the next call regrows them. A forest without points is like a new one,
  // but keeps its classes.
  void forget(std::span<const Serial> serials, const Call& call = Call());

  // Forgets one point for each row and value, the oldest of several equal ones. If some are not stored, returns their
  // indices and changes nothing.
  std::vector<std::size_t> forget(std::span<const float> rows, std::span<const Value> values,
                                  const Call& call = Call());

  // Forgets all but the latest `n` points.
  void keep_latest(std::size_t n, const Call& call = Call());

  // Recomputes the measure from all points, due or not.
  void refresh(const Call& call = Call());

  // The relevance of each feature; see relevance.hpp. Throws std::invalid_argument if the forest holds no points.
  std::vector<double> relevance(const Call& call = Call()) const;

  // The leaf of each row in each tree, n_rows x n_trees. A row with missing values is represented by its first
  // completion.
  std::vector<NodeIndex> apply(std::span<const float> rows, const Call& call = Call()) const;

  // The prediction for each row, n_rows x width of the quantity.
  std::vector<double> predict(std::span<const float> rows, const Call& call = Call()) const {
    return predict(Quantity::kPrediction, rows, call);
  }

  // The probability that a tree separates each row from all points above its leaf, averaged over the trees; 1 if
  // nothing was learned.
  std::vector<double> novelty(std::span<const float> rows, const Call& call = Call()) const {
    return predict(Quantity::kNovelty, rows, call);
  }

  // For a sharded forest the prediction takes two steps. Each shard computes the terms of its own trees; any shard
  // turns the sums of all terms into what predict() returns for the whole forest.
  Terms terms(Quantity quantity, std::span<const float> rows, const Call& call = Call()) const;
  std::vector<double> finish(Quantity quantity, std::span<const float> rows, const TreeSums& sums,
                             const Call& call = Call()) const;

  const Options& options() const { return options_; }
  std::size_t n_features() const { return options_.n_features; }
  std::size_t width() const { return options_.n_features; }                     // of a row
  std::size_t n_points() const;                                                 // arrivals that are stored
  std::size_t n_seen() const;                                                   // those that are not, too
  std::vector<std::uint8_t> are_stored(std::span<const Serial> serials) const;  // 1 or 0 for each
  std::vector<Serial> serials() const;                                          // of the stored arrivals
  TargetMeasure measure() const;                                                // empty before anything is learned
  std::size_t nbytes() const;                                                   // memory of the model without scratch

  // Calls f(*this) while no one changes the forest, so that the accessors below are consistent with one another.
  template <class F>
  auto read(F f) const {
    const auto pass = gate_.reading();
    return f(*this);
  }

  // Only inside read().
  const Points& points() const { return points_; }
  const std::vector<TargetTree>& trees() const { return trees_; }
  const Tenure& tenure() const { return tenure_; }
  const Arrivals& arrivals() const { return arrivals_; }

 protected:
  // Throws std::invalid_argument if an option is out of range.
  explicit Forest(Options options);

  // Learns points whose values are valid; the caller holds a Writing pass. Either an exception rejects the call and
  // nothing changes, or the points that are to be kept are stored and on_stored() is called. A later stop
  // (Interrupted) leaves each tree with a prefix of the points; the next call brings all trees up to date and ends
  // where the stopped call would have ended, except that trees which a stop emptied (see Tree::extend) are regrown.
  //
  // The samples of a call are one set. With `one_by_one`, the result is that of one call per point, and a stop may
  // leave only the first points stored.
  void learn_samples(const Samples<Value>& samples, bool one_by_one, const Call& call,
                     const std::function<void()>& on_stored);

  // What the points say about the measure: a function of the points and the options alone.
  virtual Learned<Prior> learn_measure(const Call& call) const = 0;
  virtual std::vector<double> relevance_of_features(const Columns& columns, std::uint64_t seed,
                                                    const Call& call) const = 0;
  // How the prediction of this kind of forest is summed over trees.
  virtual std::unique_ptr<const TargetSummation> prediction() const = 0;
  // Called before a tree learns.
  virtual void prepare(Target&) const {}
  // Called when the points from `first` on are new, or when the measure is new.
  virtual void set_expected(std::size_t /*first*/) {}
  // Called when all trees are up to date.
  virtual void settle(const Call&) {}
  // Called when no points are left.
  virtual void on_emptied() {}
  // Number of leading values after which the measure must be refreshed immediately; values.size() + 1 if never.
  virtual std::size_t n_until_outdated(std::span<const Value> values) const { return values.size() + 1; }

  // Replaces the measure by one with the same weights, until the next refresh.
  void set_measure(TargetMeasure measure);

  // Throws std::invalid_argument if `rows` is not a whole number of rows.
  std::size_t n_rows(std::span<const float> rows) const;
  // Throws std::invalid_argument unless there is one value per row, and one weight if there are any, all of them
  // positive.
  void check_samples(const Samples<Value>& samples) const;
  // Throws std::invalid_argument unless there is one value per row.
  void require_value_per_row(std::span<const float> rows, std::size_t n_values) const;

  // The rows with missing values filled in.
  Completed completed(std::span<const float> rows) const;

  std::size_t n_grown() const;  // trees that are not empty

  Options options_;
  Points points_;
  Arrivals arrivals_;
  Tenure tenure_;
  Weight total_weight_ = 0;
  MeasureSchedule schedule_;
  MeasurePointer<Prior> measure_;
  std::vector<TargetTree> trees_;
  Gate gate_;

 private:
  template <class ForestType>
  friend class Archive;

  // The points a new point may take values from.
  struct Lending;
  class NoveltySummation;

  // learning.hpp
  void store(const Samples<Value>& samples, const Call& call, const std::function<void()>& on_stored);
  void require_room(Weight coming, Weight leaving) const;
  void bring_up_to_date(const Call& call);
  void catch_up(const Call& call);
  void catch_up_tree(TargetTree& tree, const Columns* columns, Workspace& work, StopProbe& stop);
  void learn_last_point(const Call& call);
  bool must_grow(const TargetTree& tree) const;
  void refresh_measure(const Call& call);
  // forgetting.hpp
  void forget_arrivals(std::vector<Slot> leaving, const Call& call);
  void change_points(const Exchange<Value>& exchange, const Call& call);
  void remove_points(const Exchange<Value>& exchange, const Call& call);
  void reweigh_points(std::span<const Reweighed> changes, const Call& call);
  std::vector<Slot> find_arrivals(std::span<const float> rows, std::span<const Value> values, StopProbe stop) const;
  // filling.hpp
  template <class DonorsOf>
  void fill(std::size_t first, DonorsOf donors_of, const Call& call);
  std::vector<float> filled(const Samples<Value>& samples, const Call& call);
  Learned<Prior> refill_and_learn_measure(const Call& call);
  // prediction.hpp
  std::vector<double> predict(Quantity quantity, std::span<const float> rows, const Call& call) const;
  std::unique_ptr<const TargetSummation> summation(Quantity quantity) const;
  template <class Use>
  void for_completed(std::span<const float> rows, std::size_t width, Use use) const;
  template <class Predict>
  std::vector<double> merged_over_completions(const TargetSummation& summation, std::span<const float> rows,
                                              Predict predict) const;
  auto adding(const Completed& queries, std::size_t first_tree) const;

  bool one_by_one_ = false;  // how the points of the last call are learned
  Pool<Workspace> workspaces_;
};

}  // namespace onlineforest
