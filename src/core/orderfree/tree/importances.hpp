// Importances of features in one tree: what its splits tell about samples that did not decide them. Must not know
// forests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/stop.hpp"
#include "base/types.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/tree/tree.hpp"
#include "orderfree/tree/tree_table.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// The credit that a split gets for one sample: (mean of the child - mean of the node) * (value - mean of the node). A
// label is a unit vector, and a product is a scalar product. Means are those of the samples that the tree has learned,
// without the sample itself. Rooms above specialise this class for labels and for numbers.
template <class Target>
class Credit;

// Sums the credit of each feature over the splits of a tree.
//
// A sample gives credit to the splits on its path that it did not decide: those of junctions that chose other deciding
// samples, and all splits if the tree has left it out. For such a sample, a split on a feature of pure noise moves the
// mean towards the value as often as away from it, so the expected credit is 0.
template <class Target>
class Importances {
 public:
  using Samples = SampleStore<typename Target::Values>;

  Importances(const Samples& samples, const Tree<Target>& tree, const TreeTable<Target>& table)
      : samples_(samples), tree_(tree), table_(table), credit_(table) {}

  // The credit of each feature per sample. `slots` are all stored samples. The result depends on their order in its
  // last bits.
  [[nodiscard]] std::vector<double> of(std::span<const Slot> slots, StopProbe& stop) {
    credits_.assign(samples_.layout().n_features, 0.0);
    if (table_.cell.empty()) return credits_;
    Weight total = 0;
    for (const Slot slot : slots) total += samples_.weight(slot);
    visitors_.clear();
    for (const Slot slot : slots) {
      const Weight weight = samples_.weight(slot);
      visitors_.push_back({slot, samples_.value(slot), tree_.rank(samples_, slot),
                           tree_.takes(samples_, slot) ? weight : 0,
                           static_cast<double>(weight) / static_cast<double>(total)});
    }
    add_part(0, 0, visitors_.size());
    while (!parts_.empty()) {
      const Part part = parts_.back();
      parts_.pop_back();
      stop.tick(16 * (part.end - part.begin));
      divide(part);
    }
    return credits_;
  }

 private:
  static constexpr std::size_t kAhead = 8;  // rows are prefetched

  // A sample on its way from the root to a leaf.
  struct Visitor {
    Slot slot;
    typename Target::Value value;
    Word rank;
    Weight learned;  // the weight that the tree has learned, 0 if it has left the sample out
    double share;    // of the weight of all samples
  };
  // The visitors of a node: [begin, end).
  struct Part {
    std::size_t node, begin, end;
  };

  // Sends the visitors that did not decide a split to its children, in their order, and adds their credit.
  void divide(const Part& part) {
    const auto cell = static_cast<std::size_t>(table_.cell[part.node]);
    const auto left = static_cast<std::size_t>(table_.left[part.node]);
    const Word last_rank = table_.last_rank[part.node];
    double sum = 0.0;
    std::size_t end = part.begin;  // end of the visitors that go left
    to_right_.clear();
    credit_.enter(part.node);
    for (std::size_t i = part.begin; i < part.end; ++i) {
      if (i + kAhead < part.end) prefetch(samples_.row(visitors_[i + kAhead].slot) + cell);
      const Visitor visitor = visitors_[i];
      // A sample that decided a split decides all splits below.
      if (visitor.learned > 0 && visitor.rank <= last_rank) continue;
      const NodeIndex next = table_.next(part.node, samples_.row(visitor.slot));
      if (next == kNoNode) continue;  // the prediction ends here
      const auto child = static_cast<std::size_t>(next);
      const bool goes_left = child == left;
      if (table_.weight[child] > visitor.learned) {  // otherwise the child has no other sample
        sum += credit_.of(goes_left, visitor.value, visitor.learned) * visitor.share;
      }
      if (goes_left) {
        visitors_[end++] = visitor;
      } else {
        to_right_.push_back(visitor);
      }
    }
    credits_[samples_.layout().feature_of(cell)] += sum;
    std::ranges::copy(to_right_, visitors_.begin() + static_cast<std::ptrdiff_t>(end));
    add_part(static_cast<std::size_t>(table_.right[part.node]), end, end + to_right_.size());
    add_part(left, part.begin, end);
  }

  void add_part(std::size_t node, std::size_t begin, std::size_t end) {
    if (begin < end && table_.is_split(node)) parts_.push_back({node, begin, end});
  }

  const Samples& samples_;
  const Tree<Target>& tree_;
  const TreeTable<Target>& table_;
  Credit<Target> credit_;
  std::vector<Visitor> visitors_, to_right_;
  std::vector<Part> parts_;
  std::vector<double> credits_;
};

}  // namespace onlineforest::orderfree
