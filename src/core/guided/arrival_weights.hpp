// The weight of each arrival, which takes memory only if some do not count once. Must not know samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "guided/weight.hpp"
#include "points/tenure.hpp"

namespace onlineforest::guided {

class ArrivalWeights {
 public:
  [[nodiscard]] Weight operator[](Slot arrival) const {
    return weights_.empty() ? kOne : weights_[static_cast<std::size_t>(arrival)];
  }

  // Of n arrivals in all, of which some do not count once: makes room for more, so that what follows cannot fail.
  void reserve(std::size_t n, std::size_t n_more) {
    if (n + n_more > weights_.capacity()) weights_.reserve(std::max(n + n_more, n + n / 4));
    weights_.resize(n, kOne);
  }
  // Whether all count once, as far as it is known without a look at each.
  [[nodiscard]] bool empty() const { return weights_.empty(); }

  // Follows arrivals that leave.
  void remove(std::span<const Slot> leaving, std::span<const Move> moves) {
    if (weights_.empty()) return;
    for (const Move& move : moves) {
      weights_[static_cast<std::size_t>(move.to)] = weights_[static_cast<std::size_t>(move.from)];
    }
    weights_.resize(weights_.size() - leaving.size());
  }
  // Adds n arrivals. Without weights, each counts once.
  void append(std::span<const Weight> weights, std::size_t n) {
    if (!weights.empty()) {
      weights_.insert(weights_.end(), weights.begin(), weights.end());
    } else if (!weights_.empty()) {
      weights_.resize(weights_.size() + n, kOne);
    }
  }

  // Of n arrivals; none if each counts once.
  [[nodiscard]] std::vector<Weight> save() const {
    const bool are_one = std::ranges::all_of(weights_, [](Weight weight) { return weight == kOne; });
    return are_one ? std::vector<Weight>() : weights_;
  }
  [[nodiscard]] std::size_t nbytes() const { return weights_.capacity() * sizeof(Weight); }

 private:
  std::vector<Weight> weights_;  // none while each counts once
};

}  // namespace onlineforest::guided
