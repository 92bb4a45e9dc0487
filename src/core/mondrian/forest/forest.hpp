// A forest: one store of points, many trees that learn it independently, one measure for all trees.
//
// A point is a distinct sample: a row and a label. Equal samples that arrive are one point, which counts as often as
// they have arrived. Boxes, cuts and the measure's schedule depend on the set of points; how often a point counts
// matters for what trees say about labels.
//
// Knows no files, no Python and no class names: labels are the numbers 0, 1, ...
//
// Learning, forgetting, prediction and the choice of a measure have files of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/call.hpp"
#include "base/gate.hpp"
#include "base/pool.hpp"
#include "base/types.hpp"
#include "mondrian/forest/options.hpp"
#include "mondrian/forest/point_changes.hpp"
#include "mondrian/labels/target.hpp"
#include "mondrian/labels/walk.hpp"
#include "mondrian/points/arrivals.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/process/measure.hpp"
#include "mondrian/process/schedule.hpp"
#include "mondrian/tree/tree.hpp"
#include "samples/tenure.hpp"

namespace onlineforest::mondrian {

// Rows are row-major float32, of finite values; for a prediction the caller checks that.
//
// Any number of threads may call const functions at the same time. A call that changes the forest excludes all others.
// A StopRequested callback must not call the forest: std::runtime_error.
class Forest {
 public:
  using Value = Label;

  // Throws std::invalid_argument if an option is out of range.
  explicit Forest(ForestOptions options);
  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;

  // Learns points with labels in [0, n_classes). Either an exception rejects the call and nothing changes, or the
  // points that are to be kept are stored. A later stop (Interrupted) leaves each tree with a prefix of the points; the
  // next call brings all trees up to date and ends where the stopped call would have ended, except that trees which a
  // stop emptied (see Tree::extend) are regrown.
  //
  // The samples of a call are one set. With `one_by_one`, the result is that of one call per point, and a stop may
  // leave only the first points stored.
  void learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes,
             const Call& call = Call(), bool one_by_one = false);

  // Forgets the arrivals with these serials. Throws std::invalid_argument, and changes nothing, if one is not stored or
  // given twice. The forest that remains has the distribution of one that never saw the points, given the measure,
  // which depends on them until the next refresh. A stop takes effect before any change, or after all points are
  // forgotten; then some trees may be empty, and the next call regrows them. A forest without points is like a new one,
  // but keeps its classes.
  void forget(std::span<const Serial> serials, const Call& call = Call());

  // Forgets one point for each row and label, the oldest of several equal ones. If some are not stored, returns their
  // indices and changes nothing.
  std::vector<std::size_t> forget(std::span<const float> rows, std::span<const Label> labels,
                                  const Call& call = Call());

  // Forgets all but the latest `n` points.
  void keep_latest(std::size_t n, const Call& call = Call());

  // Recomputes the measure from all points, due or not.
  void refresh(const Call& call = Call());

  // The relevance of each feature; see relevance.hpp. Throws std::invalid_argument if the forest holds no points.
  std::vector<double> relevance(const Call& call = Call()) const;

  // The leaf of each row in each tree, n_rows x n_trees.
  std::vector<NodeIndex> apply(std::span<const float> rows, const Call& call = Call()) const;

  // The mean of the trees' distributions, n_rows x n_classes; the uniform distribution while no tree is grown.
  std::vector<double> predict(std::span<const float> rows, const Call& call = Call()) const;

  // The probability that a tree separates each row from all points above its leaf, averaged over the trees; 1 if
  // nothing was learned.
  std::vector<double> novelty(std::span<const float> rows, const Call& call = Call()) const;

  // Replaces the leaf discount until the next refresh.
  void set_leaf_discount(double leaf_discount);

  // For a trial. Lets a new forest learn points, each as often as it counts. They have no arrivals, so they cannot be
  // forgotten.
  void learn_points(PointStore points, std::int32_t n_classes, const Call& call);

  const ForestOptions& options() const { return options_; }
  std::size_t n_features() const { return options_.n_features; }
  std::size_t width() const { return options_.n_features; }  // values per row
  std::int32_t n_classes() const;
  std::size_t n_samples() const;                                                // arrivals that are stored
  std::size_t n_seen() const;                                                   // those that are not, too
  std::vector<std::uint8_t> are_stored(std::span<const Serial> serials) const;  // 1 or 0 for each
  std::vector<Serial> serials() const;                                          // of the stored arrivals
  Measure measure() const;                                                      // empty before anything is learned
  std::size_t nbytes() const;                                                   // memory of the model without scratch

  // Calls f(*this) while no one changes the forest, so that the accessors below are consistent with one another.
  template <class F>
  auto read(F f) const {
    const auto pass = gate_.reading();
    return f(*this);
  }

  // Only inside read().
  std::int32_t current_n_classes() const { return n_classes_; }
  const PointStore& points() const { return points_; }
  const std::vector<Tree<LabelTarget>>& trees() const { return trees_; }
  const Tenure& tenure() const { return tenure_; }
  const Arrivals& arrivals() const { return arrivals_; }

  // Calls visit(name, function) for each number or array that the forest tells about its points. The bindings follow
  // this list.
  template <class Visit>
  static void for_each_property(Visit visit) {
    visit("n_classes", &Forest::n_classes);
    visit("n_samples", &Forest::n_samples);
    visit("n_seen", &Forest::n_seen);
    visit("serials", &Forest::serials);
    visit("nbytes", &Forest::nbytes);
  }

 private:
  friend class Archive;

  using LabelTree = Tree<LabelTarget>;

  // learning.cpp
  void store(const Samples& samples, std::int32_t n_classes, const Call& call);
  void bring_up_to_date(const Call& call);
  void bring_tree_up_to_date(LabelTree& tree, const Columns* columns, Workspace& work, StopProbe& stop);
  void learn_last_point(const Call& call);
  bool must_grow(const LabelTree& tree) const;
  void require_sound(const Samples& samples) const;
  void require_label_per_row(std::span<const float> rows, std::size_t n_labels) const;
  // forgetting.cpp
  void forget_arrivals(std::vector<Slot> leaving, const Call& call);
  void change_points(const PointChanges& changes, const Call& call);
  void remove_points(const PointChanges& changes, const Call& call);
  void recount_points(std::span<const Recounted> changes, const Call& call);
  std::vector<Slot> find_arrivals(const Samples& samples, StopProbe stop) const;
  // measure.cpp
  void refresh_measure(const Call& call);
  Learned learn_measure(const Call& call) const;
  // prediction.cpp
  std::size_t n_rows(std::span<const float> rows) const;  // throws std::invalid_argument unless that is a whole number
  std::size_t n_grown() const;                            // trees that are not empty
  template <class MakeWorker, class Add>
  std::vector<double> sum_of_trees(std::span<const float> rows, std::size_t width, const Call& call,
                                   MakeWorker make_worker, Add add) const;

  ForestOptions options_;
  PointStore points_;
  Arrivals arrivals_;
  Tenure tenure_;
  MeasureSchedule schedule_;
  MeasurePointer measure_;
  std::int32_t n_classes_ = 0;
  std::vector<LabelTree> trees_;
  Gate gate_;
  bool one_by_one_ = false;  // how the points of the last call are learned
  Pool<Workspace> workspaces_;
  mutable Pool<LabelWalk> walks_;
};

}  // namespace onlineforest::mondrian
