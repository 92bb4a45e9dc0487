// Records which cells of stored rows are missing. Must not know the values that fill them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace onlineforest {

// Whether rows, as given by the user, have missing values: NaN is missing.
[[nodiscard]] inline bool has_missing(std::span<const float> rows) {
  return std::ranges::any_of(rows, [](float x) { return std::isnan(x); });
}

// Layout: a feature that has ever had a missing cell has a column of bits, one bit per point, 64 bits per word. Without
// missing cells this takes no memory.
class MissingCells {
 public:
  using Word = std::uint64_t;
  static constexpr std::size_t kNone = ~std::size_t{0};

  [[nodiscard]] static std::size_t n_words(std::size_t n_points) { return (n_points + kBits - 1) / kBits; }

  [[nodiscard]] bool any() const { return !features_.empty(); }
  std::size_t n_points() const { return n_points_; }
  // The features that have a column, in increasing order.
  [[nodiscard]] std::span<const std::int32_t> features() const { return features_; }

  [[nodiscard]] bool contains(std::size_t point, std::size_t feature) const {
    const Column* column = find(feature);
    return column != nullptr && column->bit(point);
  }

  // Whether any point knows the feature.
  [[nodiscard]] bool is_ever_known(std::size_t feature) const {
    const Column* column = find(feature);
    return column == nullptr ? n_points_ > 0 : column->n_set < n_points_;
  }

  // The first point that knows the feature, among the first `n` points: searches from `start` to n, then from 0. kNone
  // if no point knows it.
  [[nodiscard]] std::size_t find_known(std::size_t feature, std::size_t start, std::size_t n) const {
    if (!is_ever_known(feature) || n == 0) return kNone;
    const Column* column = find(feature);
    if (column == nullptr) return start;
    for (std::size_t i = start; i < n; i = (i / kBits + 1) * kBits) {
      if (const std::size_t point = column->first_clear(i); point < n) return point;
    }
    for (std::size_t i = 0; i < n; i += kBits) {
      if (const std::size_t point = column->first_clear(i); point < n) return point;
    }
    return kNone;
  }

