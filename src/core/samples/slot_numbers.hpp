// A number for each slot. Takes memory only once a slot has another number than the usual one. Must not know what the
// slots hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "samples/moves.hpp"
#include "samples/weight.hpp"

namespace onlineforest {

template <class Number, Number kUsual>
class SlotNumbers {
 public:
  [[nodiscard]] Number operator[](Slot slot) const {
    return numbers_.empty() ? kUsual : numbers_[static_cast<std::size_t>(slot)];
  }

  // Stores the numbers of n slots explicitly, and makes room for n_more, so that set() and append() cannot fail.
  void reserve(std::size_t n, std::size_t n_more) {
    if (n + n_more > numbers_.capacity()) numbers_.reserve(std::max(n + n_more, n + n / 4));
    numbers_.resize(n, kUsual);
  }
  // Whether no numbers are stored: then all are the usual one. Stored numbers may be the usual one, too.
  [[nodiscard]] bool empty() const { return numbers_.empty(); }

  // Sets the number of a slot. Call reserve() first if it is not the usual number.
  void set(Slot slot, Number number) {
    if (!numbers_.empty()) numbers_[static_cast<std::size_t>(slot)] = number;
  }

  // Removes the numbers of the slots `leaving`, and renumbers the other slots by `moves`.
  void remove(std::span<const Slot> leaving, std::span<const Move> moves) {
    if (numbers_.empty()) return;
    for (const Move& move : moves) {
      numbers_[static_cast<std::size_t>(move.to)] = numbers_[static_cast<std::size_t>(move.from)];
    }
    numbers_.resize(numbers_.size() - leaving.size());
  }
  // Adds n slots, by default with the usual number. Call reserve() first if `numbers` is not empty.
  void append(std::span<const Number> numbers, std::size_t n) {
    if (!numbers.empty()) {
      numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    } else if (!numbers_.empty()) {
      numbers_.resize(numbers_.size() + n, kUsual);
    }
  }

  void shrink() { numbers_.shrink_to_fit(); }

  [[nodiscard]] std::size_t nbytes() const { return numbers_.capacity() * sizeof(Number); }

 private:
  std::vector<Number> numbers_;  // empty while all slots have the usual number
};

using SlotWeights = SlotNumbers<Weight, kOne>;    // weights of arrivals
using SlotCounts = SlotNumbers<std::int32_t, 1>;  // number of arrivals of each point

}  // namespace onlineforest
