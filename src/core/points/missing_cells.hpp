// Which cells of stored rows are missing. Knows nothing of what stands in their place.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onlineforest {

// Rows as they are given: a value that is NaN is missing.
inline bool has_missing(std::span<const float> rows) {
  return std::ranges::any_of(rows, [](float x) { return std::isnan(x); });
}

// Layout: for each feature of which a cell was ever missing a column of bits, one per point, 64 to a word. Where
// nothing is missing this takes no memory.
class MissingCells {
 public:
  using Word = std::uint64_t;
  static constexpr std::size_t kNone = ~std::size_t{0};

  static std::size_t n_words(std::size_t n_points) { return (n_points + kBits - 1) / kBits; }

  bool any() const { return !features_.empty(); }
  std::size_t n_points() const { return n_points_; }
  // Those that have a column, in increasing order.
  std::span<const std::int32_t> features() const { return features_; }

  bool contains(std::size_t point, std::size_t feature) const {
    const Column* column = find(feature);
    return column != nullptr && column->bit(point);
  }

  bool is_ever_known(std::size_t feature) const {
    const Column* column = find(feature);
    return column == nullptr ? n_points_ > 0 : column->n_set < n_points_;
  }

  // Of the first `n` points the first from `start` on, and then from 0, of which the feature is known; kNone if there
  // is none.
  std::size_t find_known(std::size_t feature, std::size_t start, std::size_t n) const {
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

  // Takes memory for rows to come; if this throws, nothing has changed.
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

  // Takes in rows that memory was taken for.
  void append(std::span<const float> rows, std::size_t n_features) noexcept {
    const std::size_t first = n_points_;
    n_points_ += rows.size() / n_features;
    for (Column& column : columns_) column.words.resize(n_words(n_points_), 0);
    for (std::size_t i = 0; any() && i < rows.size(); ++i) {
      if (std::isnan(rows[i])) columns_[place(i % n_features)].set(first + i / n_features);
    }
  }

  // A point gets the place of another.
  void move(std::size_t from, std::size_t to) {
    for (Column& column : columns_) {
      column.clear(to);
      if (column.bit(from)) column.set(to);
    }
  }

  void truncate(std::size_t n_points) {
    for (Column& column : columns_) {
      for (std::size_t i = n_points; i < n_points_; ++i) column.clear(i);
      column.words.resize(n_words(n_points));
    }
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

  // All columns, one after the other, in the order of the features.
  std::vector<Word> words() const {
    std::vector<Word> joined;
    for (const std::int32_t d : features_) {
      const Column& column = columns_[place(static_cast<std::size_t>(d))];
      joined.insert(joined.end(), column.words.begin(), column.words.end());
    }
    return joined;
  }

  // Whether features() and words() of something of so many points and features could be these.
  static bool are_sound(std::span<const std::int32_t> features, std::span<const Word> words, std::size_t n_points,
                        std::size_t n_features) {
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

  // Those of features() and words() that are sound.
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
    // The first bit of the word of bit i, from i on, that is clear; kNone if there is none.
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
  std::vector<std::int32_t> places_;    // per feature: its column
  std::vector<std::int32_t> features_;  // in increasing order
  std::vector<Column> columns_;         // in the order they came
};

}  // namespace onlineforest
