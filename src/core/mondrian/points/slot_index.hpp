// Finds slots by the hashes of their contents. Must not know the contents.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "samples/moves.hpp"

namespace onlineforest::mondrian {

// A hash table with open addressing: a slot is in the first free place from that of its hash on. At least half of the
// places are free.
class SlotIndex {
 public:
  [[nodiscard]] std::size_t size() const { return hashes_.size(); }
  [[nodiscard]] std::uint64_t hash(Slot slot) const { return hashes_[static_cast<std::size_t>(slot)]; }

  // Allocates memory for `n` slots in all. push() cannot fail while there are fewer than `n`.
  void reserve(std::size_t n) {
    hashes_.reserve(n);
    if (2 * n > places_.size()) rebuild(std::bit_ceil(2 * n));
  }

  // Adds the slot size().
  void push(std::uint64_t hash) {
    const Slot slot = static_cast<Slot>(size());
    if (2 * (size() + 1) > places_.size()) rebuild(std::bit_ceil(2 * (size() + 1)));
    hashes_.push_back(hash);
    place_in(places_, slot);
  }

  // The first slot of this hash for which is_it(slot) holds; kNoSlot if there is none.
  template <class IsIt>
  [[nodiscard]] Slot find(std::uint64_t hash, IsIt is_it) const {
    if (places_.empty()) return kNoSlot;
    for (std::size_t i = hash & (places_.size() - 1); places_[i] != kNoSlot; i = next(i)) {
      if (this->hash(places_[i]) == hash && is_it(places_[i])) return places_[i];
    }
    return kNoSlot;
  }

  // Removes slots. Then renumbers the remaining slots by `moves`.
  void remove(std::span<const Slot> slots, std::span<const Move> moves) {
    for (const Slot slot : slots) take_out(place_of(slot));
    for (const Move& move : moves) {
      places_[place_of(move.from)] = move.to;
      hashes_[static_cast<std::size_t>(move.to)] = hash(move.from);
    }
    hashes_.resize(size() - slots.size());
  }

  // Releases memory if most of it is unused.
  void shrink() {
    hashes_.shrink_to_fit();
    try {
      rebuild(size() == 0 ? 0 : std::bit_ceil(2 * size()));
    } catch (const std::bad_alloc&) {  // the larger table stays
    }
  }

  [[nodiscard]] std::size_t nbytes() const {
    return hashes_.capacity() * sizeof(hashes_[0]) + places_.capacity() * sizeof(places_[0]);
  }

 private:
  [[nodiscard]] std::size_t next(std::size_t place) const { return (place + 1) & (places_.size() - 1); }

  void place_in(std::vector<Slot>& places, Slot slot) const {
    std::size_t i = hash(slot) & (places.size() - 1);
    while (places[i] != kNoSlot) i = (i + 1) & (places.size() - 1);
    places[i] = slot;
  }

  [[nodiscard]] std::size_t place_of(Slot slot) const {
    std::size_t i = hash(slot) & (places_.size() - 1);
    while (places_[i] != slot) i = next(i);
    return i;
  }

  // If memory runs out, nothing has changed.
  void rebuild(std::size_t n_places) {
    std::vector<Slot> places(n_places, kNoSlot);
    for (std::size_t i = 0; i < size(); ++i) place_in(places, static_cast<Slot>(i));
    places_.swap(places);
  }

  // Frees a place. Slots behind it that could not be in their own places move up.
  void take_out(std::size_t free) {
    const std::size_t mask = places_.size() - 1;
    for (std::size_t i = next(free); places_[i] != kNoSlot; i = next(i)) {
      const std::size_t home = hash(places_[i]) & mask;
      if (((i - home) & mask) < ((i - free) & mask)) continue;
      places_[free] = places_[i];
      free = i;
    }
    places_[free] = kNoSlot;
  }

  std::vector<std::uint64_t> hashes_;  // per slot
  std::vector<Slot> places_;           // kNoSlot if free; their number is a power of two, or 0
};

}  // namespace onlineforest::mondrian
