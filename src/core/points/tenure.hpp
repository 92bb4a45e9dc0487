// Which points a forest keeps: when each of them came, and which go when there are more than it may hold. Knows
// nothing of what the points are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "points/point_store.hpp"
#include "points/slot_heap.hpp"

namespace onlineforest {

enum class KeepRule {
  kAll,
  kLatest,  // a window
  kSample,  // drawn without replacement, a point that came half_life earlier half as likely
};

inline bool is_known(KeepRule rule) { return rule >= KeepRule::kAll && rule <= KeepRule::kSample; }

struct KeepOptions {
  KeepRule rule = KeepRule::kAll;
  std::size_t capacity = 0;      // how many are kept at most, unless all are
  double half_life = kInfinity;  // in points that come; for kSample
};

// Every point has a key that says how much it is to stay: for a window when it came, for a sample a random number that
// grows with time, so that the largest keys are a sample without replacement (the Gumbel trick). When there are too
// many, the least keys go. What has a smaller key than one that went is not taken in, even if there is room because
// points were forgotten: so a sample stays fair, if points are forgotten whether they were kept or not.
class Tenure {
 public:
  Tenure(const KeepOptions& options, std::uint64_t seed) : options_(options), seed_(seed ^ kSeedOfSample) {}

  // Which of the next points are kept, and which go for them. Decided without a look at the points or trees.
  struct Admission {
    std::vector<std::size_t> taken;  // of the next points, in order
    std::vector<Slot> leaving;       // in no order
    double turned_away;
  };

  std::size_t n_seen() const { return static_cast<std::size_t>(n_seen_); }
  std::span<const Serial> serials() const { return serials_; }  // per slot
  double turned_away() const { return turned_away_; }           // the largest key that went
  bool is_limited() const { return options_.rule != KeepRule::kAll; }

  // How many points can come before one has to go; more than there will ever be if none has.
  std::size_t room() const {
    return is_limited() ? options_.capacity - std::min(options_.capacity, serials_.size()) : ~std::size_t{0};
  }

  Admission admit(std::size_t n) const {
    if (n > kMostSeen - static_cast<std::uint64_t>(n_seen_)) {
      throw std::length_error("a forest can be given at most 2^53 points");
    }
    Admission admission{{}, {}, turned_away_};
    if (!is_limited()) {
      admission.taken.resize(n);
      std::iota(admission.taken.begin(), admission.taken.end(), std::size_t{0});
      return admission;
    }
    std::vector<std::pair<double, std::size_t>> fresh;  // key, place
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

  // After this, take_in() of one more call cannot run out of memory.
  void reserve(std::size_t n_more) {
    const std::size_t n = serials_.size() + n_more;
    if (n <= serials_.capacity()) return;
    const std::size_t capacity = std::max(n, serials_.capacity() + serials_.capacity() / 4);
    if (is_limited()) heap_.reserve(capacity);
    serials_.reserve(capacity);
  }

  // Takes the points in, in the slots after those there are. `n` came, those of the admission stay.
  void take_in(std::size_t n, const Admission& admission) {
    for (const std::size_t place : admission.taken) add(n_seen_ + static_cast<Serial>(place));
    n_seen_ += static_cast<Serial>(n);
    turned_away_ = admission.turned_away;
  }

  void remove(std::span<const Slot> slots, std::span<const Move> moves) {
    if (is_limited()) heap_.remove(slots, moves);
    for (const Move& move : moves) {
      serials_[static_cast<std::size_t>(move.to)] = serials_[static_cast<std::size_t>(move.from)];
    }
    serials_.resize(serials_.size() - slots.size());
  }

  // Gives memory back, if much of it is not used.
  void shrink() {
    if (serials_.size() >= serials_.capacity() / 4) return;
    serials_.shrink_to_fit();
    heap_.shrink();
  }

  // What comes next is taken in as if nothing had come before.
  void start_anew() { turned_away_ = -kInfinity; }

  // The slots of the points that came then, kNoSlot for those that are not there.
  std::vector<Slot> slots_of(std::span<const Serial> serials) const {
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

  // The slots of all but the latest `n` points.
  std::vector<Slot> all_but_latest(std::size_t n) const {
    std::vector<Slot> slots(serials_.size());
    std::iota(slots.begin(), slots.end(), Slot{0});
    if (n >= slots.size()) return {};
    const auto end = slots.end() - static_cast<std::ptrdiff_t>(n);
    std::ranges::nth_element(slots, end, {}, [this](Slot slot) { return serials_[static_cast<std::size_t>(slot)]; });
    slots.erase(end, slots.end());
    return slots;
  }

  // Takes up what was saved. Throws std::invalid_argument if it makes no sense.
  void restore(std::span<const Serial> serials, std::uint64_t n_seen, double turned_away) {
    if (n_seen > kMostSeen) throw std::invalid_argument("more points were seen than there can be");
    if (is_limited() && serials.size() > options_.capacity) {
      throw std::invalid_argument("there are more points than it may hold");
    }
    if (!is_limited() && turned_away != -kInfinity)
      throw std::invalid_argument("one was turned away from an open door");
    if (!(turned_away <= largest_key(n_seen))) throw std::invalid_argument("one was turned away that cannot have come");
    std::vector<Serial> sorted(serials.begin(), serials.end());
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) throw std::invalid_argument("two points came at once");
    if (!sorted.empty() && (sorted.front() < 0 || static_cast<std::uint64_t>(sorted.back()) >= n_seen)) {
      throw std::invalid_argument("a point came when none did");
    }
    for (const Serial serial : serials) {
      if (is_limited() && !(key_of(serial) > turned_away)) {
        throw std::invalid_argument("one was turned away that was to stay more than one that is here");
      }
      add(serial);
    }
    n_seen_ = static_cast<Serial>(n_seen);
    turned_away_ = turned_away;
  }

  std::size_t nbytes() const { return serials_.capacity() * sizeof(Serial) + heap_.nbytes(); }

 private:
  static constexpr std::uint64_t kMostSeen = std::uint64_t{1} << 53;  // beyond, keys could not tell them apart
  static constexpr std::uint64_t kSeedOfSample = 0x7361'6d70'6c65'0000u;
  static constexpr double kLeastChance = 0x1.0p-60;  // an exponential can be 0

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
    return time * (log_2 / options_.half_life) - std::log(std::max(chance, kLeastChance));
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
  SlotHeap heap_;  // empty unless limited
};

}  // namespace onlineforest
