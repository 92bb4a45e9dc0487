// One tree of the order-free forest. Must not know other trees, nor how a forest keeps samples.
//
// A block of more than 64 samples that was cut is a junction; it keeps the samples that decide its cut. Every other
// block is a list of its samples. A list is cut when a prediction first asks for it: small lists into a small tree of
// their own, larger ones into a junction with two lists. When it is cut cannot be seen from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/recycler.hpp"
#include "base/stop.hpp"
#include "base/types.hpp"
#include "guided/ballot.hpp"
#include "guided/flat_tree.hpp"
#include "guided/label_counts.hpp"
#include "guided/law.hpp"
#include "guided/options.hpp"
#include "guided/panel.hpp"
#include "guided/sample_store.hpp"
#include "guided/tree_table.hpp"

namespace onlineforest::guided {

// A change of the weight of a sample. A sample whose weight is now 0 leaves; one whose weight is the change is new.
struct Change {
  Slot slot;
  std::int64_t by;
};

// Where predictions are summed, in multiples of 1 / kUnit: the mass of each label, and the rest, which is uniform.
struct Masses {
  std::uint64_t* labels;
  std::uint64_t& rest;
};

// Scratch memory of a thread.
struct Scratch {
  struct Ranked {
    Word rank;
    Slot slot;
  };
  Panel panel;
  const void* loaded = nullptr;  // the list whose samples the panel holds
  std::vector<Change> changes;
  std::vector<Slot> coming;
  std::vector<Ranked> ranked, ranked_too;
  std::vector<NodeIndex> stack;
  std::vector<std::int64_t> counts;   // by label, all 0 between uses
  std::vector<std::uint64_t> masses;  // by label, all 0 between uses

  // After an exception in the middle of a use.
  void clear() noexcept {
    loaded = nullptr;
    counts.clear();
    masses.clear();
  }
};

class Tree {
 public:
  Tree(const Options& options, std::size_t index);

  // Whether the tree learns the sample of a slot.
  [[nodiscard]] bool takes(const SampleStore& samples, Slot slot) const;

  // Brings the tree in line with changes of the samples. After an exception it must be regrown.
  void apply(const SampleStore& samples, std::span<const Change> changes, Scratch& scratch, StopProbe& stop);

  // Starts again from all samples.
  void regrow(const SampleStore& samples, Scratch& scratch, StopProbe& stop);
  void clear();

  // Cuts all that is not cut yet, and makes the tree fast to predict with.
  void complete(const SampleStore& samples, Scratch& scratch, StopProbe& stop);

  // Adds the predictions at rows: for each one the rest, and the masses of all labels. Changes nothing if the tree is
  // complete.
  void predict(const SampleStore& samples, std::span<const float> rows, std::span<std::uint64_t> rests,
               std::uint64_t* masses, Scratch& scratch, StopProbe& stop);

  // Completes the tree and describes it.
  [[nodiscard]] TreeTable table(const SampleStore& samples, Scratch& scratch, StopProbe& stop);

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] std::size_t nbytes() const;

 private:
  static constexpr std::int32_t kList = -1;    // feature of a node that is a list
  static constexpr std::int32_t kClosed = -2;  // feature of a junction that counts as a leaf

  struct Node {
    float threshold;
    std::int32_t feature;
    NodeIndex left;         // the right child follows
    std::int32_t contents;  // index of a junction or of a list
  };

  struct Junction {
    NodeIndex parent = kNoNode;
    Word seed = 0;
    Cut cut;
    std::size_t n = 0;  // distinct samples
    LabelCounts counts;
    std::vector<Slot> deciding;  // the samples that decide the cut, in the order of the bits of `ballot`
    Ballot ballot;
    std::size_t last = 0;  // which of them has the greatest rank
    Word last_rank = 0;
    bool is_stretched = false;  // the last one was chosen for its row, not its rank
  };

  static constexpr std::int32_t kUncut = -1;  // feature of a twig that is not cut yet
  static constexpr std::int32_t kLeaf = -2;   // feature of a twig that is a leaf

  // A node of the small tree of a list.
  struct Twig {
    Block block;
    float threshold;
    std::int32_t feature;
    std::uint32_t next;  // the left child, which the right one follows; or the leaf
  };

  struct Leaf {
    double left;  // weight left for the ancestors of the list; 0 if none
    std::uint32_t begin, end;
    std::uint32_t rest;
  };

  using Share = FlatTree::Share;