  // Allocates memory for further rows. If this throws, nothing has changed.
  void reserve(std::span<const float> rows, std::size_t n_features) {
    const std::size_t words = n_words(n_points_ + rows.size() / n_features);
    if (has_missing(rows)) {
      if (places_.empty()) places_.assign(n_features, kNoPlace);
      std::vector<bool> is_new(n_features);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (std::isnan(rows[i])) is_new[i % n_features] = find(i % n_features) == nullptr;
      }
      for (std::size_t d = 0; d < n_features; ++d) {
        if (is_new[d]) add_column(d);
      }
    }
    for (Column& column : columns_) {
      if (words > column.words.capacity()) column.words.reserve(words + words / 4);
    }
  }

  // Appends rows; reserve() must have been called for them.
  void append(std::span<const float> rows, std::size_t n_features) noexcept {
    const std::size_t first = n_points_;
    n_points_ += rows.size() / n_features;
    for (Column& column : columns_) column.words.resize(n_words(n_points_), 0);
    for (std::size_t i = 0; any() && i < rows.size(); ++i) {
      if (std::isnan(rows[i])) columns_[place(i % n_features)].set(first + i / n_features);
    }
  }

  // Moves the cells of a point to another place.
  void move(std::size_t from, std::size_t to) {
    for (Column& column : columns_) {
      column.clear(to);
      if (column.bit(from)) column.set(to);
    }
  }

  // Keeps only the first `n_points` points.
  void truncate(std::size_t n_points) {
    for (Column& column : columns_) column.truncate(n_points);
    n_points_ = n_points;
    if (n_points == 0) *this = MissingCells();
  }

  void shrink() {
    for (Column& column : columns_) column.words.shrink_to_fit();
  }

  std::size_t nbytes() const {
    std::size_t n = places_.capacity() * sizeof(places_[0]) + features_.capacity() * sizeof(features_[0]) +
                    columns_.capacity() * sizeof(Column);
    for (const Column& column : columns_) n += column.words.capacity() * sizeof(Word);
    return n;
  }

  // The words of all columns, concatenated in the order of features().
  [[nodiscard]] std::vector<Word> words() const {
    std::vector<Word> joined;
    for (const std::int32_t d : features_) {
      const Column& column = columns_[place(static_cast<std::size_t>(d))];
      joined.insert(joined.end(), column.words.begin(), column.words.end());
    }
    return joined;
  }

  // Whether these can be features() and words() of a record of this many points and features.
  [[nodiscard]] static bool are_sound(std::span<const std::int32_t> features, std::span<const Word> words,
                                      std::size_t n_points, std::size_t n_features) {
    const std::size_t n = n_words(n_points);
    if (words.size() != features.size() * n || (n_points == 0 && !features.empty())) return false;
    std::int64_t last = -1;
    for (const std::int32_t d : features) {
      if (d <= last || static_cast<std::size_t>(d) >= n_features) return false;
      last = d;
    }
    const Word beyond = n_points % kBits == 0 ? 0 : ~Word{0} << n_points % kBits;
    for (std::size_t i = n; n > 0 && i <= words.size(); i += n) {
      if (words[i - 1] & beyond) return false;
    }
    return true;
  }

  // Restores a record from its features() and words(), which must be sound.
  void restore(std::span<const std::int32_t> features, std::span<const Word> words, std::size_t n_points,
               std::size_t n_features) {
    *this = MissingCells();
    n_points_ = n_points;
    if (features.empty()) return;
    places_.assign(n_features, kNoPlace);
    const std::size_t n = n_words(n_points);
    for (const std::int32_t d : features) {
      add_column(static_cast<std::size_t>(d));
      Column& column = columns_.back();
      column.words.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n));
      for (const Word word : column.words) column.n_set += static_cast<std::size_t>(std::popcount(word));
      words = words.subspan(n);
    }
  }

 private:
  static constexpr std::size_t kBits = 64;
  static constexpr std::int32_t kNoPlace = -1;

  struct Column {
    std::vector<Word> words;
    std::size_t n_set = 0;

    bool bit(std::size_t i) const { return (words[i / kBits] >> (i % kBits) & 1) != 0; }
    void set(std::size_t i) {
      n_set += !bit(i);
      words[i / kBits] |= Word{1} << i % kBits;
    }
    void clear(std::size_t i) {
      n_set -= bit(i);
      words[i / kBits] &= ~(Word{1} << i % kBits);
    }
    // Keeps only the first n bits. Overwrites the others in memory.
    void truncate(std::size_t n) {
      if (n % kBits != 0) {
        Word& last = words[n / kBits];
        const Word beyond = last & ~Word{0} << n % kBits;
        n_set -= static_cast<std::size_t>(std::popcount(beyond));
        last ^= beyond;
      }
      for (std::size_t i = n_words(n); i < words.size(); ++i) {
        n_set -= static_cast<std::size_t>(std::popcount(std::exchange(words[i], 0)));
      }
      words.resize(n_words(n));
    }
    // The first clear bit at i or later within the word of bit i; kNone if there is none.
    std::size_t first_clear(std::size_t i) const {
      const Word rest = ~words[i / kBits] >> i % kBits;
      return rest == 0 ? kNone : i + static_cast<std::size_t>(std::countr_zero(rest));
    }
  };

  std::size_t place(std::size_t feature) const { return static_cast<std::size_t>(places_[feature]); }

  const Column* find(std::size_t feature) const {
    return places_.empty() || places_[feature] == kNoPlace ? nullptr : &columns_[place(feature)];
  }

  void add_column(std::size_t feature) {
    Column column;
    column.words.resize(n_words(n_points_), 0);
    features_.reserve(features_.size() + 1);
    columns_.push_back(std::move(column));
    places_[feature] = static_cast<std::int32_t>(columns_.size() - 1);
    features_.insert(std::ranges::lower_bound(features_, static_cast<std::int32_t>(feature)),
                     static_cast<std::int32_t>(feature));
  }

  std::size_t n_points_ = 0;
  std::vector<std::int32_t> places_;    // per feature: index of its column, or kNoPlace
  std::vector<std::int32_t> features_;  // in increasing order
  std::vector<Column> columns_;         // in the order of creation
};

}  // namespace onlineforest
