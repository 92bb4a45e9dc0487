// Tenure: which points a forest keeps, and the serial of each. Must not know rows, values or trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/elementary.hpp"
#include "base/require.hpp"
#include "base/rng.hpp"
#include "base/types.hpp"
#include "samples/moves.hpp"
#include "samples/slot_heap.hpp"

namespace onlineforest {

enum class KeepRule {
  kAll,
  kLatest,  // a window of the latest points
  kSample,  // a reservoir: a sample without replacement in which weights halve every half_life points
};

[[nodiscard]] inline bool is_known(KeepRule rule) { return rule >= KeepRule::kAll && rule <= KeepRule::kSample; }

struct KeepOptions {
  KeepRule rule = KeepRule::kAll;
  std::size_t capacity = 0;      // largest number of points kept; not for kAll
  double half_life = kInfinity;  // in points seen; for kSample
};

// Every point has a key. In a window it is the serial; in a reservoir it is a random number whose mean grows with the
// serial, so that the points of the largest keys are a weighted sample without replacement (the Gumbel trick). When the
// capacity is exceeded, the points of the least keys leave. `turned_away` is the largest key that has left or was not
// admitted. A new point of a smaller key is not admitted, even if forgetting has made room: so the sample stays fair if
// points are forgotten regardless of whether they were kept.
class Tenure {
 public:
  Tenure(const KeepOptions& options, std::uint64_t seed) : options_(options), seed_(seed ^ kSeedOfSample) {}

  static constexpr std::uint64_t kMostSeen = std::uint64_t{1}
                                             << 53;  // a double represents every smaller serial exactly

  // A decision about the next points. It depends on serials only, not on the points or trees.
  struct Admission {
    std::vector<std::size_t> taken;  // indices of the admitted points among the next, in order
    std::vector<Slot> leaving;       // slots of the points that leave for them, in any order
    double turned_away;
  };

  [[nodiscard]] std::size_t n_seen() const { return static_cast<std::size_t>(n_seen_); }
  [[nodiscard]] std::span<const Serial> serials() const { return serials_; }  // per slot
  [[nodiscard]] double turned_away() const { return turned_away_; }
  [[nodiscard]] bool is_limited() const { return options_.rule != KeepRule::kAll; }

  // Number of points that can be admitted before one must leave; the largest size_t without a limit.
  [[nodiscard]] std::size_t room() const {
    return is_limited() ? options_.capacity - std::min(options_.capacity, serials_.size()) : ~std::size_t{0};
  }

  // Decides about the next `n` points.
  [[nodiscard]] Admission admit(std::size_t n) const {
    if (n > kMostSeen - static_cast<std::uint64_t>(n_seen_)) {
      throw std::length_error("a forest has seen " + std::to_string(n_seen_) + " points and cannot see " +
                              std::to_string(n) + " more: the limit is 2^53");
    }
    Admission admission{{}, {}, turned_away_};
    if (!is_limited()) {
      admission.taken.resize(n);
      std::iota(admission.taken.begin(), admission.taken.end(), std::size_t{0});
      return admission;
    }
    std::vector<std::pair<double, std::size_t>> fresh;  // key, index
    for (std::size_t i = 0; i < n; ++i) {
      const double key = key_of(n_seen_ + static_cast<Serial>(i));
      if (key > turned_away_) fresh.emplace_back(key, i);
    }
    std::ranges::sort(fresh);
    std::size_t n_too_many = serials_.size() + fresh.size();
    n_too_many -= std::min(n_too_many, options_.capacity);
    std::size_t n_fresh_too_many = 0;
    const auto turn_away = [&](double key) { admission.turned_away = std::max(admission.turned_away, key); };
    if (n_too_many > 0) {
      heap_.for_each_in_order([&](Slot slot, double key) {
        for (; n_too_many > 0 && n_fresh_too_many < fresh.size() && fresh[n_fresh_too_many].first < key; --n_too_many) {
          turn_away(fresh[n_fresh_too_many++].first);
        }
        if (n_too_many == 0) return false;
        turn_away(key);
        admission.leaving.push_back(slot);
        return --n_too_many > 0;
      });
      for (; n_too_many > 0; --n_too_many) turn_away(fresh[n_fresh_too_many++].first);
    }
    for (const auto& [key, place] : std::span(fresh).subspan(n_fresh_too_many)) admission.taken.push_back(place);
    std::ranges::sort(admission.taken);
    return admission;
  }

  // Allocates memory for `n_more` points, so that the next take_in() of at most `n_more` cannot fail.
  void reserve(std::size_t n_more) {
    const std::size_t n = serials_.size() + n_more;
    if (n <= serials_.capacity()) return;
    const std::size_t capacity = std::max(n, serials_.capacity() + serials_.capacity() / 4);
    if (is_limited()) heap_.reserve(capacity);
    serials_.reserve(capacity);
  }

  // Adds the admitted ones of the next `n` points, in the slots after the last one.
  void take_in(std::size_t n, const Admission& admission) {
    for (const std::size_t place : admission.taken) add(n_seen_ + static_cast<Serial>(place));
    n_seen_ += static_cast<Serial>(n);
    turned_away_ = admission.turned_away;
  }

