// A priority queue of slots, the least key first. Must not know what the keys mean.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "samples/moves.hpp"

namespace onlineforest {

// A binary heap from which any slot can be removed.
class SlotHeap {
 public:
  [[nodiscard]] std::size_t size() const { return heap_.size(); }

  void reserve(std::size_t n) {
    heap_.reserve(n);
    places_.reserve(n);
    keys_.reserve(n);
  }

  // Adds the slot size().
  void push(double key) {
    keys_.push_back(key);
    places_.push_back(heap_.size());
    heap_.push_back(static_cast<Slot>(heap_.size()));
    rise(heap_.size() - 1);
  }

  // Removes slots. Then renumbers the remaining slots by `moves`.
  void remove(std::span<const Slot> slots, std::span<const Move> moves) {
    for (const Slot slot : slots) take_out(slot);
    for (const Move& move : moves) {
      const std::size_t from = static_cast<std::size_t>(move.from), to = static_cast<std::size_t>(move.to);
      keys_[to] = keys_[from];
      places_[to] = places_[from];
      heap_[places_[to]] = move.to;
    }
    keys_.resize(heap_.size());
    places_.resize(heap_.size());
  }

  void shrink() {
    heap_.shrink_to_fit();
    places_.shrink_to_fit();
    keys_.shrink_to_fit();
  }

  // Calls f(slot, key) in increasing order of keys until it returns false.
  template <class F>
  void for_each_in_order(F f) const {
    std::vector<std::size_t> next;  // a heap of places whose parents were visited
    const auto is_later = [this](std::size_t a, std::size_t b) { return key(b) < key(a); };
    if (!heap_.empty()) next.push_back(0);
    while (!next.empty()) {
      std::ranges::pop_heap(next, is_later);
      const std::size_t place = next.back();
      next.pop_back();
      if (!f(heap_[place], key(place))) return;
      for (std::size_t child = 2 * place + 1; child <= 2 * place + 2 && child < heap_.size(); ++child) {
        next.push_back(child);
        std::ranges::push_heap(next, is_later);
      }
    }
  }

  std::size_t nbytes() const {
    return heap_.capacity() * sizeof(Slot) + places_.capacity() * sizeof(std::size_t) +
           keys_.capacity() * sizeof(double);
  }

 private:
  double key(std::size_t place) const { return keys_[static_cast<std::size_t>(heap_[place])]; }

  void put(std::size_t place, Slot slot) {
    heap_[place] = slot;
    places_[static_cast<std::size_t>(slot)] = place;
  }

  void swap_places(std::size_t a, std::size_t b) {
    const Slot at_a = heap_[a];
    put(a, heap_[b]);
    put(b, at_a);
  }

  void rise(std::size_t place) {
    for (; place > 0 && key(place) < key((place - 1) / 2); place = (place - 1) / 2) swap_places(place, (place - 1) / 2);
  }

  void sink(std::size_t place) {
    for (;;) {
      std::size_t least = place;
      for (std::size_t child = 2 * place + 1; child <= 2 * place + 2 && child < heap_.size(); ++child) {
        if (key(child) < key(least)) least = child;
      }
      if (least == place) return;
      swap_places(place, least);
      place = least;
    }
  }

  void take_out(Slot slot) {
    const std::size_t place = places_[static_cast<std::size_t>(slot)];
    const Slot last = heap_.back();
    heap_.pop_back();
    if (last == slot) return;
    put(place, last);
    rise(place);
    sink(place);
  }

  std::vector<Slot> heap_;
  std::vector<std::size_t> places_;  // per slot: its index in heap_
  std::vector<double> keys_;         // per slot
};

}  // namespace onlineforest
