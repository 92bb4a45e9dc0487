// The weight of each label of a block. Must not know trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orderfree/law/law.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

using Label = std::int32_t;  // a class code

// The hashes of labels, which distinguish samples of equal rows and different labels.
class LabelHashes {
 public:
  using Value = Label;

  // Sets the hashes of all labels. The hashes of earlier labels must not change.
  void set(std::span<const Word> hashes) { hashes_.assign(hashes.begin(), hashes.end()); }

  [[nodiscard]] std::int32_t n_labels() const { return static_cast<std::int32_t>(hashes_.size()); }
  [[nodiscard]] Word hash(Label label) const { return hashes_[static_cast<std::size_t>(label)]; }
  [[nodiscard]] static Word word(Label label) { return static_cast<Word>(label); }

 private:
  std::vector<Word> hashes_;
};

// The labels of positive weight, sparse, in the order of their codes.
class LabelCounts {
 public:
  struct Entry {
    Label label;
    Weight weight;
  };

  void add(Label label, Weight weight) {
    const auto found = std::ranges::lower_bound(entries_, label, {}, &Entry::label);
    total_ += weight;
    if (found == entries_.end() || found->label != label) {
      entries_.insert(found, {label, weight});
    } else if ((found->weight += weight) == 0) {
      entries_.erase(found);
    }
  }

  // Allocates memory for `n_labels` labels, so that add() cannot fail up to that number.
  void reserve(std::size_t n_labels) { entries_.reserve(n_labels); }

  // Allocates memory for one more label.
  void reserve_one() {
    if (entries_.size() == entries_.capacity()) entries_.reserve(2 * entries_.size() + 1);
  }

  [[nodiscard]] std::size_t n_labels() const { return entries_.size(); }
  [[nodiscard]] bool is_pure() const { return entries_.size() == 1; }
  [[nodiscard]] static bool is_lost() { return false; }  // counts can always be updated
  [[nodiscard]] Weight total() const { return total_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t nbytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  std::vector<Entry> entries_;
  Weight total_ = 0;
};

}  // namespace onlineforest::orderfree
