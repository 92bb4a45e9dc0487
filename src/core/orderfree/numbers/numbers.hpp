// The types that make the tree template a tree of numbers. Must not know trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/compiler.hpp"
#include "base/memory.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/numbers/judge.hpp"
#include "orderfree/numbers/ledger.hpp"
#include "orderfree/numbers/summary.hpp"

namespace onlineforest::orderfree {

// A ballot that keeps no proposals: a block of numbers draws all proposals again when a deciding sample is replaced.
struct NoBallot {
  template <class Panel>
  static void keep(const Panel&) {}
  [[nodiscard]] static constexpr bool empty() { return true; }
  template <class... Arguments>
  [[nodiscard]] static bool is_open_to(const Arguments&...) {
    return false;
  }
  template <class... Arguments>
  static void replace(const Arguments&...) {}
  template <class... Arguments>
  [[nodiscard]] static Split best(const Arguments&...) {
    return {};
  }
  [[nodiscard]] static std::size_t nbytes() { return 0; }
};

// Counts no levels: only labels are predicted by them.
struct NoLevels {
  explicit NoLevels(const Layout&) {}
  static void add(const float*, double, Weight) {}
  static void subtract(const float*, double, Weight) {}
  [[nodiscard]] static std::size_t nbytes() { return 0; }
};

struct Numbers {
  using Values = NumberHashes;
  using Value = double;
  using Judge = NumberJudge;
  using Ledger = NumberLedger;
  using Levels = NoLevels;
  using Summary = NumberSummary;
  using Ballot = NoBallot;

  // In a small forest, one of four samples is a calibrator, because quantiles need many. Every fourth tree leaves the
  // calibrators out.
  static constexpr std::size_t kOneCalibratesOf = 4;
  static constexpr std::size_t kFewestTreesToCalibrate = 5;  // then two trees leave the calibrators out
  [[nodiscard]] static constexpr bool leaves_calibrators_out(std::size_t tree) { return tree % 4 == 0; }

  // Only trees of labels predict with a stop weight: a junction of numbers has no prediction of its own.
  static constexpr Weight kMostStopWeight = 0;

  using Answer = NumberLeaf&;

  // The answers of one tree for many rows.
  struct Answers {
    NumberLeaf* leaves;

    [[nodiscard]] NumberLeaf& at(std::size_t i) const { return leaves[i]; }
    [[nodiscard]] Answers from(std::size_t i) const { return {leaves + i}; }
  };

  struct Scratch {
    static void make_room(const SampleStore<Values>&) {}
    static void clear() noexcept {}
  };

  [[nodiscard]] static NumberSummary summary_of(const SampleStore<Values>& samples, std::span<const Slot> slots,
                                                Scratch&) {
    NumberSummary result;
    for (const Slot slot : slots) result.add(samples.value(slot), samples.weight(slot));
    return result;
  }

  // Computes the summaries of the two sides of a block.
  class Division {
   public:
    Division(const SampleStore<Values>&, Scratch&) {}
    void add(double value, Weight weight, bool goes_left) { (goes_left ? left_ : right_).add(value, weight); }
    void finish(const NumberSummary&, NumberSummary* left, NumberSummary* right) {
      if (left != nullptr) *left = left_;
      if (right != nullptr) *right = right_;
    }

   private:
    NumberSummary left_, right_;
  };

  // The leaves of a small list.
  struct TwigLeaves {
    std::vector<NumberLeaf> leaves;

    [[nodiscard]] std::size_t size() const { return leaves.size(); }
    void clear() { leaves.clear(); }
    [[nodiscard]] std::size_t nbytes() const { return leaves.capacity() * sizeof(NumberLeaf); }
  };

  // The sums of a large list that is a leaf. They are computed at the first prediction.
  struct LargeLeaf {
    std::unique_ptr<NumberSums> sums;

    void add(double value, Weight weight) {
      if (sums) sums->add(value, weight);
    }
    [[nodiscard]] std::size_t nbytes() const { return sums ? sizeof(NumberSums) : 0; }
  };

  // The leaves of a fully grown tree.
  class FlatLeaves {
   public:
    [[nodiscard]] std::size_t size() const { return leaves_.size(); }
    void add(const NumberLeaf& leaf) { leaves_.push_back(leaf); }
    void finish() { leaves_.shrink_to_fit(); }
    ONLINEFOREST_ALWAYS_INLINE void prefetch(std::size_t leaf) const { onlineforest::prefetch(&leaves_[leaf]); }
    static void prefetch_contents(std::size_t) {}  // a leaf refers to no other memory
    void predict(std::size_t leaf, NumberLeaf& answer) const { answer = leaves_[leaf]; }
    [[nodiscard]] std::size_t nbytes() const { return leaves_.capacity() * sizeof(NumberLeaf); }

   private:
    std::vector<NumberLeaf> leaves_;
  };

  // The numbers of each node of a tree table.
  struct Columns {
    std::vector<double> mean, squares;  // squares: sum of squared deviations from the mean, in units
    double scale = 1.0;

    // The variance of a node of this weight.
    [[nodiscard]] double variance(std::size_t node, Weight weight) const {
      return squares[node] / multiplicity(weight) * scale;
    }
  };
};

}  // namespace onlineforest::orderfree
