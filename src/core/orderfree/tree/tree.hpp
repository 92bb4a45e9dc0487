// One tree of the order-free forest. Must not know other trees, nor how a forest keeps samples.
//
// A block of more than 64 samples that was cut is a junction; it keeps the samples that decide its cut. Every other
// block is a list of its samples. A list is cut when a prediction first asks for it: small lists into a small tree of
// their own, larger ones into a junction with two lists. When it is cut cannot be seen from outside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/compiler.hpp"
#include "base/recycler.hpp"
#include "base/stop.hpp"
#include "base/types.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/tree/flat_tree.hpp"
#include "orderfree/tree/options.hpp"
#include "orderfree/tree/tree_table.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// A sample that has changed, and how it was before.
struct Change {
  Slot slot;
  Weight weight_before;
  bool calibrated_before;
};

// Scratch memory of a thread.
template <class Target>
struct Scratch {
  struct Ranked {
    Word rank;
    Slot slot;
  };
  // A change as a tree sees it: by how much the weight of a sample has changed in it.
  struct Step {
    Slot slot;
    Weight by;
  };
  Panel<Target> panel;
  const void* loaded = nullptr;  // the list whose samples the panel holds
  std::vector<Step> steps;
  std::vector<Slot> coming;
  std::vector<Ranked> ranked, ranked_too;
  std::vector<NodeIndex> stack;
  std::vector<Slot> to_left, to_right;
  typename Target::Scratch of_target;

  // After an exception in the middle of a use.
  void clear() noexcept {
    loaded = nullptr;
    of_target.clear();
  }
};

// `Target` says what the samples have as values and what a leaf predicts: Labels or Numbers.
template <class Target>
class Tree {
 public:
  using Values = typename Target::Values;
  using Value = typename Target::Value;
  using Samples = SampleStore<Values>;
  using Scratch = orderfree::Scratch<Target>;
  using Answers = typename Target::Answers;
  using Table = TreeTable<Target>;

  Tree(const Options& options, std::size_t index);

  // Whether the tree may leave out samples.
  [[nodiscard]] bool leaves_out() const { return options_.max_samples < 1.0 || leaves_calibrators_out(); }
  // Whether the tree leaves out the samples that calibrate.
  [[nodiscard]] bool leaves_calibrators_out() const { return options_.calibrates && leaves_calibrators_out_; }
  // Whether the tree learns the sample of a slot.
  [[nodiscard]] bool takes(const Samples& samples, Slot slot) const {
    return takes(samples, slot, samples.calibrates(slot));
  }

  // Brings the tree in line with changes of the samples. After an exception it must be regrown.
  void apply(const Samples& samples, std::span<const Change> changes, Scratch& scratch, StopProbe& stop);

  // Starts again from all samples. Ranked ones make the first cut dearer, and all cuts together cheaper.
  void regrow(const Samples& samples, Scratch& scratch, StopProbe& stop, bool ranks = true);
  void clear();

  // Cuts all that is not cut yet, and makes the tree fast to predict with.
  void complete(const Samples& samples, Scratch& scratch, StopProbe& stop);

  // Gives the predictions at rows, which are plain if they hold numbers and lack none. Changes nothing if the tree is
  // complete.
  void predict(const Samples& samples, std::span<const float> rows, bool are_plain, const Answers& answers,
               Scratch& scratch, StopProbe& stop);

  // Whether predictions neither change the tree nor look at its samples.
  [[nodiscard]] bool is_flat() const { return !flat_.empty(); }
  // Gives the predictions of flat trees at one row; `answer_of(i)` is where that of the i-th tree goes.
  template <class AnswerOf>
  static void predict_together(std::span<const Tree* const> trees, const float* row, bool is_plain,
                               AnswerOf answer_of) {
    std::array<const Flat*, kTogether> flat;
    for (std::size_t i = 0; i < trees.size(); ++i) flat[i] = &trees[i]->flat_;
    Flat::for_each_tree({flat.data(), trees.size()}, row, is_plain,
                        [&](std::size_t i, std::size_t leaf) { flat[i]->leaves().predict(leaf, answer_of(i)); });
  }
  static constexpr std::size_t kTogether = 16;  // at most so many

  // Completes the tree and describes it.
  [[nodiscard]] Table table(const Samples& samples, Scratch& scratch, StopProbe& stop);

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  // Whether a large tree has no cut, and the first prediction will make one. To regrow it costs about as much.
  [[nodiscard]] bool is_uncut() const {
    if (empty() || node(kRoot).kind != Kind::kList) return false;
    const List& root = lists_[node(kRoot).contents];
    return !root.is_small() && !is_leaf(root);
  }
  [[nodiscard]] std::size_t nbytes() const;

