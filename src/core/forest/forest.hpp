// A forest: one store of points, many trees that learn it independently, one measure for all.
// Knows nothing of Python, files or the meaning of values; a forest of a kind of target is a file of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/pool.hpp"
#include "base/reentry.hpp"
#include "base/stop.hpp"
#include "forest/options.hpp"
#include "forest/sums.hpp"
#include "points/columns.hpp"
#include "points/completion.hpp"
#include "points/point_store.hpp"
#include "points/queries.hpp"
#include "points/tenure.hpp"
#include "process/measure.hpp"
#include "process/schedule.hpp"
#include "tree/tree.hpp"

namespace onlineforest {

using StopRequested = std::function<bool()>;

// What the trees of a part of a forest say to some rows, see tree_sums.hpp.
struct Terms {
  std::vector<double> numbers;  // per term, completion of a row and number of the sum
  std::size_t n_grown;          // trees of the part that are not empty
};

// The sum of all terms of a forest.
struct TreeSums {
  std::span<const double> numbers;
  std::size_t n_grown;
};

// A prediction that adds up what trees say: `sum_width` numbers per completion of a row, of which finish(queries, sums,
// n_grown) makes `width` numbers, and merge() of those of all completions of a row one; as in over_completions.
// make_state() and add_trees(trees, queries, state, sums, stop) are those of a worker.
template <class MakeState, class AddTrees, class Finish, class Merge>
struct Prediction {
  std::size_t sum_width, width;
  MakeState make_state;
  AddTrees add_trees;
  Finish finish;
  Merge merge;
};

template <class... Fields>
Prediction(std::size_t, std::size_t, Fields...) -> Prediction<Fields...>;

// The mean over completions.
struct MeanOfCompletions {
  std::size_t width;

  void operator()(const double* first, std::size_t n, double* result) const {
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t i = 0; i < n; ++i) result[k] += first[i * width + k] / static_cast<double>(n);
    }
  }
};