  struct List {
    NodeIndex parent = kNoNode;
    Word seed = 0;
    std::vector<Slot> slots;
    bool is_ranked = false;   // whether slots are in the order of ranks
    bool has_one_x = false;   // only of a large list: whether all rows are known to be equal
    LabelCounts counts;       // only of a large list
    std::vector<Twig> twigs;  // only of a small list, as are leaves and shares
    std::vector<Leaf> leaves;
    std::vector<Share> shares;

    [[nodiscard]] bool is_small() const { return slots.size() <= kMostDeciding; }
    void uncut() {
      twigs.clear();
      leaves.clear();
      shares.clear();
    }
    void free_twigs() {  // an assignment of {} would keep the memory
      twigs = std::vector<Twig>();
      leaves = std::vector<Leaf>();
      shares = std::vector<Share>();
    }
  };

  [[nodiscard]] RankOrder order(const SampleStore& samples) const { return {samples, seeds_.rank}; }
  [[nodiscard]] bool counts_as_leaf(const LabelCounts& counts) const {
    return counts.n_labels() == 1 || counts.total() < options_.min_samples_split;
  }

  // apply.cpp
  struct Task {
    NodeIndex at;
    std::span<Change> changes;
  };
  void apply_to_junction(const Task& task, const SampleStore& samples, Scratch& scratch, std::vector<Task>& tasks);
  void apply_to_list(const Task& task, const SampleStore& samples, Scratch& scratch, StopProbe& stop);
  // The cut after changes; nothing if those who decide must be found afresh.
  [[nodiscard]] std::optional<Cut> decide_again(NodeIndex at, const SampleStore& samples,
                                                std::span<const Change> changes, Scratch& scratch);
  // Seats the coming samples with the help of the ballot. If it cannot, it leaves those that are not seated. At most
  // one sample is lost.
  [[nodiscard]] bool exchange_few(Junction& junction, const SampleStore& samples, const Change* lost,
                                  std::vector<Slot>& coming) const;
  void find_next(NodeIndex at, const SampleStore& samples, Slot last, std::size_t n, std::vector<Slot>& found) const;
  void collapse(const Task& task, const SampleStore& samples, Scratch& scratch);
  void cut_again(const Task& task, Cut cut, const SampleStore& samples, Scratch& scratch);
  // Moves the samples below a node to a list, without those that are gone, and removes what is below.
  [[nodiscard]] std::vector<Slot> gather(const Task& task, const SampleStore& samples, Scratch& scratch);

  // grow.cpp
  static void settle(List& list, const SampleStore& samples);
  void split(NodeIndex at, std::int32_t junction_index, std::int32_t left_list, const SampleStore& samples,
             Scratch& scratch);
  bool cut_list(NodeIndex at, const SampleStore& samples, Scratch& scratch, StopProbe& stop);
  void find_deciding(const SampleStore& samples, const List& list, Junction& junction, Scratch& scratch) const;
  [[nodiscard]] std::optional<Cut> decide(Junction& junction, const SampleStore& samples, Scratch& scratch) const;
  void find_last(Junction& junction, const SampleStore& samples) const;
  void grow_twig(List& list, std::span<const std::uint32_t> path, const SampleStore& samples, Scratch& scratch);
  void grow_twigs(List& list, const SampleStore& samples, Scratch& scratch);
  void make_leaf(List& list, std::span<const std::uint32_t> path, const Panel& panel) const;
  [[nodiscard]] bool is_leaf(const List& list) const { return list.has_one_x || counts_as_leaf(list.counts); }
  [[nodiscard]] NodeIndex take_pair();

  void flatten_twigs(const List& list, NodeIndex root, FlatTree& flat, Scratch& scratch) const;
  void flatten_large_leaf(const Node& node, NodeIndex at, FlatTree& flat, Scratch& scratch) const;
  static void take_shares(const LabelCounts& labels, FlatTree& flat, Scratch& scratch);

  void predict_one(const SampleStore& samples, const float* x, Masses masses, Scratch& scratch, StopProbe& stop);
  NodeIndex add_ancestors(NodeIndex at, double left, Masses masses) const;
  void add_counts(const LabelCounts& counts, double& left, Masses masses) const;
  void set_closed(Node& node, const Junction& junction) const;

  Options options_;
  TreeSeeds seeds_;
  Word membership_;  // the tree takes samples whose hash is below; unused if it takes all
  std::vector<Node> nodes_;
  std::vector<NodeIndex> free_pairs_;
  Recycler<Junction> junctions_;
  Recycler<List> lists_;
  FlatTree flat_;  // of a complete tree; its lists have no twigs
};

}  // namespace onlineforest::guided
