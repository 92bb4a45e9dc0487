// One tree of the order-free forest. Must not know other trees, nor how a forest keeps samples.
//
// A block of more than 64 samples that is split is a junction. It stores the samples that decide its split. Every other
// block is a list of its samples. A list is split when a prediction first reaches it: a list of up to 64 samples grows
// a small tree of twigs, a larger one becomes a junction with two lists. Predictions do not depend on when a list is
// split.
//
// A tree predicts with a stop weight: a walk from the root does not enter a block that is lighter, and ends at the
// parent of that block, which predicts like a leaf. So blocks below need not be split.
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

// A sample whose weight or role as a calibrator has changed, with its former state.
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
  // A change of one tree: the weight of a sample in this tree changed by `by`.
  struct Step {
    Slot slot;
    Weight by;
  };
  Panel<Target> panel;
  const void* loaded = nullptr;  // the list whose samples are in the panel
  std::vector<Step> steps;
  std::vector<Slot> coming;
  std::vector<Ranked> ranked, ranked_too;
  std::vector<NodeIndex> stack;
  std::vector<Slot> to_left, to_right;
  typename Target::Scratch of_target;

  // Call this after an exception, which may leave the memory in use.
  void clear() noexcept {
    loaded = nullptr;
    of_target.clear();
  }
};

