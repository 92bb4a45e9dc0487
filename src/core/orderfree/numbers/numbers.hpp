// The types that make the tree template a tree of numbers. Must not know trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/compiler.hpp"
#include "base/memory.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/numbers/judge.hpp"
#include "orderfree/numbers/ledger.hpp"
#include "orderfree/numbers/levels.hpp"
#include "orderfree/numbers/line.hpp"
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

// A leaf of rests.
struct RestLeaf {
  double mean = 0.0, variance = 0.0;
  bool follows_line = true;  // whether the line is added to the mean
};

struct Numbers {
  using Values = NumberHashes;
  using Value = double;
  using Judge = NumberJudge;
  using Ledger = NumberLedger;
  using Levels = NumberLevels;
  using Summary = NumberSummary;
  using Ballot = NoBallot;
  using Line = orderfree::Line;

  // In a small forest, one of four samples is a calibrator, because quantiles need many. Every fourth tree leaves the
  // calibrators out.
  static constexpr std::size_t kOneCalibratesOf = 4;
  static constexpr std::size_t kFewestTreesToCalibrate = 5;  // then two trees leave the calibrators out
  [[nodiscard]] static constexpr bool leaves_calibrators_out(std::size_t tree) { return tree % 4 == 0; }

  using Answer = NumberLeaf&;

  // The answers of one tree for many rows.
  struct Answers {
    NumberLeaf* leaves;

    [[nodiscard]] NumberLeaf& at(std::size_t i) const { return leaves[i]; }
    [[nodiscard]] Answers from(std::size_t i) const { return {leaves + i}; }
  };

  struct Scratch {
    LineFit line_fit;

    static void make_room(const SampleStore<Values>&) {}
    static void clear() noexcept {}
  };

  // Whether the splits of a tree explain what lines leave of the numbers. Half of the trees are of this kind, and half
  // of those that leave the calibrators out. In wide rows, lines follow noise, so no tree is.
  [[nodiscard]] static constexpr bool splits_rests(std::size_t tree, const Layout& layout) {
    return (tree + tree / 4) % 2 == 1 && !layout.is_wide();
  }
  [[nodiscard]] static Line fit_line(const Panel<Numbers>& panel, Scratch& scratch) {
    return scratch.line_fit.fit(panel, panel.judge().numbers());
  }
  static void set_line(const Line& line, bool splits_rests, Panel<Numbers>& panel) {
    panel.judge().set_line(panel, line, splits_rests);
  }
  // The number of a sample less a line.
  [[nodiscard]] static double rest(const SampleStore<Values>& samples, Slot slot, const Line& line) {
    return line.empty() ? samples.value(slot) : samples.value(slot) - line.at(samples.row(slot));
  }

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
    std::vector<RestLeaf> leaves;

    [[nodiscard]] std::size_t size() const { return leaves.size(); }
    void clear() { leaves.clear(); }
    [[nodiscard]] std::size_t nbytes() const { return leaves.capacity() * sizeof(RestLeaf); }
  };

  // The sums of the rests of a large block that predicts: a list that is a leaf, or a junction where a walk ends. They
  // are computed at the first prediction.
  struct LargeLeaf {
    std::unique_ptr<NumberSums> sums;

    void add(const SampleStore<Values>& samples, Slot slot, const Line& line, Weight weight) {
      if (sums) sums->add(rest(samples, slot, line), weight);
    }
    [[nodiscard]] std::size_t nbytes() const { return sums ? sizeof(NumberSums) : 0; }
  };

  // The leaves of a fully grown tree.
  class FlatLeaves {
   public:
    [[nodiscard]] std::size_t size() const { return leaves_.size(); }
    // Adds a leaf. Those below one line come one after another, and `owner`, a number of the line, tells lines apart.
    void add(const RestLeaf& leaf, const Line& line, std::int32_t owner) {
      const bool follows = leaf.follows_line && !line.empty();
      if (follows && owner != last_owner_) {
        lines_.push_back(line);
        last_owner_ = owner;
      }
      leaves_.push_back({leaf.mean, leaf.variance, follows ? static_cast<std::int32_t>(lines_.size()) - 1 : kNoLine});
    }
    void finish() {
      leaves_.shrink_to_fit();
      lines_.shrink_to_fit();
    }
    ONLINEFOREST_ALWAYS_INLINE void prefetch(std::size_t leaf) const { onlineforest::prefetch(&leaves_[leaf]); }
    ONLINEFOREST_ALWAYS_INLINE void prefetch_contents(std::size_t leaf) const {
      const std::int32_t line = leaves_[leaf].line;
      if (line == kNoLine) return;
      const auto* const first = reinterpret_cast<const char*>(&lines_[static_cast<std::size_t>(line)]);
      for (std::size_t at = 0; at < sizeof(Line); at += kCacheLine) onlineforest::prefetch(first + at);
    }
    void predict(std::size_t leaf, const float* row, NumberLeaf& answer) const {
      const auto& [mean, variance, line] = leaves_[leaf];
      answer = {line == kNoLine ? mean : mean + lines_[static_cast<std::size_t>(line)].at(row), variance};
    }
    [[nodiscard]] std::size_t nbytes() const {
      return leaves_.capacity() * sizeof(Leaf) + lines_.capacity() * sizeof(Line);
    }

   private:
    static constexpr std::int32_t kNoLine = -1;
    static constexpr std::size_t kCacheLine = 64;

    struct Leaf {
      double mean, variance;
      std::int32_t line;  // index of the line that is added to the mean
    };
    std::vector<Leaf> leaves_;
    std::vector<Line> lines_;
    std::int32_t last_owner_ = -1;
  };

  // The numbers of each node of a tree table.
  struct Columns {
    std::vector<double> mean, squares;  // squares: sum of squared deviations from the mean, in units
    double scale = 1.0;
    std::vector<Line> lines;
    std::vector<std::int32_t> line;  // index of the line that leaves at or below a node follow; -1 for none
    std::vector<double> rest;        // what a leaf adds to its line; NaN for a node that is split

    // Adds a node without a line of its own. `parent` is -1 for the root.
    void add(const NumberLeaf& numbers, const RestLeaf& leaf, std::int32_t parent) {
      mean.push_back(numbers.mean);
      squares.push_back(numbers.variance);
      line.push_back(leaf.follows_line && parent >= 0 ? line[static_cast<std::size_t>(parent)] : -1);
      rest.push_back(leaf.mean);
    }

    // The variance of a node of this weight.
    [[nodiscard]] double variance(std::size_t node, Weight weight) const {
      return squares[node] / multiplicity(weight) * scale;
    }
  };
};

}  // namespace onlineforest::orderfree
