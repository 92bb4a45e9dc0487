// The samples that calibrate predictions: some trees leave them out. Must not know trees.
//
// They are those of least keys, so that they are a random subset of the samples, the same in whatever order these came.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>

#include "guided/sample_store.hpp"

namespace onlineforest::guided {

inline constexpr std::size_t kFewestCalibrators = 20;  // fewer say nothing

// `Target` says which samples have which values, which share of few samples calibrates, and which trees leave them out.
template <class Target>
class Calibrators {
 public:
  using Samples = SampleStore<typename Target::Values>;

  // How many of n samples calibrate. They are lost for some trees, so they are few.
  [[nodiscard]] static constexpr std::size_t number(std::size_t n) {
    return std::min({n / Target::kOneCalibratesOf, 256 + n / 32, std::size_t{2048}});
  }

  explicit Calibrators(const Samples& samples) : chosen_(Less{&samples}), others_(Less{&samples}) {}

  // The samples that calibrate, by key.
  [[nodiscard]] const auto& chosen() const { return chosen_; }

  // A new sample is not chosen yet.
  void insert(Slot slot) { others_.insert(slot); }
  // The sample must still have its contents.
  void erase(Slot slot) noexcept {
    if (chosen_.erase(slot) == 0) others_.erase(slot);
  }

  // Chooses those of least keys. Calls use(slot, calibrates) for each sample that changes. Takes no memory.
  template <class Use>
  void choose(Use use) noexcept {
    const std::size_t n = number(chosen_.size() + others_.size());
    const auto take = [&] {
      use(*others_.begin(), true);
      chosen_.insert(others_.extract(others_.begin()));
    };
    const auto leave = [&] {
      use(*chosen_.rbegin(), false);
      others_.insert(chosen_.extract(std::prev(chosen_.end())));
    };
    while (!chosen_.empty() && !others_.empty() && less()(*others_.begin(), *chosen_.rbegin())) {
      leave();
      take();
    }
    while (chosen_.size() > n) leave();
    while (chosen_.size() < n) take();
  }

  [[nodiscard]] std::size_t nbytes() const {
    constexpr std::size_t entry = 48;  // a node of a set
    return (chosen_.size() + others_.size()) * entry;
  }

 private:
  struct Less {
    const Samples* samples;

    [[nodiscard]] bool operator()(Slot a, Slot b) const {
      if (samples->key(a) != samples->key(b)) return samples->key(a) < samples->key(b);
      return a != b && samples->content_less(a, b);
    }
  };

  [[nodiscard]] Less less() const { return chosen_.key_comp(); }

  std::set<Slot, Less> chosen_, others_;
};

}  // namespace onlineforest::guided
