// The weight of each slot of a list, which takes memory only if some do not count once. Must not know what is in the
// slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "points/moves.hpp"
#include "points/weight.hpp"

namespace onlineforest {

// A change of the weight of a slot.
struct Reweighed {
  Slot slot;
  Weight by;
};

class SlotWeights {
 public:
  [[nodiscard]] Weight operator[](Slot slot) const {
    return weights_.empty() ? kOne : weights_[static_cast<std::size_t>(slot)];
  }

  // Of n slots in all, of which some do not count once: makes room for more, so that what follows cannot fail.
  void reserve(std::size_t n, std::size_t n_more) {
    if (n + n_more > weights_.capacity()) weights_.reserve(std::max(n + n_more, n + n / 4));
    weights_.resize(n, kOne);
  }
  // Whether all count once, as far as it is known without a look at each.
  [[nodiscard]] bool empty() const { return weights_.empty(); }

  // Sets the weight of a slot. Needs reserve() before, if it is not one.
  void set(Slot slot, Weight weight) {
    if (!weights_.empty()) weights_[static_cast<std::size_t>(slot)] = weight;
  }

  // Follows slots that leave.
  void remove(std::span<const Slot> leaving, std::span<const Move> moves) {
    if (weights_.empty()) return;
    for (const Move& move : moves) {
      weights_[static_cast<std::size_t>(move.to)] = weights_[static_cast<std::size_t>(move.from)];
    }
    weights_.resize(weights_.size() - leaving.size());
  }
  // Keeps only the first n slots.
  void truncate(std::size_t n) {
    if (!weights_.empty()) weights_.resize(n);
  }
  // Adds n slots. Without weights, each counts once. Needs reserve() before, if there are weights.
  void append(std::span<const Weight> weights, std::size_t n) {
    if (!weights.empty()) {
      weights_.insert(weights_.end(), weights.begin(), weights.end());
    } else if (!weights_.empty()) {
      weights_.resize(weights_.size() + n, kOne);
    }
  }

  void shrink() { weights_.shrink_to_fit(); }

  // None if each counts once.
  [[nodiscard]] std::vector<Weight> save() const {
    const bool are_one = std::ranges::all_of(weights_, [](Weight weight) { return weight == kOne; });
    return are_one ? std::vector<Weight>() : weights_;
  }
  [[nodiscard]] std::size_t nbytes() const { return weights_.capacity() * sizeof(Weight); }

 private:
  std::vector<Weight> weights_;  // none while each counts once
};

}  // namespace onlineforest
