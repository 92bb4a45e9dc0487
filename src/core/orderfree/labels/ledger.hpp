// The labels that a forest knows, and the weight of the stored samples of each. Must not know trees.
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

// A label is known if it is declared or if a stored sample has it.
class LabelLedger {
 public:
  // The part of the ledger that the samples do not determine.
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
    for (std::size_t i = 0; i < labels.size(); ++i) {
      require(may_be(labels[i], hashes), [&] {
        return "row " + std::to_string(i) + ": label " + std::to_string(labels[i]) + " is outside [0, " +
               std::to_string(hashes.n_labels()) + ")";
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
      const Word hash = hashes[static_cast<std::size_t>(label)];
      require(hash == known.hash(label), [&] {
        return "the hash of label " + std::to_string(label) + " has changed from " + std::to_string(known.hash(label)) +
               " to " + std::to_string(hash);
      });
    }
    std::vector<Word> sorted(hashes.begin(), hashes.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    require(twice == sorted.end(), [&] { return "two labels have the same hash " + std::to_string(*twice); });
    require(are_declared.size() == hashes.size(), [&] {
      return "there are " + std::to_string(hashes.size()) + " label hashes, but " +
             std::to_string(are_declared.size()) + " marks of declared labels";
    });
    known.set(hashes);
    are_declared_.assign(are_declared.begin(), are_declared.end());
    find_known();
  }

  // Allocates the memory that add() and finish() need, so that they cannot fail.
  void reserve() {
    totals_.reserve(are_declared_.size());
    known_.reserve(are_declared_.size());
  }
  void add(Label label, Weight by) { totals_.add(label, by); }
  void finish() { find_known(); }  // to be called after all changes are added

  void restore(const State& state, LabelHashes& hashes) { set(state.hashes, state.are_declared, hashes); }
  [[nodiscard]] State save(const LabelHashes& hashes) const {
    State state{{}, are_declared_};
    for (Label label = 0; label < hashes.n_labels(); ++label) state.hashes.push_back(hashes.hash(label));
    return state;
  }

  [[nodiscard]] const std::vector<Label>& known() const { return known_; }  // in the order of codes
  [[nodiscard]] const LabelCounts& totals() const { return totals_; }

 private:
  void find_known() {
    known_.clear();
    auto held = totals_.entries().begin();
    for (std::size_t c = 0; c < are_declared_.size(); ++c) {
      const bool is_held = held != totals_.entries().end() && held->label == static_cast<Label>(c);
      if (is_held) ++held;
      if (is_held || are_declared_[c] != 0) known_.push_back(static_cast<Label>(c));
    }
  }

  LabelCounts totals_;
  std::vector<std::uint8_t> are_declared_;
  std::vector<Label> known_;
};

}  // namespace onlineforest::orderfree
