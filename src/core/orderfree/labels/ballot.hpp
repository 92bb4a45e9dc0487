// The proposals of a large block, kept while the samples that decide are exchanged. Must not know trees.
//
// An exchange changes few proposals, and of the others one bit and one label. The result is the same as if all were
// proposed afresh.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "orderfree/labels/counts.hpp"
#include "orderfree/labels/judge.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/panel.hpp"
#include "orderfree/law/proposal.hpp"
#include "orderfree/law/sample_store.hpp"

namespace onlineforest::orderfree {

struct Labels;

class Ballot {
 public:
  using Samples = SampleStore<LabelHashes>;
  using Order = RankOrder<LabelHashes>;

  [[nodiscard]] bool empty() const { return entries_.empty(); }

  // Keeps the proposals of a full panel, if its weights are light, all rows differ and lack nothing.
  void keep(const Panel<Labels>& panel);
  void clear() { entries_.clear(); }

  // Whether a sample may take a seat. `seats` are the samples that decide, in the order of the bits.
  [[nodiscard]] bool is_open_to(const Samples& samples, std::span<const Slot> seats, Slot slot) const;

  // Gives the seat of a sample, which has or had `old_weight`, to another one. `seed` is that of the block.
  void exchange(const Samples& samples, const Order& order, Word seed, std::span<Slot> seats, std::size_t seat,
                Slot slot, Weight old_weight);

  // The split of greatest score.
  [[nodiscard]] Split best() const;

  [[nodiscard]] std::size_t nbytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    Proposal proposal;
    LabelSides sides;
  };
  class Exchange;

  int total_ = 0;  // the weight of all
  std::vector<Entry> entries_;
};

}  // namespace onlineforest::orderfree
