// The stored points, shared by all trees of a forest. Must not know trees.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/require.hpp"
#include "base/types.hpp"
#include "points/box.hpp"
#include "points/missing_cells.hpp"
#include "points/moves.hpp"
#include "points/slot_index.hpp"
#include "points/slot_weights.hpp"
#include "points/weight.hpp"

namespace onlineforest {

// Layout: rows of float32, row-major, in one array; one value (class code or number) per point in another. Rows are
// given with NaN for missing values. They are stored with finite values instead: 0 until fill() sets a better one.
// `missing()` records the cells.
//
// A point has a weight: how often it counts. Equal samples are one point of their total weight, if the caller asks
// find() before it stores a sample.
template <class Value>
class PointStore {
 public:
  // A tree has up to two nodes per point, and node indices have the type of Slot.
  static constexpr std::size_t kMostPoints = std::numeric_limits<Slot>::max() / 2;

  explicit PointStore(std::size_t n_features) : n_features_(n_features) {}

  [[nodiscard]] std::size_t n_features() const { return n_features_; }
  [[nodiscard]] std::size_t size() const { return values_.size(); }

  [[nodiscard]] const float* row(Slot slot) const {
    return rows_.data() + static_cast<std::size_t>(slot) * n_features_;
  }
  [[nodiscard]] BoxView box(Slot slot) const { return {row(slot), row(slot)}; }
  [[nodiscard]] Value value(Slot slot) const { return values_[static_cast<std::size_t>(slot)]; }

  [[nodiscard]] Weight weight(Slot slot) const { return weights_[slot]; }
  [[nodiscard]] double multiplicity(Slot slot) const { return onlineforest::multiplicity(weight(slot)); }
  // Whether all points count once, as far as it is known without a look at each.
  [[nodiscard]] bool are_unweighted() const { return weights_.empty(); }

  // Whether a point counts, or counted, less than once.
  [[nodiscard]] bool has_light() const { return has_light_; }

  // The hash of a sample as it is given, in this process: equal samples have equal hashes. Files do not know the salt,
  // so they cannot make many samples meet in the index.
  [[nodiscard]] static std::uint64_t hash_of(std::span<const float> row, Value value) {
    static const std::uint64_t salt = (std::uint64_t{std::random_device()()} << 32) ^ std::random_device()();
    return content_hash(row, value, salt);
  }
  // The same in every process for the same salt.
  [[nodiscard]] static std::uint64_t content_hash(std::span<const float> row, Value value, std::uint64_t salt) {
    std::uint64_t sum = 0, place = salt;
    const auto add = [&](std::uint64_t bits) { sum += scramble(bits ^ scramble(place += kGolden)); };
    for (const float x : row) add(std::isnan(x) ? kMissingBits : std::bit_cast<std::uint32_t>(x + 0.0f));  // -0 is 0
    if constexpr (kIsNumber) {
      add(std::bit_cast<std::uint64_t>(value + 0.0));
    } else {
      add(static_cast<std::uint64_t>(value));
    }
    return scramble(sum);
  }
  [[nodiscard]] std::uint64_t hash(Slot slot) const { return index_.hash(slot); }

  // The slot of a sample as it is given; kNoSlot if it is not stored.
  [[nodiscard]] Slot find(std::span<const float> row, Value value, std::uint64_t hash) const {
    return index_.find(hash, [&](Slot slot) { return this->value(slot) == value && is_given(slot, row); });
  }

  // The trend at the point of a number; 0 until set_expected() sets it.
  [[nodiscard]] double expected(Slot slot) const { return expected_[static_cast<std::size_t>(slot)]; }

  // Sets the expected numbers of the points from `first` on to at(row). Allocates no memory.
  template <class At>
  void set_expected(std::size_t first, At at) {
    for (std::size_t i = first; i < size(); ++i) expected_[i] = at(row(static_cast<Slot>(i)));
  }

  bool is_missing(Slot slot, std::size_t feature) const {
    return missing_.contains(static_cast<std::size_t>(slot), feature);
  }
  const MissingCells& missing() const { return missing_; }

  // Fills in a missing value.
  void fill(Slot slot, std::size_t feature, float value) {
    rows_[static_cast<std::size_t>(slot) * n_features_ + feature] = value;
  }

  // Copies a row as it was given: NaN where a value is missing. Does not read filled-in values, because another thread
  // may be setting them.
  void copy_given(Slot slot, std::span<float> row) const {
    const float* const kept = this->row(slot);
    for (std::size_t d = 0; d < n_features_; ++d) {
      row[d] = is_missing(slot, d) ? std::numeric_limits<float>::quiet_NaN() : kept[d];
    }
  }

  // Exchanges all rows for others, which may differ only in filled-in values.
  void swap_rows(std::vector<float>& others) { rows_.swap(others); }

  // Replaces the last rows by others, which may differ only in filled-in values.
  void set_last_rows(std::span<const float> rows) {
    std::ranges::copy(rows, rows_.end() - static_cast<std::ptrdiff_t>(rows.size()));
  }

  // Marks cells as missing, in a store without missing cells. The arguments must be sound (MissingCells::are_sound).
  void set_missing(std::span<const std::int32_t> features, std::span<const MissingCells::Word> words) {
    missing_.restore(features, words, size(), n_features_);
    if (!missing_.any()) return;
    SlotIndex index;
    index.reserve(size());
    std::vector<float> given(n_features_);
    for (std::size_t i = 0; i < size(); ++i) {
      copy_given(static_cast<Slot>(i), given);
      index.push(hash_of(given, values_[i]));
    }
    index_ = std::move(index);
  }

