// Chooses the calibrators: the samples of lowest key, which some trees leave out. Must not know trees.
//
// Keys are hashes, so the calibrators are a random subset that does not depend on the order of arrivals. This class
// holds the keys of the calibrators and of a reserve: the samples that follow them in the order of keys. An insertion
// or a removal then takes logarithmic time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <set>
#include <vector>

#include "orderfree/law/sample_store.hpp"

namespace onlineforest::orderfree {

inline constexpr std::size_t kFewestCalibrators = 20;  // fewer are too few to fit a calibration
inline constexpr std::size_t kMostCalibrators = 2048;  // more improve a calibration little
inline constexpr std::size_t kAllCalibrators = std::numeric_limits<std::size_t>::max();  // the end of all

// `Target` defines the type of values, the share of calibrators in a small forest, and which trees leave them out.
template <class Target>
class Calibrators {
 public:
  using Samples = SampleStore<typename Target::Values>;

  static constexpr std::size_t kSpare = 1024;  // size of the reserve beyond the samples that may be needed

  // The number of calibrators among n samples. Some trees cannot learn them, so the number is small.
  [[nodiscard]] static constexpr std::size_t number(std::size_t n) {
    return std::min({n / Target::kOneCalibratesOf, 256 + n / 32, kMostCalibrators});
  }

  explicit Calibrators(const Samples& samples) : samples_(samples), chosen_(Less{&samples}), reserve_(Less{&samples}) {}

  // The calibrators [begin, end) in the order of keys, or up to the last one if there are fewer.
  [[nodiscard]] std::vector<Slot> chosen(std::size_t begin = 0, std::size_t end = kAllCalibrators) const {
    std::vector<Slot> slots;
    for (std::size_t i = 0; const Entry& entry : chosen_) {
      if (i >= begin && i < end) slots.push_back(entry.slot);
      ++i;
    }
    return slots;
  }
  [[nodiscard]] std::size_t n_chosen() const { return chosen_.size(); }

  // Refills the reserve so that choose() cannot run out after `n_coming` insertions and `n_leaving` removals. Call it
  // before they are made. A refill scans all samples, but is rare: only many removals use up the reserve.
  void refill(std::size_t n_coming, std::size_t n_leaving) {
    needed_ = number(n_ + n_coming) - chosen_.size() + n_leaving;
    if (reserve_.size() < needed_ && bound_ != kAll) hold_more(needed_ + kSpare - reserve_.size());
  }

  // Inserts a new sample, which is not a calibrator until choose(). After an exception the caller must erase it.
  void insert(Slot slot) {
    ++n_;
    const Word key = samples_.key(slot);
    if (key > bound_) return;
    reserve_.insert({key, slot});
    trim();
  }
  // Removes a sample. The store must still hold its row and value.
  void erase(Slot slot) noexcept {
    --n_;
    const Entry entry{samples_.key(slot), slot};
    if (entry.key <= bound_ && chosen_.erase(entry) == 0) reserve_.erase(entry);
  }

  // Makes the samples of lowest key the calibrators. Calls use(slot, calibrates) for each sample that becomes one or
  // ceases to be one. Allocates no memory, so it cannot fail.
  template <class Use>
  void choose(Use use) noexcept {
    const std::size_t n = number(n_);
    const auto take = [&] {
      use(reserve_.begin()->slot, true);
      chosen_.insert(reserve_.extract(reserve_.begin()));
    };
    const auto leave = [&] {
      use(chosen_.rbegin()->slot, false);
      reserve_.insert(chosen_.extract(std::prev(chosen_.end())));
    };
    while (!chosen_.empty() && !reserve_.empty() && less()(*reserve_.begin(), *chosen_.rbegin())) {
      leave();
      take();
    }
    while (chosen_.size() > n) leave();
    while (chosen_.size() < n) take();
    needed_ = 0;
    trim();
  }

  [[nodiscard]] std::size_t nbytes() const {
    constexpr std::size_t entry = 48;  // bytes of a node of std::set
    return (chosen_.size() + reserve_.size()) * entry;
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

  // Adds the next n samples in the order of keys to the reserve, with all of equal key; all samples if there are fewer.
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
    reserve_.merge(more);
    bound_ = bound;
  }

  // Drops the samples of greatest key while the reserve is too large. Samples of equal keys stay together, so that
  // `bound_` separates the samples that are held from the others.
  void trim() noexcept {
    while (reserve_.size() > needed_ + kSpare) {
      const auto last = std::prev(reserve_.end());
      const bool stays = last->key == std::prev(last)->key || (!chosen_.empty() && last->key <= chosen_.rbegin()->key);
      if (stays) return;
      bound_ = last->key - 1;
      reserve_.erase(last);
    }
  }

  const Samples& samples_;
  // The calibrators and the reserve: together, all samples whose key is at most `bound_`.
  std::set<Entry, Less> chosen_, reserve_;
  Word bound_ = kAll;
  std::size_t n_ = 0;       // number of stored samples
  std::size_t needed_ = 0;  // number of reserve samples that the next choose() may need
};

}  // namespace onlineforest::orderfree
