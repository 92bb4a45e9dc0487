// Groups the samples of a panel by equal values. Must not know what the values are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "orderfree/law/law.hpp"
#include "orderfree/law/proposal.hpp"

namespace onlineforest::orderfree {

class Groups {
 public:
  void clear() {
    n_ = 0;
    places_.fill(0);
  }

  // Adds the sample of bit i to the group of its value; equal values have equal words.
  void add(std::size_t i, Word word) {
    std::size_t at = (kGolden * word) >> kShift;
    while (places_[at] != 0 && words_[places_[at] - 1u] != word) at = (at + 1) % places_.size();
    if (places_[at] == 0) {
      words_[n_] = word;
      blocks_[n_] = 0;
      places_[at] = static_cast<std::uint8_t>(++n_);
    }
    group_of_[i] = static_cast<std::uint8_t>(places_[at] - 1);
    blocks_[group_of_[i]] |= Block{1} << i;
  }

  [[nodiscard]] std::size_t size() const { return n_; }
  [[nodiscard]] Word word(std::size_t group) const { return words_[group]; }
  [[nodiscard]] Block block(std::size_t group) const { return blocks_[group]; }
  [[nodiscard]] std::size_t group(std::size_t i) const { return group_of_[i]; }
  // The samples whose value equals that of bit i.
  [[nodiscard]] Block like(std::size_t i) const { return blocks_[group_of_[i]]; }
  // Whether all samples of a block have one value. The block is not empty. The remainder has no effect; without it,
  // GCC 13 warns that an empty block has the first bit 64.
  [[nodiscard]] bool are_one(Block block) const { return (block & ~like(first_bit(block) % kMostDeciding)) == 0; }

 private:
  static constexpr int kShift = 57;  // gives 128 places for at most 64 groups, so that half of them stay empty

  std::size_t n_ = 0;
  std::array<std::uint8_t, 128> places_{};  // hash table: the index of a group plus 1, or 0
  std::array<Word, kMostDeciding> words_{};
  std::array<Block, kMostDeciding> blocks_{};
  std::array<std::uint8_t, kMostDeciding> group_of_{};
};

}  // namespace onlineforest::orderfree
