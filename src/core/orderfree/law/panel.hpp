// A panel: up to 64 samples that decide splits. A set of them is a word, with one bit per sample. Must not know trees.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orderfree/law/groups.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/proposal.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/law/screen.hpp"

namespace onlineforest::orderfree {

// The part of a panel that does not depend on the type of values: rows, hashes and weights of its samples.
class PanelRows {
 public:
  [[nodiscard]] std::size_t size() const { return n_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] Block all() const { return n_ == 64 ? ~Block{0} : (Block{1} << n_) - 1; }
  [[nodiscard]] const float* row(std::size_t i) const { return rows_[i]; }
  [[nodiscard]] std::span<const Slot> slots() const { return {slots_.data(), n_}; }  // by bit

  [[nodiscard]] bool has_one_x(Block block) const { return (block & ~same_x(first_bit(block))) == 0; }
  [[nodiscard]] bool has_distinct_x() const { return !has_same_x_; }
  [[nodiscard]] bool has_missing() const { return lacking_ != 0; }

  [[nodiscard]] bool is_light() const { return is_light_; }
  [[nodiscard]] const LightWeights& light() const { return light_; }
  [[nodiscard]] Weight weight(std::size_t i) const { return weights_[i]; }
  [[nodiscard]] Weight weight_of(Block block) const {
    return is_light() ? light_.of(block) * kOne : heavy_weight(block);
  }

  // The contents of a cell, one entry per bit. Entries outside the block are unspecified.
  [[nodiscard]] const float* column(Block block, std::int32_t cell);
  // The samples of each level of a categorical feature. `cell` is its first cell.
  [[nodiscard]] const Groups& levels(std::int32_t cell);
  // The samples of a block that lack a cell.
  [[nodiscard]] Block missing(Block block, std::int32_t cell) {
    return has_missing() ? missing_in(block, column(block, cell)) : 0;
  }

 protected:
  static constexpr std::size_t kMostCached = 64;  // cells whose columns are kept

  struct Range {
    float low, high;  // least and greatest value, missing ones ignored
    bool has_missing;

    [[nodiscard]] bool varies() const { return low < high || (has_missing && low == high); }
  };

  void begin(std::size_t n, const Layout& layout);
  void add(std::size_t i, const float* row, Word x_hash, Weight weight);
  void finish(bool may_lack_cells);
  template <class Values>
  void sort(const RankOrder<Values>& order, std::span<const Slot> slots);

  [[nodiscard]] std::span<const float* const> rows() const { return {rows_.data(), n_}; }  // by bit
  [[nodiscard]] Block same_x(std::size_t i) const { return has_same_x_ ? same_x_[i] : Block{1} << i; }

  // The first sample of a block at or after `place` on the circle.
  [[nodiscard]] std::size_t first_from(Block block, Word place) const;

  // Draws a proposal between sample `first` (see first_of_pair) and a sample of another row, preferably one outside
  // `like`, the samples whose value equals that of `first`.
  [[nodiscard]] Proposal propose_pair(Block block, Word seed, std::size_t first, Block like) const;
  [[nodiscard]] std::size_t first_of_pair(Block block, Word seed) const {
    return first_from(block, derive(seed, of_proposal::kFirst));
  }
  [[nodiscard]] Proposal propose_range(Block block, Word seed);
  // As propose_range(), on one of the screened features.
  [[nodiscard]] Proposal propose_screened(Block block, Word seed);
  [[nodiscard]] Proposal propose_in(const Range& range, Word seed, std::int32_t cell) const;
  // Whether proposals for a block draw screened features.
  [[nodiscard]] bool has_screen(Block block) const {
    return layout_.is_wide() && std::popcount(block) >= kEnoughToScreen;
  }
  // The samples of a block whose level equals that of sample i. `cell` is the first cell of the feature.
  [[nodiscard]] Block like_level(Block block, std::int32_t cell, std::size_t i);
  // The features in which a block is not constant.
  [[nodiscard]] const std::vector<std::int32_t>& varying(Block block);
  [[nodiscard]] Block left_of(Block block, Split split);
  // Finds the surrogates of the best proposal. Moves samples that lack its feature to the side the surrogates give.
  void find_surrogates(Block block, std::span<const Proposal> proposals, Proposal& best);

  void fill_columns();
  [[nodiscard]] Range range(Block block, std::int32_t cell);
  [[nodiscard]] Range range_of(Block block, const float* column) const;
  [[nodiscard]] Block missing_in(Block block, const float* column) const;
  [[nodiscard]] Weight heavy_weight(Block block) const;

  std::size_t n_ = 0, width_ = 0;
  Layout layout_;
  bool has_same_x_ = false;
  Block lacking_ = 0;  // samples with a missing numeric value
  std::array<Slot, kMostDeciding> slots_{};
  std::array<const float*, kMostDeciding> rows_{};
  std::array<Word, kMostDeciding> x_hashes_{};
  std::array<Word, kMostDeciding> places_{};  // increasing; unused entries are the greatest word
  std::array<Block, kMostDeciding> same_x_{};
  Weight total_ = 0;
  std::array<Weight, kMostDeciding> weights_{};
  bool is_light_ = true;
  LightWeights light_;  // the weights, if is_light_
  Screen screen_;
  Surrogates surrogates_;              // surrogates of the last best proposal
  std::vector<std::int32_t> varying_;  // varying features of the current block; empty until varying() is called
  // With at most kMostCached cells, columns_ holds the columns of all cells, and ranges_ their ranges over all samples
  // (bit k of ranged_: the range of cell k is set). With more cells, columns_ holds one column: that of cell
  // gathered_from_, for the samples in gathered_.
  bool has_columns_ = false;
  Block ranged_ = 0, gathered_ = 0;
  std::int32_t gathered_from_ = -1;
  std::array<Range, kMostCached> ranges_{};
  std::vector<Groups> levels_;  // the levels of each categorical feature; empty until levels() is called
  alignas(16) std::array<float, kMostCached * kMostDeciding> columns_{};