 private:
  using Order = RankOrder<Values>;
  using Summary = typename Target::Summary;
  using Answer = typename Target::Answer;
  using Step = typename Scratch::Step;
  using Ranked = typename Scratch::Ranked;
  using Flat = FlatTree<typename Target::FlatLeaves>;

  enum class Kind : std::uint8_t {
    kCut,
    kList,
    kClosed,  // a junction that counts as a leaf, because all its values are equal
  };

  struct Node {
    float threshold = 0.0f;
    CutCell cell;
    NodeIndex left = kNoNode;    // the right child follows
    std::int32_t contents = -1;  // index of a junction or of a list
    Kind kind = Kind::kList;
  };

  struct Junction {
    NodeIndex parent = kNoNode;
    Word seed = 0;
    Fork fork;
    std::size_t n = 0;  // distinct samples
    Summary summary;
    std::vector<Slot> deciding;  // the samples that decide the cut, in the order of the bits of `ballot`
    ONLINEFOREST_NO_UNIQUE_ADDRESS typename Target::Ballot ballot;
    std::size_t last = 0;  // which of them has the greatest rank
    Word last_rank = 0;
    bool is_stretched = false;  // the last one was chosen for its row, not its rank
  };

  static constexpr std::int32_t kUncut = -1;  // feature of a twig that is not cut yet
  static constexpr std::int32_t kLeaf = -2;   // feature of a twig that is a leaf

  // A node of the small tree of a list.
  struct Twig {
    Block block;
    Cut cut;
    std::uint32_t next;  // the left child, which the right one follows; or the leaf
  };

  struct List {
    NodeIndex parent = kNoNode;
    Word seed = 0;
    std::vector<Slot> slots;
    bool is_ranked = false;  // whether slots are in the order of ranks
    bool has_one_x = false;  // only of a large list: whether all rows are known to be equal
    Summary summary;         // only of a large list
    ONLINEFOREST_NO_UNIQUE_ADDRESS typename Target::LargeLeaf large_leaf;
    std::vector<Twig> twigs;                                       // only of a small list, as are its leaves
    std::vector<std::pair<std::uint32_t, Surrogates>> surrogates;  // of twigs that have some
    typename Target::TwigLeaves leaves;

    [[nodiscard]] bool is_small() const { return slots.size() <= kMostDeciding; }
    void uncut() {
      large_leaf = {};
      twigs.clear();
      surrogates.clear();
      leaves.clear();
    }
    [[nodiscard]] Surrogates surrogates_of(std::uint32_t twig) const {
      for (const auto& [owner, found] : surrogates) {
        if (owner == twig) return found;
      }
      return {};
    }
    // Where a row goes at a twig that is cut.
    [[nodiscard]] bool sends_left(std::uint32_t twig, const float* row) const {
      const Cut& cut = twigs[twig].cut;
      if (surrogates.empty() || !is_missing(row[cut.cell])) return orderfree::sends_left(cut, {}, row);
      return orderfree::sends_left(cut, surrogates_of(twig), row);
    }
    void swap_twigs(List& other) {
      twigs.swap(other.twigs);
      surrogates.swap(other.surrogates);
      std::swap(leaves, other.leaves);
    }
    void free_twigs() {  // an assignment of {} would keep the memory
      twigs = std::vector<Twig>();
      surrogates = {};
      leaves = typename Target::TwigLeaves();
    }
  };

  [[nodiscard]] bool takes(const Samples& samples, Slot slot, bool calibrates) const {
    if (calibrates && leaves_calibrators_out_) return false;
    return options_.max_samples >= 1.0 || scramble(samples.x_hash(slot) ^ seeds_.membership) < membership_;
  }
  // The weight of a sample in this tree.
  [[nodiscard]] Weight weight(const Samples& samples, Slot slot) const {
    return takes(samples, slot) ? samples.weight(slot) : 0;
  }
  [[nodiscard]] bool is_gone(const Samples& samples, Slot slot) const { return weight(samples, slot) == 0; }
  [[nodiscard]] bool is_new(const Samples& samples, const Step& step) const {
    return weight(samples, step.slot) == step.by;
  }

  // Of a block that may be cut.
  [[nodiscard]] Weight least_weight() const { return options_.min_samples_split * kOne; }
  [[nodiscard]] Order order(const Samples& samples) const { return {samples, seeds_.rank}; }
  [[nodiscard]] bool counts_as_leaf(const Summary& summary) const {
    return summary.is_pure() || summary.total() < least_weight();
  }
  [[nodiscard]] Node& node(NodeIndex at) { return nodes_[static_cast<std::size_t>(at)]; }
  [[nodiscard]] const Node& node(NodeIndex at) const { return nodes_[static_cast<std::size_t>(at)]; }