  // Removes points, and renumbers the slots of the other points by `moves`.
  void remove(std::span<const Slot> slots, std::span<const Move> moves) {
    if (is_limited()) heap_.remove(slots, moves);
    for (const Move& move : moves) {
      serials_[static_cast<std::size_t>(move.to)] = serials_[static_cast<std::size_t>(move.from)];
    }
    serials_.resize(serials_.size() - slots.size());
  }

  // Releases memory if most of it is unused.
  void shrink() {
    if (serials_.size() >= serials_.capacity() / 4) return;
    serials_.shrink_to_fit();
    heap_.shrink();
  }

  // Admits the next points as if none had been turned away before.
  void reset_turned_away() { turned_away_ = -kInfinity; }

  // The slots of the points of these serials; kNoSlot for points that are not stored.
  [[nodiscard]] std::vector<Slot> slots_of(std::span<const Serial> serials) const {
    std::vector<std::size_t> order(serials.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return serials[i]; });
    std::vector<Slot> slots(serials.size(), kNoSlot);
    if (serials.empty()) return slots;
    const Serial least = serials[order.front()], largest = serials[order.back()];
    for (std::size_t slot = 0; slot < serials_.size(); ++slot) {
      if (serials_[slot] < least || serials_[slot] > largest) continue;
      auto found = std::ranges::lower_bound(order, serials_[slot], {}, [&](std::size_t i) { return serials[i]; });
      for (; found != order.end() && serials[*found] == serials_[slot]; ++found) {
        slots[*found] = static_cast<Slot>(slot);
      }
    }
    return slots;
  }

  // The slots of all points but the latest `n`.
  [[nodiscard]] std::vector<Slot> all_but_latest(std::size_t n) const {
    std::vector<Slot> slots(serials_.size());
    std::iota(slots.begin(), slots.end(), Slot{0});
    if (n >= slots.size()) return {};
    const auto end = slots.end() - static_cast<std::ptrdiff_t>(n);
    std::ranges::nth_element(slots, end, {}, [this](Slot slot) { return serials_[static_cast<std::size_t>(slot)]; });
    slots.erase(end, slots.end());
    return slots;
  }

  // Restores a saved state. Throws std::invalid_argument if the state is not consistent.
  void restore(std::span<const Serial> serials, std::uint64_t n_seen, double turned_away) {
    require(n_seen <= kMostSeen, [&] { return "n_seen is " + std::to_string(n_seen) + ", the limit is 2^53"; });
    require(!is_limited() || serials.size() <= options_.capacity, [&] {
      return "there are " + std::to_string(serials.size()) + " points, the capacity is " +
             std::to_string(options_.capacity);
    });
    require(is_limited() || turned_away == -kInfinity, [&] {
      return "`turned_away` is " + std::to_string(turned_away) + ", but a forest that keeps all points has -inf";
    });
    require(turned_away <= largest_key(n_seen), [&] {
      return "`turned_away` is " + std::to_string(turned_away) + ", but after " + std::to_string(n_seen) +
             " points it is at most " + std::to_string(largest_key(n_seen));
    });
    std::vector<Serial> sorted(serials.begin(), serials.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    require(twice == sorted.end(), [&] { return "two points have the serial " + std::to_string(*twice); });
    for (const Serial serial : sorted) {
      require(serial >= 0 && static_cast<std::uint64_t>(serial) < n_seen, [&] {
        return "serial " + std::to_string(serial) + " is outside [0, n_seen = " + std::to_string(n_seen) + ")";
      });
    }
    for (const Serial serial : serials) {
      require(!is_limited() || key_of(serial) > turned_away, [&] {
        return "the point of serial " + std::to_string(serial) + " has the key " + std::to_string(key_of(serial)) +
               ", which is not above `turned_away` = " + std::to_string(turned_away);
      });
      add(serial);
    }
    n_seen_ = static_cast<Serial>(n_seen);
    turned_away_ = turned_away;
  }

  std::size_t nbytes() const { return serials_.capacity() * sizeof(Serial) + heap_.nbytes(); }

 private:
  static constexpr std::uint64_t kSeedOfSample = 0x7361'6d70'6c65'0000u;
  static constexpr double kLeastChance = 0x1.0p-60;  // an exponential draw can be 0

  void add(Serial serial) {
    if (is_limited()) heap_.push(key_of(serial));
    serials_.push_back(serial);
  }

  double key_of(Serial serial) const {
    const double time = static_cast<double>(serial);
    if (options_.rule == KeepRule::kLatest) return time;
    return key_of(time, Rng(seed_, static_cast<std::uint64_t>(serial)).exponential());
  }

  double key_of(double time, double chance) const {
    constexpr double log_2 = 0.693147180559945309;
    return time * (log_2 / options_.half_life) - natural_log(std::max(chance, kLeastChance));
  }

  double largest_key(std::uint64_t n_seen) const {
    const double time = static_cast<double>(n_seen);
    return options_.rule == KeepRule::kSample ? key_of(time, 0.0) : time - 1.0;
  }

  KeepOptions options_;
  std::uint64_t seed_;
  Serial n_seen_ = 0;
  double turned_away_ = -kInfinity;
  std::vector<Serial> serials_;
  SlotHeap heap_;  // by key; empty without a limit
};

}  // namespace onlineforest