 private:
  void find_same_x();
};

// A panel with values. `Target::Judge` chooses the best proposal.
template <class Target>
class Panel : public PanelRows {
 public:
  using Values = typename Target::Values;
  using Judge = typename Target::Judge;

  // Loads at most kMostDeciding samples. Bits are numbered in the order of places on the circle of a tree.
  void load(const SampleStore<Values>& samples, const RankOrder<Values>& order, std::span<const Slot> slots) {
    begin(slots.size(), samples.layout());
    sort(order, slots);
    groups_.clear();
    judge_.clear();
    for (std::size_t i = 0; i < n_; ++i) {
      const auto value = samples.value(slots_[i]);
      add(i, samples.row(slots_[i]), samples.x_hash(slots_[i]), samples.weight(slots_[i]));
      groups_.add(i, Values::word(value));
      judge_.set(i, value);
    }
    finish(samples.has_missing());
  }

  [[nodiscard]] bool has_one_value(Block block) const { return groups_.are_one(block); }
  [[nodiscard]] const Groups& groups() const { return groups_; }
  [[nodiscard]] const Judge& judge() const { return judge_; }
  [[nodiscard]] Judge& judge() { return judge_; }

  // Draws the proposals for a block and returns the best. The block must contain two different rows.
  [[nodiscard]] const Proposal& decide(Block block, Word seed) {
    varying_.clear();
    screen_.clear();
    if (has_screen(block)) screen_.find(rows(), layout_.n_numeric(), judge_.contrast(groups_, block), has_missing());
    n_proposals_ = std::popcount(block) < kManyDeciding ? Judge::kFewProposals
                                                        : Judge::n_proposals(layout_, (block & lacking_) != 0);
    for (std::uint32_t q = 0; q < n_proposals_; ++q) {
      const Word word = derive(seed, of_node::kProposal + q);
      Proposal& proposal = proposals_[q];
      if (is_between(q)) {
        const std::size_t first = first_of_pair(block, word);
        proposal = propose_pair(block, word, first, groups_.like(first));
      } else if (is_screened(q) && !screen_.features().empty()) {
        proposal = propose_screened(block, word);
      } else {
        proposal = propose_range(block, word);
      }
      proposal.left = left_of(block, proposal.split);
    }
    Proposal& best = proposals_[judge_.best(*this, groups_, block, {proposals_.data(), n_proposals_})];
    // If no sample of the block lacks the feature, the judge had no reason to choose a side for missing values: they go
    // to the larger side.
    if (!best.split.asks_if_missing() && missing(block, best.split.cell) == 0) {
      best.split.missing_left = 2 * weight_of(best.left) >= weight_of(block);
    }
    find_surrogates(block, proposals(), best);
    return best;
  }
  // The surrogates of the best proposal, and all proposals, of the last call of decide().
  [[nodiscard]] const Surrogates& surrogates() const { return surrogates_; }
  [[nodiscard]] std::span<const Proposal> proposals() const { return {proposals_.data(), n_proposals_}; }

 private:
  Groups groups_;
  Judge judge_;
  std::size_t n_proposals_ = 0;
  std::array<Proposal, Judge::kMostProposals> proposals_{};
};

// Sorts samples by place. Places are uniform, so a pass over 64 buckets nearly sorts them, and insertion does the rest.
template <class Values>
void PanelRows::sort(const RankOrder<Values>& order, std::span<const Slot> slots) {
  constexpr int kShift = 58;  // gives 64 buckets
  std::array<Word, kMostDeciding> places;
  std::array<std::uint8_t, 65> ends{};
  for (std::size_t i = 0; i < n_; ++i) {
    places[i] = order.place(slots[i]);
    ++ends[(places[i] >> kShift) + 1];
  }
  for (std::size_t i = 1; i < ends.size(); ++i) ends[i] = static_cast<std::uint8_t>(ends[i] + ends[i - 1]);
  for (std::size_t i = 0; i < n_; ++i) {
    const std::size_t at = ends[places[i] >> kShift]++;
    places_[at] = places[i];
    slots_[at] = slots[i];
  }
  for (std::size_t i = 1; i < n_; ++i) {
    const Word place = places_[i];
    if (place > places_[i - 1]) continue;
    const Slot slot = slots_[i];
    std::size_t at = i;
    for (; at > 0 && order.less(place, slot, places_[at - 1], slots_[at - 1]); --at) {
      places_[at] = places_[at - 1];
      slots_[at] = slots_[at - 1];
    }
    places_[at] = place;
    slots_[at] = slot;
  }
  std::fill(places_.begin() + static_cast<std::ptrdiff_t>(n_), places_.end(), ~Word{0});
}

}  // namespace onlineforest::orderfree