  // Makes room for weights other than one, so that set_weight() and append() with such weights cannot fail.
  void reserve_weights(std::size_t n_more) { weights_.reserve(size(), n_more); }
  // Sets the weight of a point. Needs reserve_weights() before, if it is not one.
  void set_weight(Slot slot, Weight weight) {
    weights_.set(slot, weight);
    has_light_ = has_light_ || weight < kOne;
  }
  [[nodiscard]] std::vector<Weight> weights() const { return weights_.save(); }  // none if each is one

  std::span<const float> rows() const { return rows_; }
  std::span<const Value> values() const { return values_; }

  std::size_t nbytes() const {
    return rows_.capacity() * sizeof(float) + values_.capacity() * sizeof(Value) +
           expected_.capacity() * sizeof(double) + missing_.nbytes() + weights_.nbytes() + index_.nbytes();
  }

  // Allocates memory for `n_more` further points, and for the missing cells of these rows. If this throws, nothing has
  // changed.
  void reserve(std::span<const float> rows, std::size_t n_more) {
    if (n_more > kMostPoints - size()) {
      throw std::length_error("a forest holds " + std::to_string(size()) + " points and cannot store " +
                              std::to_string(n_more) + " more: the limit is " + std::to_string(kMostPoints));
    }
    values_.reserve(grown(values_.capacity(), size() + n_more));
    rows_.reserve(grown(rows_.capacity(), (size() + n_more) * n_features_));
    if constexpr (kIsNumber) expected_.reserve(values_.capacity());
    if (!weights_.empty()) weights_.reserve(size(), n_more);
    index_.reserve(values_.capacity());
    missing_.reserve(rows, n_features_);
  }

  // Stores points. Without weights, each counts once. If this throws, nothing has changed.
  void append(std::span<const float> rows, std::span<const Value> values, std::span<const Weight> weights = {}) {
    require(rows.size() == values.size() * n_features_, [&] {
      return "rows have " + std::to_string(rows.size()) + " entries, but " + std::to_string(values.size()) +
             " points of " + std::to_string(n_features_) + " features have " +
             std::to_string(values.size() * n_features_);
    });
    reserve(rows, values.size());
    if (!weights.empty()) reserve_weights(values.size());
    weights_.append(weights, values.size());
    has_light_ = has_light_ || std::ranges::any_of(weights, [](Weight weight) { return weight < kOne; });
    missing_.append(rows, n_features_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      index_.push(hash_of(rows.subspan(i * n_features_, n_features_), values[i]));
    }
    std::ranges::transform(rows, std::back_inserter(rows_), [](float x) { return std::isnan(x) ? 0.0f : x; });
    values_.insert(values_.end(), values.begin(), values.end());
    if constexpr (kIsNumber) expected_.resize(size(), 0.0);
  }

  // Removes points. Other points take their slots, as in `moves`.
  void remove(std::span<const Slot> slots, std::span<const Move> moves) {
    for (const Move& move : moves) {
      const auto from = static_cast<std::ptrdiff_t>(move.from), to = static_cast<std::ptrdiff_t>(move.to);
      const auto n = static_cast<std::ptrdiff_t>(n_features_);
      std::copy_n(rows_.begin() + from * n, n, rows_.begin() + to * n);
      values_[static_cast<std::size_t>(to)] = values_[static_cast<std::size_t>(from)];
      missing_.move(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
      if constexpr (kIsNumber) expected_[static_cast<std::size_t>(to)] = expected_[static_cast<std::size_t>(from)];
    }
    weights_.remove(slots, moves);
    index_.remove(slots, moves);
    overwrite(size() - slots.size());
  }

  // Keeps only the first `n_left` points. Overwrites the others in memory. Allocates no memory.
  void truncate(std::size_t n_left) {
    weights_.truncate(n_left);
    index_.truncate(n_left);
    overwrite(n_left);
  }

  // Releases memory if most of it is unused.
  void shrink() {
    if (size() >= values_.capacity() / 4) return;
    rows_.shrink_to_fit();
    values_.shrink_to_fit();
    expected_.shrink_to_fit();
    weights_.shrink();
    index_.shrink();
    missing_.shrink();
  }

 private:
  static constexpr bool kIsNumber = std::is_floating_point_v<Value>;
  static constexpr std::uint64_t kMissingBits = ~std::uint64_t{0};  // no float has so many

  static std::size_t grown(std::size_t capacity, std::size_t needed) {
    return needed <= capacity ? capacity : std::max(needed, capacity + capacity / 4);
  }

  [[nodiscard]] bool is_given(Slot slot, std::span<const float> row) const {
    const float* const kept = this->row(slot);
    if (!missing_.any()) return std::equal(row.begin(), row.end(), kept);
    for (std::size_t d = 0; d < n_features_; ++d) {
      if (is_missing(slot, d) ? !std::isnan(row[d]) : kept[d] != row[d]) return false;
    }
    return true;
  }

  // Keeps only the first `n_left` rows and values. Overwrites the others in memory.
  void overwrite(std::size_t n_left) {
    std::fill(rows_.begin() + static_cast<std::ptrdiff_t>(n_left * n_features_), rows_.end(), 0.0f);
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(n_left), values_.end(), Value());
    rows_.resize(n_left * n_features_);
    values_.resize(n_left);
    if constexpr (kIsNumber) expected_.resize(n_left);
    missing_.truncate(n_left);
  }

  std::size_t n_features_;
  std::vector<float> rows_;
  std::vector<Value> values_;
  std::vector<double> expected_;  // empty unless values are numbers
  SlotWeights weights_;
  bool has_light_ = false;
  SlotIndex index_;
  MissingCells missing_;
};

}  // namespace onlineforest
