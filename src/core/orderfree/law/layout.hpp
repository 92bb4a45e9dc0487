// The layout of a row: which cells belong to a feature, and what the cells hold. Must not know samples.
//
// The cells of numeric features come first, one each. A categorical feature has two adjacent cells, which together hold
// its level: a hash of the value. The forest knows nothing else about the value. So a level goes to the same side of a
// split in every forest, whatever levels came before it. A missing value is a level of its own.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "orderfree/law/law.hpp"

namespace onlineforest::orderfree {

// Stores 30 bits in a float. The float is positive, finite and normal, so no processor rounds it to 0.
class HashCell {
 public:
  static constexpr int kBits = 30;

  [[nodiscard]] static std::uint32_t bits(float cell) { return std::bit_cast<std::uint32_t>(cell) - kLeast; }
  [[nodiscard]] static float of(Word bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits % (Word{1} << kBits)) + kLeast);
  }
  [[nodiscard]] static bool may_be(float cell) { return bits(cell) >> kBits == 0; }

 private:
  static constexpr std::uint32_t kLeast = 0x00800000;  // the bits of the smallest normal float
};

// A hash of 60 bits. The first cell holds the low 30 bits, the second the high ones.
using Level = Word;

[[nodiscard]] inline Level level_at(const float* cells) {
  return static_cast<Level>(HashCell::bits(cells[1])) << HashCell::kBits | HashCell::bits(cells[0]);
}

// Decides to which side of a split each level goes: by one bit of a hash of the level and the salt of the split. So the
// side of a level is fixed before the level is first seen. The threshold of the split stores the salt, as a HashCell.
class LevelSides {
 public:
  explicit LevelSides(float threshold) : salt_(HashCell::bits(threshold)) {}
  static LevelSides drawn(Word word) { return LevelSides(HashCell::of(word >> (64 - HashCell::kBits))); }

  [[nodiscard]] bool sends_left(Level level) const { return scramble(level + kGolden * salt_) >> 63 != 0; }
  [[nodiscard]] float threshold() const { return HashCell::of(salt_); }

 private:
  std::uint32_t salt_;
};

struct Layout {
  std::size_t n_features = 1;
  std::size_t n_categorical = 0;  // categorical features come after the numeric ones

  [[nodiscard]] std::size_t n_numeric() const { return n_features - n_categorical; }
  [[nodiscard]] std::size_t width() const { return n_features + n_categorical; }  // number of cells of a row
  [[nodiscard]] bool is_wide() const { return n_numeric() > kMostNarrow; }
  [[nodiscard]] bool is_categorical(std::size_t feature) const { return feature >= n_numeric(); }
  [[nodiscard]] bool is_level_cell(std::size_t cell) const { return cell >= n_numeric(); }
  // cell_of() returns the first cell of a feature. feature_of() is its inverse.
  [[nodiscard]] std::size_t cell_of(std::size_t feature) const {
    return is_categorical(feature) ? 2 * feature - n_numeric() : feature;
  }
  [[nodiscard]] std::size_t feature_of(std::size_t cell) const {
    return is_level_cell(cell) ? (cell + n_numeric()) / 2 : cell;
  }

  friend bool operator==(const Layout&, const Layout&) = default;
};

}  // namespace onlineforest::orderfree