// `Target` is Labels or Numbers. It defines the values of samples and the predictions of leaves.
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
  // Whether the tree leaves calibrators out.
  [[nodiscard]] bool leaves_calibrators_out() const { return options_.calibrates && leaves_calibrators_out_; }
  // Whether the tree learns the sample of a slot.
  [[nodiscard]] bool takes(const Samples& samples, Slot slot) const {
    return takes(samples, slot, samples.calibrates(slot));
  }

  // The rank of a sample in this tree.
  [[nodiscard]] Word rank(const Samples& samples, Slot slot) const { return order(samples).rank(slot); }

  // Follows changes of the samples. After an exception the tree must be regrown.
  void follow(const Samples& samples, std::span<const Change> changes, Scratch& scratch, StopProbe& stop);

  // Grows the tree again from all samples. With `ranks`, samples are sorted by rank first: that makes the first split
  // slower and all splits together faster.
  void regrow(const Samples& samples, Scratch& scratch, StopProbe& stop, bool ranks = true);
  void clear();

  // Sets the stop weight. Frees memory that only a lower stop weight needs.
  void stop_at(Weight stop_weight, const Samples& samples, Scratch& scratch);
  [[nodiscard]] Weight stop_weight() const { return stop_weight_; }

  // Makes all pending splits that predictions need, and builds the flat tree, which predicts faster.
  void grow_all(const Samples& samples, Scratch& scratch, StopProbe& stop);

  // Predicts rows. Plain rows have no categorical features and no missing values. Changes nothing if the tree is fully
  // grown.
  void predict(const Samples& samples, std::span<const float> rows, bool are_plain, const Answers& answers,
               Scratch& scratch, StopProbe& stop);
  // Predicts rows with each of several stop weights, which increase: answers[k] is for stop_weights[k]. The stop weight
  // of the tree stays.
  void predict_each(const Samples& samples, std::span<const float> rows, std::span<const Weight> stop_weights,
                    std::span<const Answers> answers, Scratch& scratch, StopProbe& stop);

  // Whether the tree has its flat form: then predictions neither change the tree nor read its samples.
  [[nodiscard]] bool is_flat() const { return !flat_.empty(); }
  // Predicts one row with at most kTogether flat trees. The prediction of the i-th tree goes to `answer_of(i)`.
  template <class AnswerOf>
  static void predict_together(std::span<const Tree* const> trees, const float* row, bool is_plain,
                               AnswerOf answer_of) {
    std::array<const Flat*, kTogether> flat;
    for (std::size_t i = 0; i < trees.size(); ++i) flat[i] = &trees[i]->flat_;
    Flat::for_each_tree({flat.data(), trees.size()}, row, is_plain,
                        [&](std::size_t i, std::size_t leaf) { flat[i]->leaves().predict(leaf, row, answer_of(i)); });
  }
  static constexpr std::size_t kTogether = 16;

  // The table of all nodes. Grows what is lacking and frees it again.
  [[nodiscard]] Table table(const Samples& samples, Scratch& scratch, StopProbe& stop) {
    return table_down_to(0, samples, scratch, stop);
  }
  // The table of the nodes that predict: those that are lighter than the stop weight are leaves of it.
  [[nodiscard]] Table table_above(const Samples& samples, Scratch& scratch, StopProbe& stop) {
    return table_down_to(stop_weight_, samples, scratch, stop);
  }

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  // Whether the tree has more than 64 samples and no split yet. Regrowing such a tree costs about as much as its first
  // split.
  [[nodiscard]] bool is_unsplit() const {
    if (empty() || node(kRoot).kind != Kind::kList) return false;
    const List& root = lists_[node(kRoot).contents];
    return !root.is_small() && !is_leaf(root);
  }
  [[nodiscard]] std::size_t nbytes() const;

 private:
  using Order = RankOrder<Values>;
  using Summary = typename Target::Summary;
  using Line = typename Target::Line;
  using Answer = typename Target::Answer;
  using Step = typename Scratch::Step;
  using Ranked = typename Scratch::Ranked;
  using Flat = FlatTree<typename Target::FlatLeaves>;

  enum class Kind : std::uint8_t {
    kSplit,
    kList,
    kClosed,  // a junction that predicts like a leaf, because all its values are equal
  };

  struct Node {
    Weight weight = 0;  // total weight of its samples
    float threshold = 0.0f;
    SplitCell cell;
    NodeIndex left = kNoNode;    // the right child has the next index
    std::int32_t contents = -1;  // index of a junction or of a list, depending on `kind`
    Kind kind = Kind::kList;
  };

  struct Junction {
    NodeIndex parent = kNoNode;
    Word seed = 0;
    Fork fork;
    std::size_t n = 0;  // number of distinct samples
    Summary summary;
    std::vector<Slot> deciding;  // deciding samples, in the order of the bits of `ballot`
    ONLINEFOREST_NO_UNIQUE_ADDRESS typename Target::Ballot ballot;
    ONLINEFOREST_NO_UNIQUE_ADDRESS Line line;                              // fitted to the deciding samples
    bool has_new_line = false;                                             // whether the last decision changed the line
    ONLINEFOREST_NO_UNIQUE_ADDRESS typename Target::LargeLeaf large_leaf;  // used if a walk ends here
    std::size_t last = 0;  // index of the deciding sample of greatest rank
    Word last_rank = 0;
    bool is_stretched = false;  // all rows of least rank were equal, so the last sample was chosen for another row
  };

  static constexpr std::int32_t kUnsplit = -1;  // cell of a twig that is not split yet
  static constexpr std::int32_t kLeaf = -2;     // cell of a twig that is a leaf
  static constexpr std::int32_t kNone = -1;

  // A node of the small tree of a list.
  struct Twig {
    Block block;
    Weight weight;
    Split split{kUnsplit};
    std::uint32_t next = 0;     // the left child, before the right one
    std::int32_t leaf = kNone;  // what it predicts as a leaf; kNone until a walk ends here
  };

  struct List {
    NodeIndex parent = kNoNode;
    Word seed = 0;
    std::vector<Slot> slots;
    bool is_ranked = false;  // whether slots are sorted by rank
    bool has_one_x = false;  // whether all rows are known to be equal; large lists only
    Summary summary;         // large lists only
    ONLINEFOREST_NO_UNIQUE_ADDRESS typename Target::LargeLeaf large_leaf;
    std::vector<Twig> twigs;                                       // small lists only, as surrogates and leaves
    std::vector<std::pair<std::uint32_t, Surrogates>> surrogates;  // only twigs with surrogates have an entry
    typename Target::TwigLeaves leaves;

    [[nodiscard]] bool is_small() const { return slots.size() <= kMostDeciding; }
    void unsplit() {
      large_leaf = {};
      twigs.clear();
      surrogates.clear();
      leaves.clear();
    }
    void forget_leaves() {
      large_leaf = {};
      leaves.clear();
      for (Twig& twig : twigs) twig.leaf = kNone;
    }
    [[nodiscard]] Surrogates surrogates_of(std::uint32_t twig) const {
      for (const auto& [owner, found] : surrogates) {
        if (owner == twig) return found;
      }
      return {};
    }
    // Whether a row goes left at a twig that is split.
    [[nodiscard]] bool sends_left(std::uint32_t twig, const float* row) const {
      const Split& split = twigs[twig].split;
      if (surrogates.empty() || !is_missing(row[split.cell])) return orderfree::sends_left(split, {}, row);
      return orderfree::sends_left(split, surrogates_of(twig), row);
    }
    void swap_twigs(List& other) {
      twigs.swap(other.twigs);
      surrogates.swap(other.surrogates);
      std::swap(leaves, other.leaves);
    }
    void free_twigs() {  // releases memory, which `twigs = {}` would not
      twigs = std::vector<Twig>();
      surrogates = {};
      leaves = typename Target::TwigLeaves();
    }
  };

  [[nodiscard]] bool takes(const Samples& samples, Slot slot, bool calibrates) const {
    if (calibrates && leaves_calibrators_out_) return false;
    return options_.max_samples >= 1.0 || scramble(samples.x_hash(slot) ^ seeds_.membership) < membership_;
  }
  // The weight of a sample in this tree, 0 if the tree leaves it out.
  [[nodiscard]] Weight weight(const Samples& samples, Slot slot) const {
    return takes(samples, slot) ? samples.weight(slot) : 0;
  }
  [[nodiscard]] bool is_gone(const Samples& samples, Slot slot) const { return weight(samples, slot) == 0; }
  [[nodiscard]] bool is_new(const Samples& samples, const Step& step) const {
    return weight(samples, step.slot) == step.by;
  }

  // The least weight of a block that may be split.
  [[nodiscard]] Weight least_weight() const { return options_.min_samples_split * kOne; }
  [[nodiscard]] Order order(const Samples& samples) const { return {samples, seeds_.rank}; }
  [[nodiscard]] bool counts_as_leaf(const Summary& summary) const {
    return summary.is_pure() || summary.total() < least_weight();
  }
  // Whether predictions enter a block of this weight. They always enter the root.
  [[nodiscard]] bool enters(Weight weight) const { return weight >= stop_weight_; }
  // Whether the predictions of some rows end at a junction, because they do not enter one of its children.
  [[nodiscard]] bool is_end(const Node& junction) const {
    return !enters(node(junction.left).weight) || !enters(node(junction.left + 1).weight);
  }
  [[nodiscard]] Node& node(NodeIndex at) { return nodes_[static_cast<std::size_t>(at)]; }
  [[nodiscard]] const Node& node(NodeIndex at) const { return nodes_[static_cast<std::size_t>(at)]; }

  // The line that the leaves of a list follow: that of the junction above, if there is one.
  [[nodiscard]] const Line& line_above(const List& list) const {
    static constexpr Line kNoLine{};
    return list.parent == kNoNode ? kNoLine : junctions_[node(list.parent).contents].line;
  }

  // follow.hpp
  struct Task {
    NodeIndex at;
    std::span<Step> steps;
  };
  void follow_at_junction(const Task& task, const Samples& samples, Scratch& scratch, std::vector<Task>& tasks);
  static void follow_large_leaf(Junction& junction, bool is_end, std::span<const Step> steps, const Samples& samples);
  void follow_in_list(const Task& task, const Samples& samples, Scratch& scratch, StopProbe& stop);
  // Updates the deciding samples of a junction after changes, and decides its split. Returns nothing if they cannot be
  // updated and must be found again.
  [[nodiscard]] std::optional<Fork> decide_again(NodeIndex at, const Samples& samples, std::span<const Step> steps,
                                                 Scratch& scratch);
  // Exchanges deciding samples one by one, and updates the ballot with each. `lost` is a deciding sample that is gone,
  // or null. Removes from `coming` the samples that have become deciding ones. Returns false if the ballot cannot be
  // updated.
  [[nodiscard]] bool replace_few(Junction& junction, const Samples& samples, const Step* lost,
                                 std::vector<Slot>& coming) const;
  void find_next(NodeIndex at, const Samples& samples, Slot last, std::size_t n, std::vector<Slot>& found) const;
  void collapse(const Task& task, const Samples& samples, Scratch& scratch);
  void split_again(const Task& task, const Samples& samples, Scratch& scratch);
  // Whether holds(slot) is true of all samples below a node, including samples whose weight is now 0.
  template <class Holds>
  [[nodiscard]] bool all_below(NodeIndex at, Scratch& scratch, Holds holds) const;
  [[nodiscard]] bool divide_alike(NodeIndex at, const Split& a, const Split& b, const Samples& samples,
                                  Scratch& scratch) const;
  // Calls use(slot) for each of them.
  template <class Use>
  void for_each_below(NodeIndex at, Scratch& scratch, Use use) const;
  // Returns the samples below a junction after the changes of a task, and frees all nodes below it.
  [[nodiscard]] std::vector<Slot> gather(const Task& task, const Samples& samples, Scratch& scratch);

  // grow.hpp
  void reset_list(List& list, const Samples& samples) const;
  void divide(NodeIndex at, std::int32_t junction_index, std::int32_t left_list, const Samples& samples,
              Scratch& scratch);
  bool split_list(NodeIndex at, const Samples& samples, Scratch& scratch, StopProbe& stop);
  void find_deciding(const Samples& samples, const List& list, Junction& junction, Scratch& scratch) const;
  [[nodiscard]] std::optional<Fork> decide(Junction& junction, const Samples& samples, Scratch& scratch) const;
  void find_last(Junction& junction, const Samples& samples) const;
  void grow_twig(List& list, std::span<const std::uint32_t> path, const Samples& samples, Scratch& scratch);
  // Grows all twigs, except below those that are lighter than the stop weight.
  void grow_twigs(List& list, Weight stop_weight, const Samples& samples, Scratch& scratch);
  void load(const List& list, const Samples& samples, Scratch& scratch) const;
  // The leaf at the end of a path of twigs.
  [[nodiscard]] std::uint32_t leaf_at(List& list, std::span<const std::uint32_t> path, const Samples& samples,
                                      Scratch& scratch) const;
  [[nodiscard]] bool is_leaf(const List& list) const { return list.has_one_x || counts_as_leaf(list.summary); }
  [[nodiscard]] NodeIndex take_pair();
  void set_split(NodeIndex at, const Junction& junction);

  // predict.hpp
  void flatten_twigs(const List& list, NodeIndex root, Flat& flat, Scratch& scratch) const;
  // Predicts a row with each of several stop weights, which increase. The answer for the k-th goes to `answer_of(k)`.
  template <class AnswerOf>
  void walk(const Samples& samples, const float* x, std::span<const Weight> stop_weights, AnswerOf answer_of,
            Scratch& scratch, StopProbe& stop);
  // Ends the walks in a small list.
  template <class AnswerOf>
  void walk_twigs(List& list, const Samples& samples, const float* x, std::span<const Weight> stop_weights,
                  AnswerOf answer_of, Scratch& scratch);
  // Turns junctions that predictions do not enter into lists, and frees twigs that they do not enter.
  void prune(const Samples& samples, Scratch& scratch);
  void compact();

  // Predictions of leaves: labels/tree.cpp and numbers/tree.cpp.
  void answer_nothing(Answer answer) const;
  void make_leaf(List& list, std::span<const std::uint32_t> path, const Panel<Target>& panel) const;
  void answer_twig(const List& list, std::uint32_t leaf, const float* x, Answer answer) const;
  void answer_list(List& list, const Samples& samples, const float* x, Answer answer) const;
  void answer_junction(NodeIndex at, const Samples& samples, const float* x, Scratch& scratch, Answer answer);
  void flatten_twig_leaf(const List& list, std::uint32_t leaf, NodeIndex at, Flat& flat, Scratch& scratch) const;
  void flatten_large_leaf(NodeIndex node, const Samples& samples, NodeIndex at, Flat& flat, Scratch& scratch);
  struct TableVisit {
    NodeIndex at;      // the visited node; kNoNode if a twig is visited
    const List* list;  // the list of the visited twig; null if a node is visited
    std::uint32_t twig;
    std::int32_t parent;
    bool is_right;
  };
  // The table of all nodes, of which those lighter than `least` are leaves.
  [[nodiscard]] Table table_down_to(Weight least, const Samples& samples, Scratch& scratch, StopProbe& stop);
  // Adds the visited node or twig to the table, and its children to the visits. One that is lighter than `least` is a
  // leaf.
  void add_node(const TableVisit& visit, Weight least, const Samples& samples, Scratch& scratch, Table& table,
                std::vector<TableVisit>& visits);
  void add_twig(const TableVisit& visit, Weight least, const Samples& samples, Scratch& scratch, Table& table,
                std::vector<TableVisit>& visits) const;
  void describe_node(NodeIndex at, const Samples& samples, Scratch& scratch, Table& table);
  void describe_twig(Block block, const Panel<Target>& panel, Table& table) const;
  static void finish_table(Table& table);
  // Only for labels.
  void add_counts(const Summary& counts, double& left, Answer answer) const;
  NodeIndex add_ancestors(NodeIndex at, double left, Answer answer) const;
  static void take_shares(const Summary& labels, Flat& flat, Scratch& scratch);

  Options options_;
  TreeSeeds seeds_;
  Word membership_;  // the tree learns samples whose hash is below this; unused if max_samples is 1
  bool leaves_calibrators_out_, splits_rests_;
  Weight stop_weight_ = 0;
  std::vector<Node> nodes_;
  std::vector<NodeIndex> free_pairs_;
  Recycler<Junction> junctions_;
  Recycler<List> lists_;
  Flat flat_;  // empty unless the tree is fully grown
};

}  // namespace onlineforest::orderfree
