// A number for each slot of a list, which takes memory only if some are not the usual one. Must not know what is in the
// slots.
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

  // Of n slots in all, of which some have not the usual number: makes room for more, so that what follows cannot fail.
  void reserve(std::size_t n, std::size_t n_more) {
    if (n + n_more > numbers_.capacity()) numbers_.reserve(std::max(n + n_more, n + n / 4));
    numbers_.resize(n, kUsual);
  }
  // Whether all are usual, as far as it is known without a look at each.
  [[nodiscard]] bool empty() const { return numbers_.empty(); }

  // Sets the number of a slot. Needs reserve() before, if it is not the usual one.
  void set(Slot slot, Number number) {
    if (!numbers_.empty()) numbers_[static_cast<std::size_t>(slot)] = number;
  }

  // Follows slots that leave.
  void remove(std::span<const Slot> leaving, std::span<const Move> moves) {
    if (numbers_.empty()) return;
    for (const Move& move : moves) {
      numbers_[static_cast<std::size_t>(move.to)] = numbers_[static_cast<std::size_t>(move.from)];
    }
    numbers_.resize(numbers_.size() - leaving.size());
  }
  // Adds n slots, by default with the usual number. Needs reserve() before, if there are others.
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
  std::vector<Number> numbers_;  // none while all are usual
};

using SlotWeights = SlotNumbers<Weight, kOne>;    // how often samples count, in parts of one
using SlotCounts = SlotNumbers<std::int32_t, 1>;  // how often points have arrived

}  // namespace onlineforest
