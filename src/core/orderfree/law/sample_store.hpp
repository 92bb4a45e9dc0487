// The distinct samples of a forest with their weights, shared by all trees. Must not know trees.
//
// A sample is a pair of a row and a value, which is a label or a number. Equal samples are stored once, with the sum of
// their weights. A sample keeps its slot as long as it is stored; a free slot is reused. Cells may be kMissing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/compiler.hpp"
#include "base/huge_pages.hpp"
#include "base/memory.hpp"
#include "base/types.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/layout.hpp"
#include "orderfree/law/proposal.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// `Values` defines the type of a value, `Values::Value`, and hash(value), which is different for different values.
template <class Values>
class SampleStore {
 public:
  using Value = typename Values::Value;

  static constexpr std::size_t kMostSamples = std::numeric_limits<Slot>::max() / 2;

  SampleStore(const Layout& layout, Word seed, int key_bits = 64)
      : layout_(layout),
        width_(layout.width()),
        seed_(seed),
        key_mask_(key_bits == 64 ? ~Word{0} : (Word{1} << key_bits) - 1),
        missing_by_feature_(layout.n_numeric(), 0),
        levels_(layout.n_categorical) {
    feature_seeds_.reserve(layout.n_features);
    for (std::size_t d = 0; d < layout.n_features; ++d) {
      feature_seeds_.push_back(derive(scramble(seed), of_seed::kFeature + d));
    }
  }

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] std::size_t n_slots() const { return heads_.size(); }  // free slots included
  [[nodiscard]] std::size_t n_distinct() const { return heads_.size() - free_.size(); }
  [[nodiscard]] Values& values() { return values_; }
  [[nodiscard]] const Values& values() const { return values_; }
  [[nodiscard]] bool has_missing() const { return n_missing_ > 0; }
  [[nodiscard]] bool has_missing(std::int32_t cell) const {
    const auto k = static_cast<std::size_t>(cell);
    return n_missing_ > 0 && !layout_.is_level_cell(k) && missing_by_feature_[k] > 0;
  }

  [[nodiscard]] const float* row(Slot slot) const { return rows_.data() + index(slot) * width_; }
  [[nodiscard]] Value value(Slot slot) const { return heads_[index(slot)].value; }
  [[nodiscard]] Weight weight(Slot slot) const { return heads_[index(slot)].weight; }  // 0 if the slot is free
  [[nodiscard]] Word key(Slot slot) const { return heads_[index(slot)].key; }
  [[nodiscard]] Word x_hash(Slot slot) const { return heads_[index(slot)].x_hash; }

  // Prefetches what a split on this cell reads from a sample.
  ONLINEFOREST_ALWAYS_INLINE void prefetch(Slot slot, std::size_t cell) const {
    onlineforest::prefetch(row(slot) + cell);
    prefetch_head(slot);
  }
  ONLINEFOREST_ALWAYS_INLINE void prefetch_head(Slot slot) const { onlineforest::prefetch(&heads_[index(slot)]); }

  [[nodiscard]] bool same_x(Slot a, Slot b) const { return x_hash(a) == x_hash(b) && are_equal(row(a), row(b)); }

  // Whether `a` precedes `b` in the order of row and value. This order breaks ties of hashes.
  [[nodiscard]] bool content_less(Slot a, Slot b) const {
    const float *x = row(a), *y = row(b);
    const auto [at_x, at_y] = std::mismatch(x, x + width_, y, is_same);
    if (at_x != x + width_) return is_missing(*at_y) || *at_x < *at_y;  // missing cells come last
    return values_.hash(value(a)) < values_.hash(value(b));
  }

  // Copies a row in its canonical form: -0 becomes 0, and every NaN becomes kMissing.
  static void copy_canonical(const float* row, std::size_t n, float* to) {
    for (std::size_t i = 0; i < n; ++i) to[i] = is_missing(row[i]) ? kMissing : row[i] + 0.0f;
  }

  // The slot of this sample, or kNoSlot if it is not stored. The row must be canonical.
  [[nodiscard]] Slot find(const float* row, Value value) const { return find(row, value, key_of(hash_of(row), value)); }

  // Adds to the weight of a sample, and stores the sample if it is new. The row must be canonical.
  Slot add(const float* row, Value value, Weight weight) {
    const Word x_hash = hash_of(row), key = key_of(x_hash, value);
    Slot slot = find(row, value, key);
    if (slot == kNoSlot) {
      hold_levels(row);
      slot = take_slot();
      std::copy_n(row, width_, rows_.begin() + static_cast<std::ptrdiff_t>(index(slot) * width_));
      heads_[index(slot)] = {key, x_hash, 0, value, false};
      slots_.emplace(key, slot);
      count_missing(row, 1);
    }
    heads_[index(slot)].weight += weight;
    return slot;
  }

  // Subtracts from the weight of a sample. A sample of weight 0 keeps its row until release() is called.
  void subtract(Slot slot, Weight weight) { heads_[index(slot)].weight -= weight; }

  // Whether a sample is a calibrator, which some trees leave out.
  [[nodiscard]] bool calibrates(Slot slot) const { return heads_[index(slot)].calibrates; }
  void set_calibrates(Slot slot, bool calibrates) { heads_[index(slot)].calibrates = calibrates; }

  // Removes a sample of weight 0 and overwrites its memory, so that nothing of a forgotten sample remains.
  void release(Slot slot) {
    count_missing(row(slot), -1);
    drop_levels(row(slot), layout_.n_categorical);
    const auto [begin, end] = slots_.equal_range(key(slot));
    slots_.erase(std::find_if(begin, end, [slot](const auto& entry) { return entry.second == slot; }));
    std::fill_n(rows_.begin() + static_cast<std::ptrdiff_t>(index(slot) * width_), width_, 0.0f);
    heads_[index(slot)] = {};
    free_.push_back(slot);
  }

  // The number of samples of each level of a categorical feature. `categorical` counts categorical features from 0.
  [[nodiscard]] const std::unordered_map<Level, std::int64_t>& levels(std::size_t categorical) const {
    return levels_[categorical];
  }

  [[nodiscard]] std::size_t nbytes() const {
    constexpr std::size_t entry = 48;  // an entry of a hash table, with its pointers
    std::size_t n_entries = slots_.size();
    for (const auto& of_feature : levels_) n_entries += of_feature.size();
    return rows_.capacity() * sizeof(float) + heads_.capacity() * sizeof(Head) + n_entries * entry +
           free_.capacity() * sizeof(Slot);
  }

 private:
  // The properties of a sample besides its row, adjacent in memory because they are read together.
  struct Head {
    Word key = 0, x_hash = 0;
    Weight weight = 0;
    Value value{};
    bool calibrates = false;
  };

  static std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }

  // Compares bits, because NaN is not equal to itself.
  [[nodiscard]] bool are_equal(const float* a, const float* b) const {
    return std::memcmp(a, b, width_ * sizeof(float)) == 0;
  }

  [[nodiscard]] Word hash_of(const float* row) const {
    Word sum = seed_;
    const std::size_t n_numeric = layout_.n_numeric();
    for (std::size_t d = 0; d < n_numeric; ++d) {
      const Word hash = scramble(feature_seeds_[d] + kGolden * std::bit_cast<std::uint32_t>(row[d]));
      sum += is_missing(row[d]) ? 0 : hash;
    }
    for (std::size_t d = n_numeric; d < layout_.n_features; ++d) {
      sum += scramble(feature_seeds_[d] + kGolden * level_at(row + layout_.cell_of(d)));
    }
    return derive(sum, of_x::kHash);
  }
  [[nodiscard]] Word key_of(Word x_hash, Value value) const {
    return derive(x_hash ^ scramble(seed_ ^ values_.hash(value)), of_sample::kKey) & key_mask_;
  }

  void count_missing(const float* row, int by) {
    for (std::size_t d = 0; d < missing_by_feature_.size(); ++d) {
      if (!is_missing(row[d])) continue;
      missing_by_feature_[d] += by;
      n_missing_ += by;
    }
  }

  [[nodiscard]] const float* level_cells(const float* row, std::size_t categorical) const {
    return row + layout_.cell_of(layout_.n_numeric() + categorical);
  }
  void hold_levels(const float* row) {
    std::size_t c = 0;
    try {
      for (; c < layout_.n_categorical; ++c) ++levels_[c][level_at(level_cells(row, c))];
    } catch (...) {  // memory ran out: undo the increments
      drop_levels(row, c);
      throw;
    }
  }
  void drop_levels(const float* row, std::size_t n) {
    for (std::size_t c = 0; c < n; ++c) {
      const auto found = levels_[c].find(level_at(level_cells(row, c)));
      if (--found->second == 0) levels_[c].erase(found);
    }
  }

  [[nodiscard]] Slot find(const float* row, Value value, Word key) const {
    const auto [begin, end] = slots_.equal_range(key);
    for (auto entry = begin; entry != end; ++entry) {
      const Slot slot = entry->second;
      if (heads_[index(slot)].value == value && are_equal(row, this->row(slot))) return slot;
    }
    return kNoSlot;
  }

  Slot take_slot() {
    if (!free_.empty()) {
      const Slot slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (heads_.size() >= kMostSamples) {
      throw std::length_error("the forest holds " + std::to_string(n_distinct()) +
                              " distinct samples and cannot store another: the limit is " +
                              std::to_string(kMostSamples));
    }
    rows_.resize(rows_.size() + width_);
    heads_.emplace_back();
    free_.reserve(heads_.capacity());  // so that release() cannot fail
    return static_cast<Slot>(heads_.size()) - 1;
  }

  Layout layout_;
  std::size_t width_;  // cells per row
  Word seed_, key_mask_;
  std::vector<Word> feature_seeds_;
  Values values_;
  LargeVector<float> rows_;
  LargeVector<Head> heads_;
  std::vector<Slot> free_;
  std::unordered_multimap<Word, Slot> slots_;                    // by key
  std::int64_t n_missing_ = 0;                                   // missing cells of all stored samples
  std::vector<std::int64_t> missing_by_feature_;                 // stored samples that lack a numeric feature
  std::vector<std::unordered_map<Level, std::int64_t>> levels_;  // samples per level, by categorical feature
};

// The order of samples in a tree: by rank, then by row and value.
template <class Values>
class RankOrder {
 public:
  RankOrder(const SampleStore<Values>& samples, Word seed) : samples_(samples), seed_(seed) {}

  [[nodiscard]] Word rank(Slot slot) const { return scramble(samples_.key(slot) ^ seed_); }
  ONLINEFOREST_ALWAYS_INLINE void prefetch(Slot slot) const { samples_.prefetch_head(slot); }
  [[nodiscard]] Word place(Slot slot) const { return place_of(rank(slot)); }

  [[nodiscard]] bool operator()(Slot a, Slot b) const { return less(rank(a), a, rank(b), b); }

  [[nodiscard]] bool less(Word at_a, Slot a, Word at_b, Slot b) const {
    return at_a != at_b ? at_a < at_b : samples_.content_less(a, b);
  }

 private:
  const SampleStore<Values>& samples_;
  Word seed_;
};

}  // namespace onlineforest::orderfree
