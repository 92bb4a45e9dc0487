// The weight of each label of a block. Must not know trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "guided/sample_store.hpp"

namespace onlineforest::guided {

// Sparse: only labels of positive weight, in the order of their codes.
class LabelCounts {
 public:
  struct Entry {
    Label label;
    std::int64_t weight;
  };

  void add(Label label, std::int64_t weight) {
    const auto found = std::ranges::lower_bound(entries_, label, {}, &Entry::label);
    total_ += weight;
    if (found == entries_.end() || found->label != label) {
      entries_.insert(found, {label, weight});
    } else if ((found->weight += weight) == 0) {
      entries_.erase(found);
    }
  }

  // Makes room for labels, so that add() cannot fail while there are no more of them.
  void reserve(std::size_t n_labels) { entries_.reserve(n_labels); }

  [[nodiscard]] std::size_t n_labels() const { return entries_.size(); }
  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t nbytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  std::vector<Entry> entries_;
  std::int64_t total_ = 0;
};

}  // namespace onlineforest::guided
