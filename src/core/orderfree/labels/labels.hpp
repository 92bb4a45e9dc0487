// The types that make the tree template a tree of labels. Must not know trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/compiler.hpp"
#include "base/memory.hpp"
#include "orderfree/labels/ballot.hpp"
#include "orderfree/labels/calibration.hpp"
#include "orderfree/labels/counts.hpp"
#include "orderfree/labels/judge.hpp"
#include "orderfree/labels/ledger.hpp"
#include "orderfree/labels/levels.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/sample_store.hpp"

namespace onlineforest::orderfree {

// References to the sums of a prediction, in multiples of 1 / kFullMass: the mass of each label, and the rest, which is
// spread evenly over the labels.
struct Masses {
  std::uint64_t* labels;
  std::uint64_t& rest;
};

// The mass of one label in a prediction, in multiples of 1 / kFullMass.
struct Share {
  Label label;
  std::uint32_t mass;
};

struct Labels {
  using Values = LabelHashes;
  using Value = Label;
  using Judge = LabelJudge;
  using Ledger = LabelLedger;
  using Levels = LevelCounts;
  using Summary = LabelCounts;
  using Ballot = orderfree::Ballot;

  // Labels have no lines.
  struct Line {
    friend bool operator==(const Line&, const Line&) = default;
  };
  [[nodiscard]] static constexpr bool splits_rests(std::size_t, const Layout&) { return false; }

  // In a small forest, one of eight samples is a calibrator. That suffices to fit a power.
  static constexpr std::size_t kOneCalibratesOf = 8;
  static constexpr std::size_t kFewestTreesToCalibrate = orderfree::kFewestTreesToCalibrate;
  [[nodiscard]] static constexpr bool leaves_calibrators_out(std::size_t tree) { return is_left_out_voter(tree); }

  using Answer = Masses;

  // The sums of the predictions of many rows.
  struct Answers {
    std::uint64_t* masses;
    std::uint64_t* rests;
    std::size_t n_labels;

    [[nodiscard]] Masses at(std::size_t i) const { return {masses + i * n_labels, rests[i]}; }
    [[nodiscard]] Answers from(std::size_t i) const { return {masses + i * n_labels, rests + i, n_labels}; }
  };

  // Memory of a thread: one number for each label code, all 0 between uses.
  struct Scratch {
    std::vector<Weight> counts;
    std::vector<std::uint64_t> masses;

    void make_room(const SampleStore<Values>& samples) {
      masses.resize(static_cast<std::size_t>(samples.values().n_labels()), 0);
    }
    void clear() noexcept {
      counts.clear();
      masses.clear();
    }
  };

  [[nodiscard]] static Line fit_line(const Panel<Labels>&, Scratch&) { return {}; }
  static void set_line(const Line&, bool, Panel<Labels>&) {}

  [[nodiscard]] static LabelCounts summary_of(const SampleStore<Values>& samples, std::span<const Slot> slots,
                                              Scratch& scratch) {
    scratch.counts.resize(static_cast<std::size_t>(samples.values().n_labels()));
    for (const Slot slot : slots) scratch.counts[static_cast<std::size_t>(samples.value(slot))] += samples.weight(slot);
    LabelCounts result;
    for (std::size_t c = 0; c < scratch.counts.size(); ++c) {
      const Weight count = std::exchange(scratch.counts[c], 0);
      if (count > 0) result.add(static_cast<Label>(c), count);
    }
    return result;
  }

  // Computes the summaries of the two sides of a block.
  class Division {
   public:
    Division(const SampleStore<Values>& samples, Scratch& scratch) : counts_(scratch.counts) {
      counts_.resize(static_cast<std::size_t>(samples.values().n_labels()));
    }
    void add(Label label, Weight weight, bool goes_left) {
      counts_[static_cast<std::size_t>(label)] += goes_left ? weight : 0;
    }
    // Computes the summaries from the summary `all` of the block. A null pointer skips the summary of that side.
    void finish(const LabelCounts& all, LabelCounts* left, LabelCounts* right) {
      for (const auto& [label, weight] : all.entries()) {
        const Weight on_left = std::exchange(counts_[static_cast<std::size_t>(label)], 0);
        if (left != nullptr && on_left > 0) left->add(label, on_left);
        if (right != nullptr && weight > on_left) right->add(label, weight - on_left);
      }
    }

   private:
    std::vector<Weight>& counts_;
  };

  // The leaves of a small list, with the shares of their ancestors within the list.
  struct TwigLeaves {
    struct Leaf {
      double left;  // share of the prediction left for the ancestors of the list; 0 if none is
      std::uint32_t begin, end;
      std::uint32_t rest;
    };
    std::vector<Leaf> leaves;
    std::vector<Share> shares;

    [[nodiscard]] std::size_t size() const { return leaves.size(); }
    void clear() {
      leaves.clear();
      shares.clear();
    }
    [[nodiscard]] std::size_t nbytes() const {
      return leaves.capacity() * sizeof(Leaf) + shares.capacity() * sizeof(Share);
    }
  };

  // A large block that predicts needs no more than its summary.
  struct LargeLeaf {
    static void add(const SampleStore<Values>&, Slot, const Line&, Weight) {}
    [[nodiscard]] static std::size_t nbytes() { return 0; }
  };

  // The leaves of a fully grown tree.
  class FlatLeaves {
   public:
    [[nodiscard]] std::size_t size() const { return leaves_.size(); }
    // Adds a leaf, whose shares are added next.
    void add(std::uint64_t rest) {
      leaves_.push_back({static_cast<std::uint32_t>(shares_.size()), static_cast<std::uint32_t>(rest)});
    }
    void add_share(Label label, std::uint64_t mass) { shares_.push_back({label, static_cast<std::uint32_t>(mass)}); }
    void finish() {
      leaves_.push_back({static_cast<std::uint32_t>(shares_.size()), 0});
      leaves_.shrink_to_fit();
      shares_.shrink_to_fit();
    }
    ONLINEFOREST_ALWAYS_INLINE void prefetch(std::size_t leaf) const { onlineforest::prefetch(&leaves_[leaf]); }
    ONLINEFOREST_ALWAYS_INLINE void prefetch_contents(std::size_t leaf) const {
      onlineforest::prefetch(shares_.data() + leaves_[leaf].shares);
    }
    void predict(std::size_t leaf, const float*, Masses sums) const {
      for (std::uint32_t s = leaves_[leaf].shares; s < leaves_[leaf + 1].shares; ++s) {
        sums.labels[shares_[s].label] += shares_[s].mass;
      }
      sums.rest += leaves_[leaf].rest;
    }
    [[nodiscard]] std::size_t nbytes() const {
      return leaves_.capacity() * sizeof(Leaf) + shares_.capacity() * sizeof(Share);
    }

   private:
    struct Leaf {
      std::uint32_t shares;  // index of its first share; its shares end where those of the next leaf begin
      std::uint32_t rest;
    };
    std::vector<Leaf> leaves_;
    std::vector<Share> shares_;
  };

  // The labels of each node of a tree table.
  struct Columns {
    std::vector<std::int64_t> counts_end;  // the counts of node i are [counts_end[i - 1], counts_end[i])
    std::vector<Label> label;
    std::vector<Weight> count;

    [[nodiscard]] std::size_t counts_begin(std::size_t node) const {
      return node == 0 ? 0 : static_cast<std::size_t>(counts_end[node - 1]);
    }
  };
};

}  // namespace onlineforest::orderfree
