// The distinct samples of a forest with their weights, shared by all trees. Must not know trees.
//
// A sample is a pair of a row and a label. Its weight is the number of times it is held. Slots stay where they are
// while their sample is held; a free slot is used again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.hpp"
#include "guided/law.hpp"

namespace onlineforest::guided {

using Label = std::int32_t;  // a class code

class SampleStore {
 public:
  static constexpr std::size_t kMostSamples = std::numeric_limits<Slot>::max() / 2;

  SampleStore(std::size_t n_features, Word seed, int key_bits = 64)
      : n_features_(n_features), seed_(seed), key_mask_(key_bits == 64 ? ~Word{0} : (Word{1} << key_bits) - 1) {
    feature_seeds_.reserve(n_features);
    for (std::size_t d = 0; d < n_features; ++d) {
      feature_seeds_.push_back(derive(scramble(seed), of_seed::kFeature + d));
    }
  }

  [[nodiscard]] std::size_t n_features() const { return n_features_; }
  [[nodiscard]] std::size_t n_slots() const { return heads_.size(); }  // free ones included
  [[nodiscard]] std::size_t n_distinct() const { return heads_.size() - free_.size(); }
  [[nodiscard]] std::int32_t n_labels() const { return static_cast<std::int32_t>(label_hashes_.size()); }

  [[nodiscard]] const float* row(Slot slot) const { return rows_.data() + index(slot) * n_features_; }
  [[nodiscard]] Label label(Slot slot) const { return heads_[index(slot)].label; }
  [[nodiscard]] std::int64_t weight(Slot slot) const { return heads_[index(slot)].weight; }  // 0 if the slot is free
  [[nodiscard]] Word key(Slot slot) const { return heads_[index(slot)].key; }
  [[nodiscard]] Word x_hash(Slot slot) const { return heads_[index(slot)].x_hash; }

  [[nodiscard]] bool same_x(Slot a, Slot b) const {
    return x_hash(a) == x_hash(b) && std::equal(row(a), row(a) + n_features_, row(b));
  }

  // Whether `a` comes before `b` in the order of contents, which breaks ties of hashes.
  [[nodiscard]] bool content_less(Slot a, Slot b) const {
    const float *x = row(a), *y = row(b);
    const auto [at_x, at_y] = std::mismatch(x, x + n_features_, y);
    if (at_x != x + n_features_) return *at_x < *at_y;
    return label_hash(a) < label_hash(b);
  }

  // Makes labels known. The hashes are those of all labels so far, of which the first are known already.
  void set_labels(std::span<const Word> hashes) { label_hashes_.assign(hashes.begin(), hashes.end()); }
  [[nodiscard]] Word label_hash_of(Label label) const { return label_hashes_[static_cast<std::size_t>(label)]; }

  // The slot of this sample; kNoSlot if it is not held. The row has no negative zeros.
  [[nodiscard]] Slot find(const float* row, Label label) const { return find(row, label, key_of(hash_of(row), label)); }

  // Changes the weight of a sample by one more, and stores it if it is new.
  Slot add(const float* row, Label label) {
    const Word x_hash = hash_of(row), key = key_of(x_hash, label);
    Slot slot = find(row, label, key);
    if (slot == kNoSlot) {
      slot = take_slot();
      std::copy_n(row, n_features_, rows_.begin() + static_cast<std::ptrdiff_t>(index(slot) * n_features_));
      heads_[index(slot)] = {key, x_hash, 0, label};
      slots_.emplace(key, slot);
    }
    ++heads_[index(slot)].weight;
    return slot;
  }

  // Takes one from the weight of a sample. A sample of weight 0 keeps its row until release().
  void subtract(Slot slot) { --heads_[index(slot)].weight; }

  // Removes a sample of weight 0, and overwrites it in memory.
  void release(Slot slot) {
    const auto [begin, end] = slots_.equal_range(key(slot));
    slots_.erase(std::find_if(begin, end, [slot](const auto& entry) { return entry.second == slot; }));
    std::fill_n(rows_.begin() + static_cast<std::ptrdiff_t>(index(slot) * n_features_), n_features_, 0.0f);
    heads_[index(slot)] = {};
    free_.push_back(slot);
  }

  [[nodiscard]] std::size_t nbytes() const {
    constexpr std::size_t entry = 48;  // an entry of the hash table, with its pointers
    return rows_.capacity() * sizeof(float) + heads_.capacity() * sizeof(Head) + slots_.size() * entry +
           free_.capacity() * sizeof(Slot);
  }

 private:
  // All that is asked of a sample besides its row, side by side in memory.
  struct Head {
    Word key = 0, x_hash = 0;
    std::int32_t weight = 0;
    Label label = 0;
  };

  static std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }
  [[nodiscard]] Word label_hash(Slot slot) const { return label_hash_of(label(slot)); }

  [[nodiscard]] Word hash_of(const float* row) const {
    Word sum = seed_;
    for (std::size_t d = 0; d < n_features_; ++d) {
      sum += scramble(feature_seeds_[d] + kGolden * std::bit_cast<std::uint32_t>(row[d]));
    }
    return derive(sum, of_x::kHash);
  }
  [[nodiscard]] Word key_of(Word x_hash, Label label) const {
    return derive(x_hash ^ scramble(seed_ ^ label_hash_of(label)), of_sample::kKey) & key_mask_;
  }

  [[nodiscard]] Slot find(const float* row, Label label, Word key) const {
    const auto [begin, end] = slots_.equal_range(key);
    for (auto entry = begin; entry != end; ++entry) {
      const Slot slot = entry->second;
      if (heads_[index(slot)].label == label && std::equal(row, row + n_features_, this->row(slot))) return slot;
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
      throw std::length_error("a forest cannot store more than " + std::to_string(kMostSamples) + " samples");
    }
    rows_.resize(rows_.size() + n_features_);
    heads_.emplace_back();
    free_.reserve(heads_.capacity());  // so that release() cannot fail
    return static_cast<Slot>(heads_.size()) - 1;
  }

  std::size_t n_features_;
  Word seed_, key_mask_;
  std::vector<Word> feature_seeds_;
  std::vector<Word> label_hashes_;
  std::vector<float> rows_;
  std::vector<Head> heads_;
  std::vector<Slot> free_;
  std::unordered_multimap<Word, Slot> slots_;  // by key
};

// The order of samples in a tree: by rank, then by content.
class RankOrder {
 public:
  RankOrder(const SampleStore& samples, Word seed) : samples_(samples), seed_(seed) {}

  [[nodiscard]] Word rank(Slot slot) const { return scramble(samples_.key(slot) ^ seed_); }
  [[nodiscard]] Word place(Slot slot) const { return place_of(rank(slot)); }

  [[nodiscard]] bool operator()(Slot a, Slot b) const { return less(rank(a), a, rank(b), b); }

  [[nodiscard]] bool less(Word at_a, Slot a, Word at_b, Slot b) const {
    return at_a != at_b ? at_a < at_b : samples_.content_less(a, b);
  }

 private:
  const SampleStore& samples_;
  Word seed_;
};

}  // namespace onlineforest::guided
