// The order-free forest: a function of its seed, its options and the set of samples it holds. Must not know Python.
//
// A call that changes the set first stores the change, then brings the trees in line. If it is stopped in between, the
// trees that are behind follow when they are next used. So every answer is that of the set that is stored.
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

// What forests of labels and of numbers have in common.
template <class Target>
class Forest {
 public:
  using Value = typename Target::Value;
  using State = ForestState<Target>;
  using Table = TreeTable<Target>;

  explicit Forest(const Options& options);

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] std::size_t n_features() const { return options_.layout.n_features; }
  [[nodiscard]] std::size_t width() const { return options_.layout.width(); }  // of a row

  // Learns rows with their values and weights. NaN is a missing value. Without weights, each row counts once.
  void learn(std::span<const float> rows, std::span<const Value> values, std::span<const Weight> weights,
             const Call& call);

  // Forgets the samples of these serials. Throws std::invalid_argument if one is not stored or given twice.
  void forget(std::span<const Serial> serials, const Call& call);
  // Forgets samples by row and value, the oldest of equal ones first. Returns the positions of those that are not
  // stored; if there are any, nothing is forgotten.
  std::vector<std::size_t> forget(std::span<const float> rows, std::span<const Value> values, const Call& call);
  void keep_latest(std::size_t n, const Call& call);
  // Counts samples that another forest has seen and forgotten: n_seen() is at least this number then.
  void count_as_seen(std::size_t n_seen);

  // Splits all blocks that are not split yet. Changes no answer.
  void grow_all(const Call& call);

  [[nodiscard]] Table table(std::size_t index, const Call& call) const;

  // The leaf of each row in each tree, as an index of its table; -1 in a tree without nodes.
  [[nodiscard]] std::vector<NodeIndex> apply(std::span<const float> rows, const Call& call) const;

  // For each tree and feature, the decrease of the impurity at the splits per sample. If trees leave samples out, the
  // decrease of the squared error on these samples, which may be negative.
  [[nodiscard]] std::vector<double> importances(const Call& call) const;

  [[nodiscard]] State save() const;

  // What a forest tells about its samples. Each function takes a pass, so it is not called from inside.
  [[nodiscard]] std::size_t n_samples() const {  // samples held, equal ones counted each
    const auto pass = gate_.reading();
    return sample_of_.size();
  }
  [[nodiscard]] std::size_t n_seen() const {
    const auto pass = gate_.reading();
    return tenure_.n_seen();
  }
  [[nodiscard]] std::vector<Serial> serials() const {  // increasing
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
  [[nodiscard]] std::vector<double> weights() const {  // how often each sample counts, in the order of serials()
    const auto pass = gate_.reading();
    std::vector<double> result;
    for (const Slot arrival : order_of_arrivals()) result.push_back(multiplicity(weight_of_[arrival]));
    return result;
  }
  // A number for each sample, the same for equal ones, in the order of serials().
  [[nodiscard]] std::vector<Slot> sample_numbers() const {
    const auto pass = gate_.reading();
    return arrivals(0, sample_of_.size());
  }
  [[nodiscard]] std::vector<std::int64_t> n_levels() const {  // of each categorical feature: those that samples have
    const auto pass = gate_.reading();
    std::vector<std::int64_t> result;
    for (std::size_t c = 0; c < options_.layout.n_categorical; ++c) {
      result.push_back(static_cast<std::int64_t>(samples_.levels(c).size()));
    }
    return result;
  }
  [[nodiscard]] std::uint64_t version() const {  // another number when other samples are held
    const auto pass = gate_.reading();
    return version_;
  }
  [[nodiscard]] std::size_t nbytes() const {
    const auto pass = gate_.reading();
    std::size_t n = samples_.nbytes() + tenure_.nbytes() + calibrators_.nbytes() + weight_of_.nbytes();
    n += sample_of_.capacity() * sizeof(Slot);
    for (const auto& grown : trees_) {
      const std::shared_lock lock(grown->mutex);  // a prediction in another thread may split blocks of this tree
      n += sizeof(Grown) + grown->tree.nbytes();
    }
    return n;
  }
  // Calls visit(name, function) for each of these. The bindings follow this list.
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
  [[nodiscard]] std::vector<Level> levels(std::size_t categorical) const;  // of one feature, those samples have, sorted

 protected:
  using Samples = SampleStore<typename Target::Values>;
  using OneTree = Tree<Target>;
  using Scratch = orderfree::Scratch<Target>;

  static constexpr std::size_t kSamplesPerRow = 16;

  // A tree, and how far it is. A fully grown tree is not changed by predictions.
  struct Grown {
    explicit Grown(const Options& options, std::size_t index) : tree(options, index) {}

    OneTree tree;
    bool is_behind = false;    // it lacks changes of the samples
    bool must_regrow = false;  // a change was not finished, or to follow it would cost more
    bool is_fully_grown = false;
    std::shared_mutex mutex;
  };

  // The options of a state, after a check that a forest of it needs no more than max_bytes, about: throws TooLarge.
  [[nodiscard]] static const Options& options_within(const State& state, std::size_t max_bytes);
  // Fills a new forest. Throws std::invalid_argument if the state is not that of a forest.
  void take_in(const State& state);

  [[nodiscard]] std::size_t n_rows(std::span<const float> rows) const;
  // Throws std::invalid_argument if cells cannot be what they should be. Whether all are numbers, none missing.
  [[nodiscard]] bool check_rows(std::span<const float> rows) const;
  // The indices in sample_of_ in the order of serials. What is asked of all arrivals comes in this order, so that it
  // does not depend on what left in between, nor on a restart.
  [[nodiscard]] std::vector<Slot> order_of_arrivals() const;
  // The samples of the arrivals [begin, end) in the order of serials. Throws std::invalid_argument if there are fewer.
  [[nodiscard]] std::vector<Slot> arrivals(std::size_t begin, std::size_t end) const;
  // The pieces in which a call predicts rows, if a thread needs `n_bytes` for the answers of a row.
  [[nodiscard]] Pieces pieces_of(std::size_t n_rows, std::size_t n_bytes, const Call& call) const {
    return {n_rows, n_bytes, trees_.size(), call.n_threads(), trees_.size()};
  }
  // The same, but several tasks may share a piece, and ask at least so many trees.
  [[nodiscard]] Pieces shared_pieces_of(std::size_t n_rows, std::size_t n_bytes, const Call& call,
                                        std::size_t least_trees) const {
    return {n_rows, n_bytes, trees_.size(), call.n_threads(), least_trees};
  }
  // Whether so many rows need most splits of a tree. All of them at once are cheaper than row by row.
  [[nodiscard]] bool need_all(std::size_t n_rows) const { return n_rows * kSamplesPerRow >= samples_.n_distinct(); }
  // Completes the trees, each on one thread, if so many rows need it. Otherwise threads would wait for each other.
  void grow_all_for(std::size_t n_rows, const Call& call) const;
  // Whether a tree follows the changes of the samples. Otherwise it is grown afresh when it is next used.
  [[nodiscard]] bool is_followed(std::size_t index) const {
    const std::shared_lock lock(trees_[index]->mutex);
    return !trees_[index]->must_regrow;
  }
  // Uses a tree that is up to date, alone or beside others that only read it. `n_rows` rows ask it in this call.
  template <class Use>
  void with_tree(std::size_t index, std::size_t n_rows, Scratch& scratch, StopProbe& stop, Use use) const;
  // Predicts one row with all trees. Flat ones are asked several at a time; `answer_of(t)` is where the answer of tree
  // t goes. Calls use(t, tree) for each of the others.
  template <class AnswerOf, class Use>
  void predict_row(const float* row, bool is_plain, AnswerOf answer_of, Scratch& scratch, StopProbe& stop,
                   Use use) const;
  // Whether a tree may have left out the sample of a slot.
  [[nodiscard]] bool may_be_left_out(Slot slot) const {
    return samples_.weight(slot) > 0 && (options_.max_samples < 1.0 || samples_.calibrates(slot));
  }
  // Whether trees leave out enough samples to tell something.
  [[nodiscard]] bool leaves_out() const {
    return options_.max_samples < 1.0 || calibrators_.n_chosen() >= kFewestCalibrators;
  }

  Options options_;
  Samples samples_;
  typename Target::Ledger ledger_;
  Calibrators<Target> calibrators_;
  std::vector<Slot> sample_of_;  // the sample of each arrival that is held, in the order of tenure_
  SlotWeights weight_of_;        // likewise
  std::vector<std::unique_ptr<Grown>> trees_;
  Gate gate_;
  mutable Pool<Scratch> scratches_;

 private:
  // Samples that come and arrivals that leave.
  struct Exchange {
    std::span<const float> rows = {};
    std::span<const Value> values = {};
    std::span<const Weight> weights = {};  // none if each counts once
    std::vector<Slot> leaving = {};
    const Tenure::Admission* admission = nullptr;
    std::size_t n_came = 0;  // not all are taken in

    [[nodiscard]] Weight weight(std::size_t i) const { return weights.empty() ? kOne : weights[i]; }
    [[nodiscard]] Weight total_weight() const {
      Weight total = 0;
      for (std::size_t i = 0; i < values.size(); ++i) total += weight(i);
      return total;
    }
  };
  // store.hpp
  void change(Exchange exchange, const Call& call);
  void check_room(const Exchange& exchange) const;  // throws std::invalid_argument if the set would be too large
  void make_room(const Exchange& exchange, Notes& notes);
  [[nodiscard]] std::vector<Slot> store_coming(const Exchange& exchange, Notes& notes);
  void subtract_leaving(std::span<const Slot> leaving, Notes& notes);
  void choose_calibrators(Notes& notes);
  void replace_arrivals(const Exchange& exchange, std::span<const Move> moves, std::span<const Slot> came);
  void find_changes(Notes& notes);
  // state.hpp
  static void check_sizes(const State& state);
  void take_in_arrivals(const State& state);
  // upkeep.hpp
  void catch_up(const Call& call);
  // Many splits of the tree may be needed next, or few.
  void catch_up_tree(Grown& grown, Scratch& scratch, StopProbe& stop, bool needs_many) const;
  template <class Work>
  static void change_tree(Grown& grown, Scratch& scratch, Work work);
  [[nodiscard]] Table table_of(std::size_t index, Scratch& scratch, StopProbe& stop) const;

  Tenure tenure_;
  Weight total_weight_ = 0;
  std::uint64_t version_ = 0;
  std::vector<Change> changes_;
  bool is_behind_ = false;  // whether a tree may be behind
};

}  // namespace onlineforest::orderfree
