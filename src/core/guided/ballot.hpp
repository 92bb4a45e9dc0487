// The proposals of a large block, kept while the samples that decide are exchanged. Must not know trees.
//
// An exchange changes few proposals, and of the others one bit and one label. The result is the same as if all were
// proposed afresh.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "guided/law.hpp"
#include "guided/panel.hpp"
#include "guided/proposal.hpp"
#include "guided/sample_store.hpp"

namespace onlineforest::guided {

class Ballot {
 public:
  [[nodiscard]] bool empty() const { return proposals_.empty(); }

  // Keeps the proposals of a full panel, if its weights are light and all rows differ.
  void keep(const Panel& panel);
  void clear() { proposals_.clear(); }

  // Whether a sample may take a seat. `seats` are the samples that decide, in the order of the bits.
  [[nodiscard]] bool is_open_to(const SampleStore& samples, std::span<const Slot> seats, Slot slot) const;

  // Gives the seat of a sample, which has or had `old_weight`, to another one. `seed` is that of the block.
  void exchange(const SampleStore& samples, const RankOrder& order, Word seed, std::span<Slot> seats, std::size_t seat,
                Slot slot, int old_weight);

  // The cut of greatest score.
  [[nodiscard]] Cut best() const;

  [[nodiscard]] std::size_t nbytes() const { return proposals_.capacity() * sizeof(Proposal); }

 private:
  class Exchange;

  int total_ = 0;  // the weight of all
  std::vector<Proposal> proposals_;
};

}  // namespace onlineforest::guided