  // apply.hpp
  struct Task {
    NodeIndex at;
    std::span<Step> steps;
  };
  void apply_to_junction(const Task& task, const Samples& samples, Scratch& scratch, std::vector<Task>& tasks);
  void apply_to_list(const Task& task, const Samples& samples, Scratch& scratch, StopProbe& stop);
  // The cut after changes; nothing if those who decide must be found afresh.
  [[nodiscard]] std::optional<Fork> decide_again(NodeIndex at, const Samples& samples, std::span<const Step> steps,
                                                 Scratch& scratch);
  // Seats the coming samples with the help of the ballot. If it cannot, it leaves those that are not seated. At most
  // one sample is lost.
  [[nodiscard]] bool exchange_few(Junction& junction, const Samples& samples, const Step* lost,
                                  std::vector<Slot>& coming) const;
  void find_next(NodeIndex at, const Samples& samples, Slot last, std::size_t n, std::vector<Slot>& found) const;
  void collapse(const Task& task, const Samples& samples, Scratch& scratch);
  void cut_again(const Task& task, const Samples& samples, Scratch& scratch);
  // Calls use(slot) for each sample below a node, gone ones included.
  template <class Use>
  void for_each_below(NodeIndex at, Scratch& scratch, Use use) const;
  // Moves the samples below a node to a list, without those that are gone, and removes what is below.
  [[nodiscard]] std::vector<Slot> gather(const Task& task, const Samples& samples, Scratch& scratch);

  // grow.hpp
  void settle(List& list, const Samples& samples) const;
  void split(NodeIndex at, std::int32_t junction_index, std::int32_t left_list, const Samples& samples,
             Scratch& scratch);
  bool cut_list(NodeIndex at, const Samples& samples, Scratch& scratch, StopProbe& stop);
  void find_deciding(const Samples& samples, const List& list, Junction& junction, Scratch& scratch) const;
  [[nodiscard]] std::optional<Fork> decide(Junction& junction, const Samples& samples, Scratch& scratch) const;
  void find_last(Junction& junction, const Samples& samples) const;
  void grow_twig(List& list, std::span<const std::uint32_t> path, const Samples& samples, Scratch& scratch);
  void grow_twigs(List& list, const Samples& samples, Scratch& scratch);
  [[nodiscard]] bool is_leaf(const List& list) const { return list.has_one_x || counts_as_leaf(list.summary); }
  [[nodiscard]] NodeIndex take_pair();
  void set_cut(NodeIndex at, const Junction& junction);

  // predict.hpp
  void flatten_twigs(const List& list, NodeIndex root, Flat& flat, Scratch& scratch) const;
  void predict_one(const Samples& samples, const float* x, Answer answer, Scratch& scratch, StopProbe& stop);

  // What a leaf predicts: label_tree.cpp and number_tree.cpp.
  void answer_nothing(Answer answer) const;
  void make_leaf(List& list, std::span<const std::uint32_t> path, const Panel<Target>& panel) const;
  void answer_twig(const List& list, std::uint32_t leaf, Answer answer) const;
  void answer_list(List& list, const Samples& samples, Answer answer) const;
  void answer_closed(NodeIndex at, Answer answer) const;
  void flatten_twig_leaf(const List& list, std::uint32_t leaf, NodeIndex at, Flat& flat, Scratch& scratch) const;
  void flatten_large_leaf(NodeIndex node, const Samples& samples, NodeIndex at, Flat& flat, Scratch& scratch);
  struct TableVisit {
    NodeIndex at;      // of a node
    const List* list;  // or of a twig of this list
    std::uint32_t twig;
    std::int32_t parent;
    bool is_right;
  };
  // Adds what is visited to the table, and its children to the visits.
  void add_node(const TableVisit& visit, const Samples& samples, Table& table, std::vector<TableVisit>& visits);
  void add_twig(const TableVisit& visit, const Samples& samples, Scratch& scratch, Table& table,
                std::vector<TableVisit>& visits) const;
  void describe_node(NodeIndex at, const Samples& samples, Table& table);
  void describe_twig(Block block, const Panel<Target>& panel, Table& table) const;
  static void finish_table(Table& table);
  // Only of labels.
  void add_counts(const Summary& counts, double& left, Answer answer) const;
  NodeIndex add_ancestors(NodeIndex at, double left, Answer answer) const;
  static void take_shares(const Summary& labels, Flat& flat, Scratch& scratch);

  Options options_;
  TreeSeeds seeds_;
  Word membership_;  // the tree takes samples whose hash is below; unused if it takes all
  bool leaves_calibrators_out_;
  std::vector<Node> nodes_;
  std::vector<NodeIndex> free_pairs_;
  Recycler<Junction> junctions_;
  Recycler<List> lists_;
  Flat flat_;  // of a complete tree; its lists have no twigs
};

}  // namespace onlineforest::orderfree
