// Records the state of samples before a change of the set. Must not know forests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "orderfree/tree/tree.hpp"

namespace onlineforest::orderfree {

class Notes {
 public:
  void reserve(std::size_t n) { noted_.reserve(n); }

  // Allocates no memory if reserve() made room.
  void add(const Change& change) { noted_.push_back({change, noted_.size()}); }

  // Appends the first note on each sample, which holds its state before the change, in the order of slots. Allocates no
  // memory if `changes` has room for all notes.
  void combine(std::vector<Change>& changes) {
    std::ranges::sort(noted_, [](const Noted& a, const Noted& b) {
      return a.change.slot != b.change.slot ? a.change.slot < b.change.slot : a.position < b.position;
    });
    for (const Noted& one : noted_) {
      if (changes.empty() || changes.back().slot != one.change.slot) changes.push_back(one.change);
    }
  }

 private:
  struct Noted {
    Change change;
    std::size_t position;
  };

  std::vector<Noted> noted_;
};

}  // namespace onlineforest::orderfree
