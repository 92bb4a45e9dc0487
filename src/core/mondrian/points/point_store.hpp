// The stored points, shared by all trees of a forest. Must not know trees.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/require.hpp"
#include "base/types.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/points/slot_index.hpp"
#include "samples/moves.hpp"
#include "samples/slot_numbers.hpp"

namespace onlineforest::mondrian {

using Label = std::int32_t;  // the code of a class, from 0

// A change of how often a point counts.
struct Recounted {
  Slot slot;
  std::int32_t by;
};

// Layout: rows of float32, row-major, in one array; one label per point in another. All values are finite.
//
// Equal samples are one point, which counts as often as they have arrived, if the caller asks find() before it stores a
// sample.
class PointStore {
 public:
  // A tree has up to two nodes per point, and node indices have the type of Slot.
  static constexpr std::size_t kMostPoints = std::numeric_limits<Slot>::max() / 2;

  explicit PointStore(std::size_t n_features) : n_features_(n_features) {}

  [[nodiscard]] std::size_t n_features() const { return n_features_; }
  [[nodiscard]] std::size_t size() const { return labels_.size(); }

  [[nodiscard]] const float* row(Slot slot) const {
    return rows_.data() + static_cast<std::size_t>(slot) * n_features_;
  }
  [[nodiscard]] std::span<const float> row_of(Slot slot) const { return {row(slot), n_features_}; }
  [[nodiscard]] BoxView box(Slot slot) const { return {row(slot), row(slot)}; }
  [[nodiscard]] Label label(Slot slot) const { return labels_[static_cast<std::size_t>(slot)]; }

  [[nodiscard]] std::int32_t count(Slot slot) const { return counts_[slot]; }
  // Whether all points count once, as far as it is known without a look at each.
  [[nodiscard]] bool all_count_once() const { return counts_.empty(); }

  // The hash of a sample, in this process: equal samples have equal hashes. Files do not know the salt, so they cannot
  // make many samples meet in the index.
  [[nodiscard]] static std::uint64_t hash_of(std::span<const float> row, Label label) {
    static const std::uint64_t salt = (std::uint64_t{std::random_device()()} << 32) ^ std::random_device()();
    std::uint64_t sum = 0, place = salt;
    const auto add = [&](std::uint64_t bits) { sum += scramble(bits ^ scramble(place += kGolden)); };
    for (const float x : row) add(std::bit_cast<std::uint32_t>(x + 0.0f));  // -0 is 0
    add(static_cast<std::uint64_t>(label));
    return scramble(sum);
  }
  [[nodiscard]] std::uint64_t hash(Slot slot) const { return index_.hash(slot); }

  // The slot of a sample; kNoSlot if it is not stored.
  [[nodiscard]] Slot find(std::span<const float> row, Label label, std::uint64_t hash) const {
    return index_.find(hash, [&](Slot slot) {
      return this->label(slot) == label && std::equal(row.begin(), row.end(), this->row(slot));
    });
  }

  // Makes room for counts other than one, so that set_count() and append() with such counts cannot fail.
  void reserve_counts(std::size_t n_more) { counts_.reserve(size(), n_more); }
  // Sets how often a point counts. Needs reserve_counts() before, if it is not once.
  void set_count(Slot slot, std::int32_t count) { counts_.set(slot, count); }

  std::span<const float> rows() const { return rows_; }
  std::span<const Label> labels() const { return labels_; }

  std::size_t nbytes() const {
    return rows_.capacity() * sizeof(float) + labels_.capacity() * sizeof(Label) + counts_.nbytes() + index_.nbytes();
  }

  // Allocates memory for `n_more` further points. If this throws, nothing has changed.
  void reserve(std::size_t n_more) {
    if (n_more > kMostPoints - size()) {
      throw std::length_error("a forest holds " + std::to_string(size()) + " points and cannot store " +
                              std::to_string(n_more) + " more: the limit is " + std::to_string(kMostPoints));
    }
    labels_.reserve(grown(labels_.capacity(), size() + n_more));
    rows_.reserve(grown(rows_.capacity(), (size() + n_more) * n_features_));
    if (!counts_.empty()) counts_.reserve(size(), n_more);
    index_.reserve(labels_.capacity());
  }

  // Stores points. Without counts, each counts once. If this throws, nothing has changed.
  void append(std::span<const float> rows, std::span<const Label> labels, std::span<const std::int32_t> counts = {}) {
    require(rows.size() == labels.size() * n_features_, [&] {
      return "rows have " + std::to_string(rows.size()) + " entries, but " + std::to_string(labels.size()) +
             " points of " + std::to_string(n_features_) + " features have " +
             std::to_string(labels.size() * n_features_);
    });
    reserve(labels.size());
    if (!counts.empty()) reserve_counts(labels.size());
    counts_.append(counts, labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      index_.push(hash_of(rows.subspan(i * n_features_, n_features_), labels[i]));
    }
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    labels_.insert(labels_.end(), labels.begin(), labels.end());
  }

  // Removes points. Other points take their slots, as in `moves`.
  void remove(std::span<const Slot> slots, std::span<const Move> moves) {
    for (const Move& move : moves) {
      const auto from = static_cast<std::ptrdiff_t>(move.from), to = static_cast<std::ptrdiff_t>(move.to);
      const auto n = static_cast<std::ptrdiff_t>(n_features_);
      std::copy_n(rows_.begin() + from * n, n, rows_.begin() + to * n);
      labels_[static_cast<std::size_t>(to)] = labels_[static_cast<std::size_t>(from)];
    }
    counts_.remove(slots, moves);
    index_.remove(slots, moves);
    overwrite(size() - slots.size());
  }

  // Releases memory if most of it is unused.
  void shrink() {
    if (size() >= labels_.capacity() / 4) return;
    rows_.shrink_to_fit();
    labels_.shrink_to_fit();
    counts_.shrink();
    index_.shrink();
  }

 private:
  static std::size_t grown(std::size_t capacity, std::size_t needed) {
    return needed <= capacity ? capacity : std::max(needed, capacity + capacity / 4);
  }

  // Keeps only the first `n_left` rows and labels. Overwrites the others in memory.
  void overwrite(std::size_t n_left) {
    std::fill(rows_.begin() + static_cast<std::ptrdiff_t>(n_left * n_features_), rows_.end(), 0.0f);
    std::fill(labels_.begin() + static_cast<std::ptrdiff_t>(n_left), labels_.end(), Label());
    rows_.resize(n_left * n_features_);
    labels_.resize(n_left);
  }

  std::size_t n_features_;
  std::vector<float> rows_;
  std::vector<Label> labels_;
  SlotCounts counts_;
  SlotIndex index_;
};

}  // namespace onlineforest::mondrian
