// A panel: up to 64 samples that decide about cuts, a block of them as a word of bits. Must not know trees.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "guided/law.hpp"
#include "guided/proposal.hpp"
#include "guided/sample_store.hpp"

namespace onlineforest::guided {

class Panel {
 public:
  // Loads samples, at most kMostDeciding. Their bits are in the order of the circle of a tree.
  void load(const SampleStore& samples, const RankOrder& order, std::span<const Slot> slots);

  [[nodiscard]] std::size_t size() const { return n_; }
  [[nodiscard]] Block all() const { return n_ == 64 ? ~Block{0} : (Block{1} << n_) - 1; }
  [[nodiscard]] std::span<const Slot> slots() const { return {slots_.data(), n_}; }  // by bit

  [[nodiscard]] bool has_one_label(Block block) const {
    return (block & ~label_blocks_[labels_[first_bit(block)]]) == 0;
  }
  [[nodiscard]] bool has_one_x(Block block) const { return (block & ~same_x(first_bit(block))) == 0; }
  [[nodiscard]] bool has_distinct_x() const { return !has_same_x_; }
  [[nodiscard]] bool is_light() const { return total_ <= LightWeights::kMost; }
  [[nodiscard]] std::int64_t weight(Block block) const { return is_light() ? light_.of(block) : heavy_weight(block); }

  // Calls use(label, weight) for each label of a block.
  template <class Use>
  void for_each_label(Block block, Use use) const {
    for (std::size_t c = 0; c < n_labels_; ++c) {
      if (const Block those = block & label_blocks_[c]) use(codes_[c], weight(those));
    }
  }

  // The best proposal for a block, which has two different rows.
  [[nodiscard]] const Proposal& decide(Block block, Word seed);
  // The proposals of the block that was decided last.
  [[nodiscard]] std::span<const Proposal> proposals() const { return {proposals_.data(), n_proposals_}; }

 private:
  static constexpr std::size_t kMostCached = 64;  // features whose columns are kept

  struct Range {
    float low, high;
  };

  [[nodiscard]] Block same_x(std::size_t i) const { return has_same_x_ ? same_x_[i] : Block{1} << i; }
  void sort(const RankOrder& order, std::span<const Slot> slots);
  void find_same_x(const SampleStore& samples);

  // The sample of a block whose place is the first at or after `place` on the circle.
  [[nodiscard]] std::size_t first_from(Block block, Word place) const;

  [[nodiscard]] Proposal propose_pair(Block block, Word seed) const;
  [[nodiscard]] Proposal propose_range(Block block, Word seed);
  // The features in which a block is not constant.
  [[nodiscard]] const std::vector<std::int32_t>& varying(Block block);
  [[nodiscard]] Block left_of(Block block, Cut cut);

  [[nodiscard]] const float* column(Block block, std::int32_t feature);
  void fill_columns();
  [[nodiscard]] Range range(Block block, std::int32_t feature);
  [[nodiscard]] Range range_of(Block block, const float* column) const;
  [[nodiscard]] std::int64_t heavy_weight(Block block) const;
  // The number of the proposal of greatest score.
  template <std::size_t K>
  [[nodiscard]] std::size_t best_of_light(Block block);
  [[nodiscard]] std::size_t best_of_heavy(Block block) const;

  std::size_t n_ = 0, n_features_ = 0, n_labels_ = 0;
  bool has_same_x_ = false;
  std::array<Slot, kMostDeciding> slots_{};
  std::array<const float*, kMostDeciding> rows_{};
  std::array<Word, kMostDeciding> places_{};          // the greatest word where there is no sample
  std::array<std::uint8_t, kMostDeciding> labels_{};  // positions in codes_
  std::array<Label, kMostDeciding> codes_{};
  std::vector<std::uint8_t> positions_;  // of each code in codes_, plus 1; all 0 between loads
  std::array<Block, kMostDeciding> label_blocks_{};
  std::array<Block, kMostDeciding> same_x_{};
  std::int64_t total_ = 0;
  std::array<std::int64_t, kMostDeciding> weights_{};
  LightWeights light_;  // the same, if they are light
  // Of the block that was decided last.
  std::size_t n_proposals_ = 0;
  std::array<Proposal, kMostProposals> proposals_{};
  std::vector<std::int32_t> varying_;  // empty until they are asked for
  // Columns by feature if there are few features, with their ranges over all samples; else the one of `gathered_from_`,
  // for the samples of `gathered_`.
  bool has_columns_ = false;
  Block ranged_ = 0, gathered_ = 0;
  std::int32_t gathered_from_ = -1;
  std::array<Range, kMostCached> ranges_{};
  alignas(16) std::array<float, kMostCached * kMostDeciding> columns_{};
};

}  // namespace onlineforest::guided
