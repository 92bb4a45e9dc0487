// The samples that calibrate predictions: some trees leave them out. Must not know trees.
//
// They are those of least keys, so that they are a random subset of the samples, the same in whatever order these came.
// Only they and the next ones in the order of keys are held here, with their keys: nothing is asked of the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <vector>

#include "orderfree/law/sample_store.hpp"

namespace onlineforest::orderfree {

inline constexpr std::size_t kFewestCalibrators = 20;  // fewer say nothing
inline constexpr std::size_t kMostCalibrators = 2048;  // more would say little more

// `Target` says which samples have which values, which share of few samples calibrates, and which trees leave them out.
template <class Target>
class Calibrators {
 public:
  using Samples = SampleStore<typename Target::Values>;

  static constexpr std::size_t kEnough = 1024;  // so many of the next ones are held beside those that may be chosen

  // How many of n samples calibrate. They are lost for some trees, so they are few.
  [[nodiscard]] static constexpr std::size_t number(std::size_t n) {
    return std::min({n / Target::kOneCalibratesOf, 256 + n / 32, kMostCalibrators});
  }

  explicit Calibrators(const Samples& samples) : samples_(samples), chosen_(Less{&samples}), next_(Less{&samples}) {}

  // The samples that calibrate, by key.
  [[nodiscard]] std::vector<Slot> chosen() const {
    std::vector<Slot> slots;
    slots.reserve(chosen_.size());
    for (const Entry& entry : chosen_) slots.push_back(entry.slot);
    return slots;
  }
  [[nodiscard]] std::size_t n_chosen() const { return chosen_.size(); }

  // Makes sure that choose() has enough of the next ones when at most so many samples have come and left. It is asked
  // before they do. It looks at all samples, but hardly ever: the next ones run out when many are forgotten.
  void refill(std::size_t n_coming, std::size_t n_leaving) {
    needed_ = number(n_ + n_coming) - chosen_.size() + n_leaving;
    if (next_.size() < needed_ && bound_ != kAll) hold_more(needed_ + kEnough - next_.size());
  }

  // A new sample is not chosen yet. After an exception it must be erased.
  void insert(Slot slot) {
    ++n_;
    const Word key = samples_.key(slot);
    if (key > bound_) return;
    next_.insert({key, slot});
    let_go();
  }
  // The sample must still have its contents.
  void erase(Slot slot) noexcept {
    --n_;
    const Entry entry{samples_.key(slot), slot};
    if (entry.key <= bound_ && chosen_.erase(entry) == 0) next_.erase(entry);
  }

  // Chooses those of least keys. Calls use(slot, calibrates) for each sample that changes. Takes no memory.
  template <class Use>
  void choose(Use use) noexcept {
    const std::size_t n = number(n_);
    const auto take = [&] {
      use(next_.begin()->slot, true);
      chosen_.insert(next_.extract(next_.begin()));
    };
    const auto leave = [&] {
      use(chosen_.rbegin()->slot, false);
      next_.insert(chosen_.extract(std::prev(chosen_.end())));
    };
    while (!chosen_.empty() && !next_.empty() && less()(*next_.begin(), *chosen_.rbegin())) {
      leave();
      take();
    }
    while (chosen_.size() > n) leave();
    while (chosen_.size() < n) take();
    needed_ = 0;
    let_go();
  }

  [[nodiscard]] std::size_t nbytes() const {
    constexpr std::size_t entry = 48;  // a node of a set
    return (chosen_.size() + next_.size()) * entry;
  }

 private:
  struct Entry {
    Word key;
    Slot slot;
  };

  struct Less {
    const Samples* samples;

    [[nodiscard]] bool operator()(const Entry& a, const Entry& b) const {
      if (a.key != b.key) return a.key < b.key;
      return a.slot != b.slot && samples->content_less(a.slot, b.slot);
    }
  };

  static constexpr Word kAll = ~Word{0};

  [[nodiscard]] Less less() const { return chosen_.key_comp(); }

  // Holds at least n more samples, or all.
  void hold_more(std::size_t n) {
    const auto for_each_other = [this](auto use) {
      for (Slot slot = 0; slot < static_cast<Slot>(samples_.n_slots()); ++slot) {
        if (samples_.weight(slot) > 0 && samples_.key(slot) > bound_) use(samples_.key(slot), slot);
      }
    };
    std::vector<Word> keys;
    keys.reserve(samples_.n_distinct());
    for_each_other([&](Word key, Slot) { keys.push_back(key); });
    Word bound = kAll;
    if (n < keys.size()) {
      const auto last = keys.begin() + static_cast<std::ptrdiff_t>(n) - 1;
      std::nth_element(keys.begin(), last, keys.end());
      bound = *last;
    }
    std::set<Entry, Less> more(less());
    for_each_other([&](Word key, Slot slot) {
      if (key <= bound) more.insert({key, slot});
    });
    next_.merge(more);
    bound_ = bound;
  }

  // Lets go of those of greatest keys while there are more than enough. Samples of equal keys stay together.
  void let_go() noexcept {
    while (next_.size() > needed_ + kEnough) {
      const auto last = std::prev(next_.end());
      const bool stays = last->key == std::prev(last)->key || (!chosen_.empty() && last->key <= chosen_.rbegin()->key);
      if (stays) return;
      bound_ = last->key - 1;
      next_.erase(last);
    }
  }

  const Samples& samples_;
  // Of the samples whose key is at most `bound_`, those that are chosen and those that are not. All others have greater
  // keys than these.
  std::set<Entry, Less> chosen_, next_;
  Word bound_ = kAll;
  std::size_t n_ = 0;       // samples in all
  std::size_t needed_ = 0;  // so many of the next ones may be chosen
};

}  // namespace onlineforest::orderfree
