// Where the features of a row lie, and what its cells hold. Must not know samples.
//
// The cells of numeric features come first, one each. A categorical feature has two cells side by side: together they
// hold its level, a hash of the value, which is all that a forest knows of it. So the side of a level at a cut, and
// everything else about it, is the same in every forest, whatever levels came before. A missing value is a level.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "orderfree/law/law.hpp"

namespace onlineforest::orderfree {

// 30 bits as a float that is positive, finite and normal: no processor rounds it to 0.
class HashCell {
 public:
  static constexpr int kBits = 30;

  [[nodiscard]] static std::uint32_t bits(float cell) { return std::bit_cast<std::uint32_t>(cell) - kLeast; }
  [[nodiscard]] static float of(Word bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits % (Word{1} << kBits)) + kLeast);
  }
  [[nodiscard]] static bool may_be(float cell) { return bits(cell) >> kBits == 0; }

 private:
  static constexpr std::uint32_t kLeast = 0x00800000;  // the bits of the least normal float
};

// A hash of 60 bits: the low ones in the first cell, the high ones in the second.
using Level = Word;

[[nodiscard]] inline Level level_at(const float* cells) {
  return static_cast<Level>(HashCell::bits(cells[1])) << HashCell::kBits | HashCell::bits(cells[0]);
}

// The side of each level at a cut: a bit of a hash of the level and the salt of the cut. So a level has its side before
// it is first seen. The salt, a HashCell, is kept in the place of a threshold.
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
  std::size_t n_categorical = 0;  // the last ones of them

  [[nodiscard]] std::size_t n_numeric() const { return n_features - n_categorical; }
  [[nodiscard]] std::size_t width() const { return n_features + n_categorical; }  // cells
  [[nodiscard]] bool is_categorical(std::size_t feature) const { return feature >= n_numeric(); }
  [[nodiscard]] bool is_level_cell(std::size_t cell) const { return cell >= n_numeric(); }
  // The first cell of a feature, and the feature of its first cell.
  [[nodiscard]] std::size_t cell_of(std::size_t feature) const {
    return is_categorical(feature) ? 2 * feature - n_numeric() : feature;
  }
  [[nodiscard]] std::size_t feature_of(std::size_t cell) const {
    return is_level_cell(cell) ? (cell + n_numeric()) / 2 : cell;
  }

  friend bool operator==(const Layout&, const Layout&) = default;
};

}  // namespace onlineforest::orderfree
