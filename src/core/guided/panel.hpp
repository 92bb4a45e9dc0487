// A panel: up to 64 samples that decide about cuts, a block of them as a word of bits. Must not know trees.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "guided/law.hpp"
#include "guided/sample_store.hpp"

namespace onlineforest::guided {

// Rows with x[feature] <= threshold go left.
struct Cut {
  std::int32_t feature = -1;
  float threshold = 0.0f;

  friend bool operator==(const Cut&, const Cut&) = default;
};

// One bit for each sample of a panel, in their order on the circle.
using Block = Word;

class Panel {
 public:
  // Loads the samples of `slots`, at most kMostDeciding, in the order of the circle of a tree.
  void load(const SampleStore& samples, const RankOrder& order, std::span<const Slot> slots);

  [[nodiscard]] std::size_t size() const { return n_; }
  [[nodiscard]] Block all() const { return n_ == 64 ? ~Block{0} : (Block{1} << n_) - 1; }

  [[nodiscard]] bool has_one_label(Block block) const {
    return (block & ~label_blocks_[labels_[first_bit(block)]]) == 0;
  }
  [[nodiscard]] bool has_one_x(Block block) const { return (block & ~same_x(first_bit(block))) == 0; }
  [[nodiscard]] std::int64_t weight(Block block) const {
    return has_unit_weights_ ? std::popcount(block) : weight_of_many(block);
  }

  // Calls use(label, weight) for each label of a block.
  template <class Use>
  void for_each_label(Block block, Use use) const {
    for (std::size_t c = 0; c < n_labels_; ++c) {
      if (const Block those = block & label_blocks_[c]) use(codes_[c], weight(those));
    }
  }

  // The best cut of a block, which has two different rows.
  [[nodiscard]] Cut decide(Block block, Word seed);

  // The samples of a block that a cut sends left.
  [[nodiscard]] Block left_of(Block block, Cut cut);

 private:
  static constexpr std::size_t kMostCached = 64;  // features whose columns are kept
  static constexpr std::size_t kMostAtOnce = 32;  // features whose columns are filled together

  struct Range {
    float low, high;
  };

  static std::size_t first_bit(Block block) { return static_cast<std::size_t>(std::countr_zero(block)); }

  [[nodiscard]] Block same_x(std::size_t i) const { return has_same_x_ ? same_x_[i] : Block{1} << i; }
  void find_same_x(const SampleStore& samples, std::span<const Slot> slots);

  // The sample of a block whose place is the first at or after `place` on the circle.
  [[nodiscard]] std::size_t first_from(Block block, Word place) const;

  [[nodiscard]] Cut propose_pair(Block block, Word proposal) const;
  [[nodiscard]] Cut propose_range(Block block, Word proposal);
  // The first feature of a hashed sequence that is fit; -1 if none of the first ones is.
  template <class IsFit>
  [[nodiscard]] std::int32_t first_feature(Word proposal, IsFit is_fit) const;
  // The features in which a block is not constant.
  [[nodiscard]] const std::vector<std::int32_t>& varying(Block block);

  [[nodiscard]] const float* column(Block block, std::int32_t feature);
  void fill_columns();
  [[nodiscard]] Range range(Block block, std::int32_t feature);
  [[nodiscard]] Range range_of(Block block, const float* column) const;
  [[nodiscard]] std::int64_t weight_of_many(Block block) const;
  void count_labels(Block block);
  [[nodiscard]] double score(Block left) const;

  std::size_t n_ = 0, n_features_ = 0, n_labels_ = 0;
  bool has_same_x_ = false, has_unit_weights_ = true;
  std::array<const float*, kMostDeciding> rows_{};
  std::array<Word, kMostDeciding> places_{};          // the greatest word where there is no sample
  std::array<std::uint8_t, kMostDeciding> labels_{};  // positions in codes_
  std::array<Label, kMostDeciding> codes_{};
  std::vector<std::uint8_t> positions_;  // of each code in codes_, plus 1; all 0 between loads
  std::array<Block, kMostDeciding> label_blocks_{};
  std::array<Block, kMostDeciding> same_x_{};
  std::array<std::int64_t, kMostDeciding> weights_{};
  // Of the block that is being decided: its weight; the sum of the squared weights of its labels; the samples that are
  // the only one of their label, of weight 1; the other labels and their weights.
  std::int64_t total_ = 0;
  std::uint64_t squares_ = 0;
  Block singles_ = 0;
  std::size_t n_present_ = 0;
  std::array<Block, kMostDeciding> present_{};
  std::array<std::uint64_t, kMostDeciding> totals_{};
  std::vector<std::int32_t> varying_;  // empty until they are asked for
  // Columns by feature if there are few features, with their ranges over all samples; else one that is filled for each
  // use.
  Block cached_ = 0, ranged_ = 0;
  std::array<Range, kMostCached> ranges_{};
  alignas(16) std::array<float, kMostCached * kMostDeciding> columns_{};
};

}  // namespace onlineforest::guided
