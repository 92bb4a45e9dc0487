// Notes on samples that a change of the set concerns: how each was before. Must not know forests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "orderfree/tree/tree.hpp"

namespace onlineforest::orderfree {

class Notes {
 public:
  void reserve(std::size_t n) { noted_.reserve(n); }

  // Takes no memory if there is room.
  void add(const Change& change) { noted_.push_back({change, noted_.size()}); }

  // Appends the first note on each sample, which says how the sample was before, in the order of slots. Takes no memory
  // if `changes` has room for all notes.
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
