// A forest: one store of points, many trees that learn it independently, one measure for all.
// Knows nothing of Python, files or the meaning of labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "columns.hpp"
#include "label_target.hpp"
#include "label_walk.hpp"
#include "measure.hpp"
#include "point_store.hpp"
#include "pool.hpp"
#include "reentry.hpp"
#include "stop.hpp"
#include "tree.hpp"

namespace onlineforest {

struct ForestOptions {
  std::size_t n_trees = 100;
  std::size_t n_features = 1;
  double lifetime = kInfinity;
  double discount = 10.0;
  std::int32_t min_samples_split = 2;
  WeightRule weight_rule = WeightRule::kRange;
  std::vector<double> weights;  // for WeightRule::kFixed
  std::uint64_t seed = 0;
  double leaf_discount = 0.0;
  bool learns_leaf_discount = false;  // then `leaf_discount` is not used
};

// All rows are row-major float32, finite; the caller checks.
//
// Any number of threads may call the const functions at once; learn() waits for them and they for it. A callback
// (StopRequested) cannot call back into the forest: std::runtime_error.
class LabelForest {
 public:
  using LabelTree = Tree<LabelTarget>;
  using StopRequested = std::function<bool()>;

  // Throws std::invalid_argument for options that make no forest.
  explicit LabelForest(ForestOptions options);

  // Learns points with labels in [0, n_classes). Either the call is rejected with an exception and nothing has
  // changed, or the points are stored. If then stopped (Interrupted), each tree holds the first so many of the
  // points, and the next call first brings all trees up to date. It ends where it would have ended without the
  // stop, but for trees that were emptied (see Tree::extend): those are grown afresh. A stop while bringing trees
  // up to date comes before the new points are stored.
  //
  // The points of a call are one set; or many, if `one_by_one`: then all is as if each had come in a call of its own,
  // and a stop may find only the first of them stored.
  void learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes, std::size_t n_threads,
             const StopRequested& requested = {}, bool one_by_one = false);

  // Computes the measure anew from all points, whether it is due or not.
  void refresh(std::size_t n_threads, const StopRequested& requested = {});

  // How much each feature tells about the labels, see relevance.hpp; at least one point must have been learned.
  std::vector<double> relevance(std::size_t n_threads, const StopRequested& requested = {}) const;

  // Predicts with another discount at the leaves, until the measure is computed anew.
  void set_leaf_discount(double leaf_discount);

  // The mean of the trees' distributions, n_rows x n_classes. Uniform before anything is learned.
  std::vector<double> predict(std::span<const float> rows, std::size_t n_threads,
                              const StopRequested& requested = {}) const;

  // The leaf of each tree, n_rows x n_trees.
  std::vector<NodeIndex> apply(std::span<const float> rows, std::size_t n_threads,
                               const StopRequested& requested = {}) const;

  const ForestOptions& options() const { return options_; }
  std::size_t n_points() const;
  std::int32_t n_classes() const;
  Measure measure() const;     // without weights before anything is learned
  std::size_t nbytes() const;  // what the model takes in memory, without scratch

  // Calls f(*this) while no one learns; what f reads through the accessors below is then consistent.
  template <class F>
  auto read(F f) const {
    const ReentryGuard guard(this);
    const std::shared_lock lock(mutex_);
    return f(*this);
  }

  // Only inside read().
  const PointStore<Label>& points() const { return points_; }
  const std::vector<LabelTree>& trees() const { return trees_; }
  const MeasureSchedule& schedule() const { return schedule_; }
  std::int32_t current_n_classes() const { return n_classes_; }

 private:
  friend class Archive;

  void catch_up(std::size_t n_threads, StopSignal& signal);
  void learn_last_point(std::size_t n_threads, StopSignal& signal);
  void catch_up_tree(LabelTree& tree, const Columns* columns, Workspace& work, StopProbe& stop);
  bool must_grow(const LabelTree& tree) const;
  void refresh_measure(std::size_t n_threads, StopSignal& signal);
  std::size_t n_rows(std::span<const float> rows) const;

  ForestOptions options_;
  PointStore<Label> points_;
  std::int32_t n_classes_ = 0;
  MeasureSchedule schedule_;
  MeasurePointer measure_;
  std::vector<LabelTree> trees_;
  bool one_by_one_ = false;  // how the points of the last call are learned
  Pool<Workspace> workspaces_;
  mutable Pool<LabelWalk> walks_;
  mutable std::shared_mutex mutex_;
};

}  // namespace onlineforest
