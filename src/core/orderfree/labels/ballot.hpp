// Keeps the proposals of a large block while its deciding samples are replaced one by one. Must not know trees.
//
// A replacement changes few proposals. In the others it changes one bit of a side, and the weights of at most two
// labels. It changes the number of differing neighbours by at most two, so few features must be sorted again to find
// the best proposal. The result is the same as if all proposals were drawn again.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "orderfree/labels/counts.hpp"
#include "orderfree/labels/judge.hpp"
#include "orderfree/labels/score.hpp"
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

  // Keeps the proposals of a full panel, if its weights are light, no two rows are equal, no value is missing and rows
  // are not wide: a replacement may change which features are screened.
  void keep(const Panel<Labels>& panel);
  void clear() { entries_.clear(); }

  // Whether a sample may become a deciding sample. `seats` are the deciding samples, in the order of the bits of a
  // block.
  [[nodiscard]] bool is_open_to(const Samples& samples, std::span<const Slot> seats, Slot slot) const;

  // Gives the seat of a deciding sample to another sample, and updates the proposals. `seed` is the seed of the block,
  // `old_weight` the weight of the sample that leaves.
  void replace(const Samples& samples, const Order& order, Word seed, std::span<Slot> seats, std::size_t seat,
               Slot slot, Weight old_weight);

  // The best proposal, as a split.
  [[nodiscard]] Split best(const Samples& samples, std::span<const Slot> seats);

  [[nodiscard]] std::size_t nbytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    Proposal proposal;
    LabelSides sides;
    bool is_counted;              // whether fewest_differing is the number of differing neighbours
    Neighbours fewest_differing;  // there are not fewer

    void forget_count() {
      is_counted = false;
      fewest_differing = 0;
    }
  };
  class Replacement;
  class Neighbourhood;

  // Counts the neighbours along the feature of an entry, for all entries on this feature.
  void count(const Split& split, Neighbourhood& neighbourhood);

  LabelTotals totals_;  // sums over all deciding samples
  std::vector<Entry> entries_;
};

}  // namespace onlineforest::orderfree
