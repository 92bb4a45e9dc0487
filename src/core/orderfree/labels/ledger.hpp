// Which labels a forest knows, and how many samples of each it holds. Must not know trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/require.hpp"
#include "orderfree/labels/counts.hpp"

namespace onlineforest::orderfree {

// A label is known if it is declared or if a sample of it is held.
class LabelLedger {
 public:
  // What it is made of besides samples.
  struct State {
    std::vector<Word> hashes;
    std::vector<std::uint8_t> are_declared;

    template <class Visit>
    void for_each_field(Visit& visit) {
      visit("label_hashes", hashes);
      visit("are_declared", are_declared);
    }
  };

  void check(std::span<const Label> labels, const LabelHashes& hashes) const {
    for (const Label label : labels) {
      require(label >= 0 && label < hashes.n_labels(), [&] {
        return "label " + std::to_string(label) + " is outside [0, " + std::to_string(hashes.n_labels()) + ")";
      });
    }
  }
  [[nodiscard]] static bool may_be(Label label, const LabelHashes& hashes) {
    return label >= 0 && label < hashes.n_labels();
  }
  [[nodiscard]] static Label canonical(Label label) { return label; }

  void set(std::span<const Word> hashes, std::span<const std::uint8_t> are_declared, LabelHashes& known) {
    const auto n = static_cast<std::size_t>(known.n_labels());
    require(hashes.size() >= n, [&] {
      return "there are " + std::to_string(hashes.size()) + " label hashes, but the forest knows " + std::to_string(n) +
             " labels";
    });
    for (const Label label : known_) {
      require(hashes[static_cast<std::size_t>(label)] == known.hash(label),
              [&] { return "the hash of label " + std::to_string(label) + " has changed"; });
    }
    std::vector<Word> sorted(hashes.begin(), hashes.end());
    std::ranges::sort(sorted);
    require(std::ranges::adjacent_find(sorted) == sorted.end(), "two labels have the same hash");
    require(are_declared.size() == hashes.size(), [&] {
      return "there are " + std::to_string(hashes.size()) + " label hashes, but " +
             std::to_string(are_declared.size()) + " marks of declared labels";
    });
    if (hashes.size() > n) ++version_;
    known.set(hashes);
    are_declared_.assign(are_declared.begin(), are_declared.end());
    find_known();
  }

  // So that what follows cannot fail.
  void reserve() {
    totals_.reserve(are_declared_.size());
    known_.reserve(are_declared_.size());
    known_before_.reserve(are_declared_.size());
  }
  void add(Label label, Weight by) { totals_.add(label, by); }
  void finish() { find_known(); }  // after all changes were added

  void restore(const State& state, LabelHashes& hashes) { set(state.hashes, state.are_declared, hashes); }
  [[nodiscard]] State save(const LabelHashes& hashes) const {
    State state{{}, are_declared_};
    for (Label label = 0; label < hashes.n_labels(); ++label) state.hashes.push_back(hashes.hash(label));
    return state;
  }

  [[nodiscard]] const std::vector<Label>& known() const { return known_; }
  [[nodiscard]] const LabelCounts& totals() const { return totals_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }  // another number when other labels are known

 private:
  void find_known() {
    known_before_.reserve(are_declared_.size());
    known_.swap(known_before_);
    known_.clear();
    for (std::size_t c = 0; c < are_declared_.size(); ++c) {
      if (are_declared_[c] != 0) known_.push_back(static_cast<Label>(c));
    }
    for (const auto& [label, weight] : totals_.entries()) {
      if (are_declared_[static_cast<std::size_t>(label)] == 0) known_.push_back(label);
    }
    if (known_ != known_before_) ++version_;
  }

  LabelCounts totals_;
  std::vector<std::uint8_t> are_declared_;
  std::vector<Label> known_, known_before_;
  std::uint64_t version_ = 0;
};

}  // namespace onlineforest::orderfree