// All rows are row-major float32, each value finite or NaN, which says that it is missing; the caller checks.
//
// What is missing of a point that is learned is filled in when it comes (completion.hpp), and anew with each new
// measure; trees know only completed points, and given those all is as if nothing had been missing. What is missing of
// a row that is predicted is filled in in several ways, over which the answer is averaged, and never cuts the row off.
//
// Any number of threads may call the const functions at once; whoever learns waits for them and they for it. A callback
// (StopRequested) cannot call back into the forest: std::runtime_error.
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

  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;
  virtual ~Forest() = default;

  // Forgets the points that came then; all of them must be stored, and once each: std::invalid_argument. What is left
  // has the law of a forest that never saw them, given the measure, which remembers them until it is computed anew. A
  // stop comes before anything is changed, or when all are forgotten and some trees are empty, to be grown afresh by
  // the next call. When nothing is left the forest is as new, but for the classes it knows.
  void forget(std::span<const Serial> serials, std::size_t n_threads, const StopRequested& requested = {});

  // Forgets one point for each row and value: of several, the oldest. If some are not stored, returns their places, and
  // nothing has changed.
  std::vector<std::size_t> forget(std::span<const float> rows, std::span<const Value> values, std::size_t n_threads,
                                  const StopRequested& requested = {});

  // Forgets all but the latest `n` points.
  void keep_latest(std::size_t n, std::size_t n_threads, const StopRequested& requested = {});

  // Computes the measure anew from all points, whether it is due or not.
  void refresh(std::size_t n_threads, const StopRequested& requested = {});

  // How much each feature tells about the values, see relevance.hpp; at least one point must have been learned.
  std::vector<double> relevance(std::size_t n_threads, const StopRequested& requested = {}) const;

  // The leaf of each tree, n_rows x n_trees; where values are missing, that of the first completion.
  std::vector<NodeIndex> apply(std::span<const float> rows, std::size_t n_threads,
                               const StopRequested& requested = {}) const;

  // How likely a tree would cut each row off from all points before it comes to a leaf, the mean over the trees; 1 if
  // nothing was learned.
  std::vector<double> novelty(std::span<const float> rows, std::size_t n_threads,
                              const StopRequested& requested = {}) const;

  // The same for a part of a forest, in two steps: terms of its own trees, n_terms x n_completions; and, from the sums
  // over all trees of the whole, of which so many are not empty, what novelty() of the whole would be.
  Terms novelty_terms(std::span<const float> rows, std::size_t n_threads, const StopRequested& requested = {}) const;
  std::vector<double> novelty_from(std::span<const float> rows, const TreeSums& sums,
                                   const StopRequested& requested = {}) const;

  const Options& options() const { return options_; }
  std::size_t n_points() const;
  std::size_t n_seen() const;                                                   // points that came, kept or not
  std::vector<std::uint8_t> are_stored(std::span<const Serial> serials) const;  // 1 or 0 for each
  std::vector<Serial> serials() const;                                          // when the points that are kept came
  TargetMeasure measure() const;  // without weights before anything is learned
  std::size_t nbytes() const;     // what the model takes in memory, without scratch

  // Calls f(*this) while no one learns; what f reads through the accessors below is then consistent.
  template <class F>
  auto read(F f) const {
    const ReentryGuard guard(this);
    const std::shared_lock lock(mutex_);
    return f(*this);
  }

  // Only inside read().
  const Points& points() const { return points_; }
  const std::vector<TargetTree>& trees() const { return trees_; }
  const Tenure& tenure() const { return tenure_; }

 protected:
  // Throws std::invalid_argument for options that make no forest.
  explicit Forest(Options options);

  // Learns points whose values are sound; the caller holds the lock. Either the call is rejected with an exception and
  // nothing has changed, or the points are stored, as far as they are to be kept, and on_stored() was called. If then
  // stopped (Interrupted), each tree holds the first so many of the points, and the next call first brings all trees up
  // to date. It ends where it would have ended without the stop, but for trees that were emptied (see Tree::extend):
  // those are grown afresh. A stop while bringing trees up to date comes before the new points are stored.
  //
  // The points of a call are one set; or many, if `one_by_one`: then all is as if each had come in a call of its own,
  // and a stop may find only the first of them stored.
  void learn_values(std::span<const float> rows, std::span<const Value> values, std::size_t n_threads,
                    const StopRequested& requested, bool one_by_one, const std::function<void()>& on_stored);

  // What the points tell about the measure. A function of the points and the options alone.
  virtual Learned<Prior> learn_measure(std::size_t n_threads, StopSignal& signal) const = 0;
  virtual std::vector<double> relevance_of_features(const Columns& columns, std::uint64_t seed, std::size_t n_threads,
                                                    StopSignal& signal) const = 0;
  // Called before a tree learns.
  virtual void prepare(Target&) const {}
  // Called when the points from `first` on are new, or the measure is.
  virtual void set_expected(std::size_t) {}
  // Called when all trees are up to date.
  virtual void settle(std::size_t, StopSignal&) {}
  // Called when nothing is left.
  virtual void start_anew() {}
  // How many of the values, if there were to come more, until the measure cannot wait for its time; more than there are
  // if it can.
  virtual std::size_t n_until_outdated(std::span<const Value> values) const { return values.size() + 1; }

  // Predicts with another measure of the same weights, until it is computed anew.
  void set_measure(TargetMeasure measure);

  std::size_t n_rows(std::span<const float> rows) const;

  // The rows, with what is missing filled in.
  Completed completed(std::span<const float> rows) const;

  // Calls use(first row, completed) for some rows after the other: for all at once, if nothing is missing. `width` is
  // how many numbers are to be made for each completion.
  template <class Use>
  void for_completed(std::span<const float> rows, std::size_t width, Use use) const {
    const std::size_t n = n_rows(rows);
    // Not all at once where something is missing: there are several times as many.
    constexpr std::size_t most_numbers = std::size_t{1} << 20;
    const std::size_t most_together = most_numbers / std::max<std::size_t>(width, 1);
    const std::size_t n_together =
        has_missing(rows) ? std::clamp<std::size_t>(most_together, 1, Completed::kMostRows) : n;
    std::size_t begin = 0;
    do {
      const std::size_t n_here = std::min(n_together, n - begin);
      use(begin, completed(rows.subspan(begin * options_.n_features, n_here * options_.n_features)));
      begin += n_here;
    } while (begin < n);
  }

  // What predict(completed), `width` numbers for each completion, gives for the rows: of a row with several completions
  // merge(first, n, result) makes one of `n` times `width` numbers.
  template <class Predict, class Merge>
  std::vector<double> over_completions(std::span<const float> rows, std::size_t width, Predict predict,
                                       Merge merge) const {
    std::vector<double> result;
    for_completed(rows, width, [&](std::size_t begin, const Completed& queries) {
      std::vector<double> each = predict(queries);
      if (queries.is_plain() && queries.n_rows() == n_rows(rows)) {
        result = std::move(each);
        return;
      }
      result.resize(n_rows(rows) * width);
      for (std::size_t i = 0; i < queries.n_rows(); ++i) {
        merge(each.data() + queries.begin(i) * width, queries.end(i) - queries.begin(i),
              result.data() + (begin + i) * width);
      }
    });
    return result;
  }

  // What a prediction makes of rows; the caller holds the lock, here and below.
  template <class Prediction>
  std::vector<double> predicted(const Prediction& prediction, std::span<const float> rows, std::size_t n_threads,
                                StopSignal& signal) const {
    return over_completions(
        rows, prediction.width,
        [&](const Completed& queries) {
          std::vector<double> sums = sum_over_trees({queries.size(), trees_.size(), prediction.sum_width}, n_threads,
                                                    signal, prediction.make_state, adding(prediction, queries, 0));
          return prediction.finish(queries, std::move(sums), n_grown());
        },
        prediction.merge);
  }

  // The terms of the trees that are held.
  template <class Prediction>
  Terms terms(const Prediction& prediction, std::span<const float> rows, std::size_t n_threads,
              StopSignal& signal) const {
    const TreeRange held = options_.trees_held();
    const std::vector<Term> terms = terms_of(held, options_.n_trees);
    const std::size_t width = prediction.sum_width;
    std::vector<std::vector<double>> of_pieces;
    std::size_t n_numbers = 0;
    for_completed(rows, prediction.width, [&](std::size_t, const Completed& queries) {
      of_pieces.push_back(sum_by_term(terms, {queries.size(), trees_.size(), width}, n_threads, signal,
                                      prediction.make_state, adding(prediction, queries, held.begin)));
      n_numbers += of_pieces.back().size();
    });
    if (of_pieces.size() == 1) return {std::move(of_pieces.front()), n_grown()};
    Terms result{{}, n_grown()};
    result.numbers.reserve(n_numbers);
    for (std::size_t term = 0; term < terms.size(); ++term) {
      for (const std::vector<double>& piece : of_pieces) {
        const auto n = static_cast<std::ptrdiff_t>(piece.size() / terms.size());
        const auto first = piece.begin() + static_cast<std::ptrdiff_t>(term) * n;
        result.numbers.insert(result.numbers.end(), first, first + n);
      }
    }
    return result;
  }

  // What the prediction of the whole forest makes of the sums. Throws std::invalid_argument if they are not those of
  // these rows.
  template <class Prediction>
  std::vector<double> finished(const Prediction& prediction, std::span<const float> rows, const TreeSums& sums,
                               StopSignal& signal) const {
    StopProbe stop(signal, true);
    std::size_t done = 0;
    const auto require_numbers = [&](bool ok) {
      if (!ok) throw std::invalid_argument("the sums are not those of these rows");
    };
    std::vector<double> result = over_completions(
        rows, prediction.width,
        [&](const Completed& queries) {
          const std::size_t n = queries.size() * prediction.sum_width;
          require_numbers(n <= sums.numbers.size() - done);
          const auto some = sums.numbers.subspan(done, n);
          done += n;
          stop.check();
          return prediction.finish(queries, std::vector<double>(some.begin(), some.end()), sums.n_grown);
        },
        prediction.merge);
    require_numbers(done == sums.numbers.size());
    return result;
  }

  std::size_t n_grown() const;  // trees that are not empty

  Options options_;
  Points points_;
  Tenure tenure_;
  MeasureSchedule schedule_;
  MeasurePointer<Prior> measure_;
  std::vector<TargetTree> trees_;
  mutable std::shared_mutex mutex_;

 private:
  template <class ForestType>
  friend class Archive;

  // Points that are to go, in decreasing order, and how others take their place.
  struct Leaving {
    Leaving(std::vector<Slot> some, std::size_t n_points) : slots(std::move(some)) {
      std::ranges::sort(slots, std::greater());
      moves = moves_after(slots, n_points);
    }

    std::vector<Slot> slots;
    std::vector<Move> moves;
  };

  // What adds up trees, of which the first has this number.
  template <class Prediction>
  auto adding(const Prediction& prediction, const Completed& queries, std::size_t first_tree) const {
    return
        [&, first_tree](std::size_t begin, std::size_t end, Piece piece, auto& state, double* sums, StopProbe& stop) {
          prediction.add_trees(std::span(trees_).subspan(begin - first_tree, end - begin),
                               queries.queries(piece.begin, piece.end), state, sums, stop);
        };
  }
  auto novelty_prediction() const;

  void bring_up_to_date(std::size_t n_threads, StopSignal& signal);
  void catch_up(std::size_t n_threads, StopSignal& signal);
  void learn_last_point(std::size_t n_threads, StopSignal& signal);
  void catch_up_tree(TargetTree& tree, const Columns* columns, Workspace& work, StopProbe& stop);
  bool must_grow(const TargetTree& tree) const;
  void refresh_measure(std::size_t n_threads, StopSignal& signal);
  Learned<Prior> learn_measure_and_fill_anew(std::size_t n_threads, StopSignal& signal);
  template <class DonorsOf>
  void fill(std::size_t first, std::span<const Serial> serials, DonorsOf donors_of, std::size_t n_threads,
            StopSignal& signal);
  std::vector<float> filled(std::span<const float> rows, std::span<const Value> values,
                            std::span<const std::size_t> taken, std::size_t n_threads, StopSignal& signal);
  void store(std::span<const float> rows, std::span<const Value> values, std::size_t n_threads, StopSignal& signal,
             const std::function<void()>& on_stored);
  void forget_slots(std::vector<Slot> slots, std::size_t n_threads, StopSignal& signal);
  void remove_points(const Leaving& leaving, std::size_t n_threads, StopSignal& signal);
  std::vector<Slot> find_slots(std::span<const float> rows, std::span<const Value> values, StopSignal& signal) const;

  bool one_by_one_ = false;  // how the points of the last call are learned
  Pool<Workspace> workspaces_;
};

}  // namespace onlineforest
