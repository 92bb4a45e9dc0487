// The order-free forest: a function of its seed, its options and the set of samples it holds. Must not know Python.
//
// A call that changes the set first stores the change, then lets the trees follow. If the call is interrupted in
// between, each tree that is behind follows at its next use. So every prediction is that of the stored set.
#pragma once

#include <algorithm>
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
#include "orderfree/forest/calibrators.hpp"
#include "orderfree/forest/forest_state.hpp"
#include "orderfree/forest/notes.hpp"
#include "orderfree/forest/pieces.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/tree/options.hpp"
#include "orderfree/tree/tree.hpp"
#include "samples/moves.hpp"
#include "samples/slot_numbers.hpp"
#include "samples/tenure.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// The parts of a forest that do not depend on the type of its targets.
template <class Target>
class Forest {
 public:
  using Value = typename Target::Value;
  using State = ForestState<Target>;
  using Table = TreeTable<Target>;

  explicit Forest(const Options& options);

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] std::size_t n_features() const { return options_.layout.n_features; }
  [[nodiscard]] std::size_t width() const { return options_.layout.width(); }  // number of cells of a row

  // Learns rows with their values and weights. NaN is a missing value. If `weights` is empty, each row has weight 1.
  void learn(std::span<const float> rows, std::span<const Value> values, std::span<const Weight> weights,
             const Call& call);

  // Forgets the samples of these serials. Throws std::invalid_argument if one is not stored or given twice.
  void forget(std::span<const Serial> serials, const Call& call);
  // Forgets samples by row and value, the oldest of equal samples first. Returns the indices of the given samples that
  // are not stored. If there are any, forgets nothing.
  std::vector<std::size_t> forget(std::span<const float> rows, std::span<const Value> values, const Call& call);
  void keep_latest(std::size_t n, const Call& call);
  // Raises n_seen() to at least this number, to count samples that another forest has seen and forgotten.
  void count_as_seen(std::size_t n_seen);

  // Splits all pending blocks that predictions with a stop weight need, rather than when one does. Changes no
  // prediction.
  void grow_all(Weight stop_weight, const Call& call);

  // The table of a whole tree. Grows what is lacking and frees it again.
  [[nodiscard]] Table table(std::size_t index, const Call& call) const;

  // The node at which the prediction of each row ends in each tree, as a row of the table of the tree; -1 for a tree
  // without nodes.
  [[nodiscard]] std::vector<NodeIndex> apply(std::span<const float> rows, Weight stop_weight, const Call& call) const;

  // The credit of the splits on each feature in each tree that predicts with a stop weight, per sample. It may be
  // negative.
  [[nodiscard]] std::vector<double> importances(Weight stop_weight, const Call& call) const;

  [[nodiscard]] State save() const;

  // Properties of the stored samples. Each of these functions takes a pass of the gate, so other members, which hold a
  // pass already, must not call them.
  [[nodiscard]] std::size_t n_samples() const {  // number of stored samples; equal samples count separately
    const auto pass = gate_.reading();
    return sample_of_.size();
  }
  [[nodiscard]] std::size_t n_seen() const {
    const auto pass = gate_.reading();
    return tenure_.n_seen();
  }
  [[nodiscard]] std::vector<Serial> serials() const {  // in increasing order
    const auto pass = gate_.reading();
    std::vector<Serial> result(tenure_.serials().begin(), tenure_.serials().end());
    std::ranges::sort(result);
    return result;
  }
  [[nodiscard]] std::vector<Value> values() const {  // in the order of serials()
    const auto pass = gate_.reading();
    std::vector<Value> result;
    for (const Slot slot : arrivals(0, sample_of_.size())) result.push_back(samples_.value(slot));
    return result;
  }
  [[nodiscard]] std::vector<double> weights() const {  // the weight of each sample, in the order of serials()
    const auto pass = gate_.reading();
    std::vector<double> result;
    for (const Slot arrival : order_of_arrivals()) result.push_back(multiplicity(weight_of_[arrival]));
    return result;
  }
  // The slot of each sample, in the order of serials(). Equal samples share a slot.
  [[nodiscard]] std::vector<Slot> sample_numbers() const {
    const auto pass = gate_.reading();
    return arrivals(0, sample_of_.size());
  }
  // The number of levels that the stored samples have, for each categorical feature.
  [[nodiscard]] std::vector<std::int64_t> n_levels() const {
    const auto pass = gate_.reading();
    std::vector<std::int64_t> result;
    for (std::size_t c = 0; c < options_.layout.n_categorical; ++c) {
      result.push_back(static_cast<std::int64_t>(samples_.levels(c).size()));
    }
    return result;
  }
  [[nodiscard]] std::uint64_t version() const {  // increases whenever the set of stored samples changes
    const auto pass = gate_.reading();
    return version_;
  }
  [[nodiscard]] std::size_t nbytes() const {
    const auto pass = gate_.reading();
    std::size_t n =
        samples_.nbytes() + tenure_.nbytes() + calibrators_.nbytes() + weight_of_.nbytes() + levels_.nbytes();
    n += sample_of_.capacity() * sizeof(Slot);
    for (const auto& grown : trees_) {
      const std::shared_lock lock(grown->mutex);  // a prediction in another thread may split blocks of this tree
      n += sizeof(Grown) + grown->tree.nbytes();
    }
    return n;
  }
  // Calls visit(name, function) for each of the properties above. The bindings follow this list.
  template <class Visit>
  static void for_each_property(Visit visit) {
    visit("n_samples", &Forest::n_samples);
    visit("n_seen", &Forest::n_seen);
    visit("serials", &Forest::serials);
    visit("values", &Forest::values);
    visit("weights", &Forest::weights);
    visit("sample_numbers", &Forest::sample_numbers);
    visit("n_levels", &Forest::n_levels);
    visit("version", &Forest::version);
    visit("nbytes", &Forest::nbytes);
  }

  [[nodiscard]] std::vector<std::uint8_t> are_stored(std::span<const Serial> serials) const;
  // The levels that the stored samples have in one categorical feature, sorted.
  [[nodiscard]] std::vector<Level> levels(std::size_t categorical) const;

 protected:
  using Samples = SampleStore<typename Target::Values>;
  using OneTree = Tree<Target>;
  using Scratch = orderfree::Scratch<Target>;

  static constexpr std::size_t kSamplesPerRow = 16;  // see need_all()
  static constexpr std::size_t kManyRows = 16;       // from here on, computing the ranks of all samples pays

  // A tree with its progress. Predictions do not change a fully grown tree.
  struct Grown {
    explicit Grown(const Options& options, std::size_t index) : tree(options, index) {}

    OneTree tree;
    bool is_behind = false;       // the tree has not followed the last changes of the samples
    bool must_regrow = false;     // a change was interrupted, or regrowing costs less than following it
    bool is_fully_grown = false;  // down to the stop weight of the tree
    std::shared_mutex mutex;
  };

  // Returns the options of a state. Throws TooLarge if the estimated memory of its forest exceeds `max_bytes`.
  [[nodiscard]] static const Options& options_within(const State& state, std::size_t max_bytes);
  // Fills a new forest from a state. Throws std::invalid_argument if the state is invalid.
  void take_in(const State& state);

  // Throws std::invalid_argument if a stop weight is out of range.
  static void check_stop_weight(Weight stop_weight);

  [[nodiscard]] std::size_t n_rows(std::span<const float> rows) const;
  // Throws std::invalid_argument if a number is infinite or two cells do not encode a level. Returns whether all
  // features are numeric and no value is missing.
  [[nodiscard]] bool check_rows(std::span<const float> rows) const;
  // The indices of sample_of_ in the order of serials. Properties of all arrivals are listed in this order, so they do
  // not depend on removals in between, nor on saving and loading.
  [[nodiscard]] std::vector<Slot> order_of_arrivals() const;
  // The samples of the arrivals [begin, end) in the order of serials. Throws std::invalid_argument if there are fewer.
  [[nodiscard]] std::vector<Slot> arrivals(std::size_t begin, std::size_t end) const;
  // Divides the rows of a call into pieces, each for one task. A thread needs `n_bytes` for the answers of a row.
  [[nodiscard]] Pieces pieces_of(std::size_t n_rows, std::size_t n_bytes, const Call& call) const {
    return {n_rows, n_bytes, trees_.size(), call.n_threads(), trees_.size()};
  }
  // Divides the rows of a call into pieces. Several tasks may share a piece: each asks at least `least_trees` trees.
  [[nodiscard]] Pieces shared_pieces_of(std::size_t n_rows, std::size_t n_bytes, const Call& call,
                                        std::size_t least_trees) const {
    return {n_rows, n_bytes, trees_.size(), call.n_threads(), least_trees};
  }
  // Whether predicting `n_rows` rows needs most splits of a tree. It is then cheaper to grow the whole tree at once
  // than to split blocks row by row.
  [[nodiscard]] bool need_all(std::size_t n_rows) const { return n_rows * kSamplesPerRow >= samples_.n_distinct(); }
  // Grows the trees, each on one thread, if need_all(n_rows). Otherwise threads would wait for each other at the trees.
  void grow_all_for(std::size_t n_rows, Weight stop_weight, const Call& call) const;
  // Whether a tree follows the changes of the samples. Otherwise it is regrown at its next use.
  [[nodiscard]] bool is_followed(std::size_t index) const {
    const std::shared_lock lock(trees_[index]->mutex);
    return !trees_[index]->must_regrow;
  }
  // Brings a tree up to date and to a stop weight and calls use(tree), with a shared lock if the tree is fully grown,
  // else with an exclusive one. `n_rows` is the number of rows that this call predicts.
  template <class Use>
  void with_tree(std::size_t index, std::size_t n_rows, Weight stop_weight, Scratch& scratch, StopProbe& stop,
                 Use use) const;
  // Brings a tree up to date and calls use(tree), which may split blocks, with an exclusive lock. The tree keeps its
  // stop weight.
  template <class Use>
  void with_tree_alone(std::size_t index, std::size_t n_rows, Scratch& scratch, StopProbe& stop, Use use) const;
  // Predicts one row with all trees. Evaluates flat trees several at a time and writes the answer of tree t to
  // answer_of(t). Calls use(t, tree) for each of the other trees.
  template <class AnswerOf, class Use>
  void predict_row(const float* row, bool is_plain, Weight stop_weight, AnswerOf answer_of, Scratch& scratch,
                   StopProbe& stop, Use use) const;
  // Whether some tree may have left out the sample of this slot.
  [[nodiscard]] bool may_be_left_out(Slot slot) const {
    return samples_.weight(slot) > 0 && (options_.max_samples < 1.0 || samples_.calibrates(slot));
  }

  Options options_;
  Samples samples_;
  typename Target::Ledger ledger_;
  typename Target::Levels levels_;  // empty if nothing is calibrated
  Calibrators<Target> calibrators_;
  std::vector<Slot> sample_of_;  // the sample of each stored arrival, in the order of tenure_
  SlotWeights weight_of_;        // the weight of each stored arrival, in the order of tenure_
  Weight total_weight_ = 0;
  std::vector<std::unique_ptr<Grown>> trees_;
  Gate gate_;
  mutable Pool<Scratch> scratches_;

 private:
  // A change of the set of samples: samples that come and arrivals that leave.
  struct SetChange {
    std::span<const float> rows = {};
    std::span<const Value> values = {};
    std::span<const Weight> weights = {};  // empty if all weights are 1
    std::vector<Slot> leaving = {};
    const Tenure::Admission* admission = nullptr;
    std::size_t n_came = 0;  // number of samples of the call; a reservoir does not admit all of them

    [[nodiscard]] Weight weight(std::size_t i) const { return weights.empty() ? kOne : weights[i]; }
    [[nodiscard]] Weight total_weight() const {
      Weight total = 0;
      for (std::size_t i = 0; i < values.size(); ++i) total += weight(i);
      return total;
    }
  };
  // store.hpp
  void change(SetChange set_change, const Call& call);
  void check_room(const SetChange& set_change) const;  // throws std::invalid_argument if the set would be too large
  void make_room(const SetChange& set_change, Notes& notes);
  [[nodiscard]] std::vector<Slot> store_coming(const SetChange& set_change, Notes& notes);
  void subtract_leaving(std::span<const Slot> leaving, Notes& notes);
  void choose_calibrators(Notes& notes);
  void replace_arrivals(const SetChange& set_change, std::span<const Move> moves, std::span<const Slot> came);
  void find_changes(Notes& notes);
  // saving.hpp
  static void check_sizes(const State& state);
  void take_in_arrivals(const State& state);
  // upkeep.hpp
  void catch_up(const Call& call);
  // `needs_many`: whether the caller is about to use many splits of the tree.
  void catch_up_tree(Grown& grown, Scratch& scratch, StopProbe& stop, bool needs_many) const;
  template <class Work>
  static void change_tree(Grown& grown, Scratch& scratch, Work work);
  void stop_at(Grown& grown, Weight stop_weight, Scratch& scratch) const;
  [[nodiscard]] std::vector<Slot> slots_by_key() const;  // all stored samples

  Tenure tenure_;
  std::uint64_t version_ = 0;
  std::vector<Change> changes_;
  bool is_behind_ = false;  // whether some tree may be behind
};

}  // namespace onlineforest::orderfree
