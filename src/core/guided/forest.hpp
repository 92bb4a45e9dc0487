// The order-free forest: a function of its seed, its options and the set of samples it holds. Must not know Python.
//
// A call that changes the set first stores the change, then brings the trees in line. If it is stopped in between, the
// trees that are behind follow when they are next used. So every answer is that of the set that is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "base/call.hpp"
#include "base/gate.hpp"
#include "base/pool.hpp"
#include "base/types.hpp"
#include "guided/label_counts.hpp"
#include "guided/options.hpp"
#include "guided/sample_store.hpp"
#include "guided/tree.hpp"
#include "points/tenure.hpp"

namespace onlineforest::guided {

// What a forest is made of. Trees are grown from it again.
struct ForestState {
  Options options;
  std::vector<Word> label_hashes;
  std::vector<std::uint8_t> are_declared;
  std::vector<float> rows;      // of each distinct sample
  std::vector<Label> labels;    // of each distinct sample
  std::vector<Slot> sample_of;  // of each arrival
  std::vector<Serial> serials;  // of each arrival
  std::uint64_t n_seen = 0;
  double turned_away = -kInfinity;
};

class Forest {
 public:
  using Value = Label;

  explicit Forest(const Options& options);

  [[nodiscard]] const Options& options() const { return options_; }

  // Gives labels the codes 0, 1, ... `hashes` are those of all labels; the first ones keep their codes. A label is
  // known if it is declared or if a sample of it is held.
  void set_labels(std::span<const Word> hashes, std::span<const std::uint8_t> are_declared);

  // Learns rows with the codes of their labels.
  void learn(std::span<const float> rows, std::span<const Label> labels, const Call& call);

  // Forgets the samples of these serials. Throws std::invalid_argument if one is not stored or given twice.
  void forget(std::span<const Serial> serials, const Call& call);
  // Forgets samples by row and label, the oldest of equal ones first. Returns the positions of those that are not
  // stored; if there are any, nothing is forgotten.
  std::vector<std::size_t> forget(std::span<const float> rows, std::span<const Label> labels, const Call& call);
  void keep_latest(std::size_t n, const Call& call);

  // Cuts all blocks that are not cut yet. Changes no answer.
  void complete(const Call& call);

  // Probabilities in the order of codes, n_labels() for each row; 0 for labels that are not known.
  [[nodiscard]] std::vector<double> predict(std::span<const float> rows, const Call& call) const;

  // The same for each sample held, in the order of serials(), from the trees that have not learned its row; and the
  // number of these trees. NaN where there are none.
  struct LeftOut {
    std::vector<double> probabilities;
    std::vector<std::int64_t> n_trees;
  };
  [[nodiscard]] LeftOut predict_left_out(const Call& call) const;

  [[nodiscard]] TreeTable table(std::size_t index, const Call& call) const;

  // The leaf of each row in each tree, as an index of its table; -1 in a tree without nodes.
  [[nodiscard]] std::vector<NodeIndex> apply(std::span<const float> rows, const Call& call) const;

  // For each feature, the decrease of the Gini impurity at its cuts per sample, the mean over trees. If trees leave
  // rows out, the decrease of the squared error of class frequencies on these rows, which may be negative.
  [[nodiscard]] std::vector<double> importances(const Call& call) const;

  [[nodiscard]] ForestState save() const;
  // Throws std::invalid_argument if the state is not that of a forest.
  static std::unique_ptr<Forest> restore(const ForestState& state);

  [[nodiscard]] std::size_t n_points() const;  // samples held, equal ones counted each
  [[nodiscard]] std::size_t n_seen() const;
  [[nodiscard]] std::vector<Serial> serials() const;
  [[nodiscard]] std::vector<std::uint8_t> are_stored(std::span<const Serial> serials) const;
  [[nodiscard]] std::int32_t n_labels() const;                    // labels that have a code
  [[nodiscard]] std::vector<std::int64_t> label_weights() const;  // by code
  [[nodiscard]] std::uint64_t labels_version() const;  // another number when other labels are known or have codes
  [[nodiscard]] std::size_t nbytes() const;

 private:
  // A tree, and how far it is. A complete tree is not changed by predictions.
  struct Grown {
    explicit Grown(const Options& options, std::size_t index) : tree(options, index) {}

    Tree tree;
    bool is_behind = false;    // it lacks `changes_`
    bool must_regrow = false;  // a change was not finished
    bool is_complete = false;
    std::shared_mutex mutex;
  };

  [[nodiscard]] std::size_t n_rows(std::span<const float> rows) const;
  void change(std::span<const float> rows, std::span<const Label> labels, std::vector<Slot> leaving,
              const Tenure::Admission* admission, std::size_t n_came, const Call& call);
  void catch_up(const Call& call);
  void catch_up_tree(Grown& grown, Scratch& scratch, StopProbe& stop) const;
  template <class Work>
  static void change_tree(Grown& grown, Scratch& scratch, Work work);
  // Uses a tree that is up to date, alone or beside others that only read it.
  template <class Use>
  void with_tree(std::size_t index, Scratch& scratch, StopProbe& stop, Use use) const;
  [[nodiscard]] TreeTable table_of(std::size_t index, Scratch& scratch, StopProbe& stop) const;
  void finish(std::span<const std::uint64_t> masses, std::uint64_t rest, std::span<double> probabilities) const;
  void find_known();

  Options options_;
  SampleStore samples_;
  Tenure tenure_;
  std::vector<Slot> sample_of_;  // the sample of each arrival that is held, in the order of tenure_
  LabelCounts totals_;
  std::vector<std::uint8_t> are_declared_;
  std::vector<Label> known_, known_before_;
  std::uint64_t labels_version_ = 0;
  std::vector<Change> changes_;
  bool is_behind_ = false;  // whether a tree may be behind
  std::vector<std::unique_ptr<Grown>> trees_;
  Gate gate_;
  mutable Pool<Scratch> scratches_;
};

}  // namespace onlineforest::guided
