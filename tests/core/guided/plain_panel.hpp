// The law of a cut in plain code: lists of slots instead of bits. Must not know panels or judges.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "guided/labels.hpp"
#include "guided/law.hpp"
#include "guided/layout.hpp"
#include "guided/numbers.hpp"
#include "guided/proposal.hpp"
#include "guided/sample_store.hpp"

namespace onlineforest::guided {

inline constexpr Word kTreeSeed = 77;

inline std::vector<Word> label_hashes(std::size_t n) {
  std::vector<Word> hashes;
  for (std::size_t i = 0; i < n; ++i) hashes.push_back(derive(5, n - i));  // not in the order of the codes
  return hashes;
}

// Samples of a small world, where many values are equal.
struct World {
  std::size_t n_features;
  int n_values, n_labels, most_weight, key_bits;
  int n_missing = 0;           // cells of 100 that are missing
  bool has_fractions = false;  // weights are not whole
  std::size_t n_categorical = 0;
  int n_levels = 1;
  int n_common = 0;  // levels of 100 that are the first one besides
};

// Levels of which some share the low bits, some the high ones.
inline Word level_of(int number) {
  const Word level = derive(31, static_cast<Word>(number)) >> 4, low = (Word{1} << 30) - 1;
  return number % 3 == 0 ? level : number % 3 == 1 ? level & low : level & ~low;
}

inline void put_level(Word level, float* cells) {
  cells[0] = std::bit_cast<float>(static_cast<std::uint32_t>(level & 0x3fffffff) + 0x800000u);
  cells[1] = std::bit_cast<float>(static_cast<std::uint32_t>(level >> 30) + 0x800000u);
}

// The first cell of a feature.
inline std::int32_t first_cell(const Layout& layout, std::int32_t feature) {
  const auto n_numeric = static_cast<std::int32_t>(layout.n_features - layout.n_categorical);
  return feature < n_numeric ? feature : n_numeric + 2 * (feature - n_numeric);
}

// The number that a level is.
inline Word plain_level(const float* row, std::int32_t cell) {
  const auto bits = [&](std::int32_t k) { return Word{std::bit_cast<std::uint32_t>(row[k])} - 0x800000; };
  return bits(cell) + bits(cell + 1) * 0x40000000;
}

// Where a row goes if surrogates are not asked. The side of a level is the first bit of the word that the level derives
// from the salt.
inline bool goes_left(const Cut& cut, const float* row) {
  if (!cut.is_of_levels) return sends_left(cut, {}, row);
  return derive(plain_level(row, cut.cell), std::bit_cast<std::uint32_t>(cut.threshold) - 0x800000) >= Word{1} << 63;
}

template <class Target>
SampleStore<typename Target::Values> store_of(const World& world, std::size_t n, std::mt19937& draw) {
  constexpr bool has_labels = std::is_same_v<Target, Labels>;
  const Layout layout{world.n_features, world.n_categorical};
  const std::size_t n_numeric = world.n_features - world.n_categorical;
  SampleStore<typename Target::Values> samples(layout, 9, world.key_bits);
  if constexpr (has_labels) samples.values().set(label_hashes(static_cast<std::size_t>(world.n_labels)));
  std::vector<float> row(n_numeric + 2 * world.n_categorical);
  for (std::size_t i = 0; i < n; ++i) {
    for (float& x : std::span(row).first(n_numeric)) {
      x = static_cast<float>(static_cast<int>(draw() >> 1) % world.n_values) * 0.25f;
      if (static_cast<int>(draw() % 100) < world.n_missing) x = kMissing;
    }
    for (std::size_t k = n_numeric; k < row.size(); k += 2) {
      const bool is_common = static_cast<int>(draw() % 100) < world.n_common;
      put_level(level_of(is_common ? 0 : static_cast<int>(draw() >> 1) % world.n_levels), row.data() + k);
    }
    const auto drawn = static_cast<Label>(draw() % static_cast<unsigned>(world.n_labels));
    Weight weight = kOne * (1 + draw() % static_cast<unsigned>(world.most_weight));
    if (world.has_fractions && i % 3 != 0) weight = 1 + draw() % weight;
    if constexpr (has_labels) {
      samples.add(row.data(), drawn, weight);
    } else {
      samples.add(row.data(), 0.3 * drawn - 1.7, weight);
    }
  }
  return samples;
}

// The first slots, in the order of the circle.
template <class Values>
std::vector<Slot> circle_of(const SampleStore<Values>& samples, const RankOrder<Values>& order) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < static_cast<Slot>(std::min(samples.n_slots(), kMostDeciding)); ++slot) {
    slots.push_back(slot);
  }
  std::ranges::sort(slots, [&](Slot a, Slot b) { return order.less(order.place(a), a, order.place(b), b); });
  return slots;
}

inline std::vector<Slot> slots_in(const std::vector<Slot>& slots, Block block) {
  std::vector<Slot> result;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (block >> i & 1) result.push_back(slots[i]);
  }
  return result;
}

// The sum over both sides of squared weights of labels over the weight.
class PlainLabelJudge {
 public:
  PlainLabelJudge(const SampleStore<LabelHashes>& samples, const std::vector<Slot>& slots)
      : samples_(samples), slots_(slots) {}

  [[nodiscard]] std::size_t n_proposals() const {
    if (slots_.size() < 16) return 4;
    const Layout& layout = samples_.layout();
    for (const Slot slot : slots_) {
      for (std::size_t d = 0; d < layout.n_features - layout.n_categorical; ++d) {
        if (is_missing(samples_.row(slot)[d])) return 64;
      }
    }
    return layout.n_categorical > 0 ? 32 : 16;
  }

  [[nodiscard]] double gain(Cut cut) const { return score(cut); }
  [[nodiscard]] double score(Cut cut) const {
    std::map<Label, double> sides[2];
    for (const Slot slot : slots_) {
      const bool is_right = !goes_left(cut, samples_.row(slot));
      sides[is_right][samples_.value(slot)] += static_cast<double>(samples_.weight(slot));
    }
    double result = 0.0;
    for (const auto& side : sides) {
      double total = 0.0, squares = 0.0;
      for (const auto& [label, weight] : side) {
        total += weight;
        squares += weight * weight;
      }
      result += squares / total;
    }
    return result;
  }

 private:
  const SampleStore<LabelHashes>& samples_;
  const std::vector<Slot>& slots_;
};

// The share of the variance that a cut explains, or that neighbours in the order of its feature have in common. Levels
// have no order.
class PlainNumberJudge {
 public:
  PlainNumberJudge(const SampleStore<NumberHashes>& samples, const std::vector<Slot>& slots)
      : samples_(samples), slots_(slots) {
    for (const Slot slot : slots) {
      total_ += samples.weight(slot);
      mean_ += weight(slot) * samples.value(slot);
    }
    mean_ /= multiplicity(total_);
    for (const Slot slot : slots) squares_ += weight(slot) * squared(samples.value(slot) - mean_);
  }

  [[nodiscard]] std::size_t n_proposals() const {
    if (slots_.size() < 16) return 6;
    const std::size_t n_features = samples_.layout().n_features;
    return n_features <= 4 ? 16 : n_features >= 8 ? 32 : 4 * n_features;
  }

  [[nodiscard]] double gain(Cut cut) const {
    if (!(squares_ > 0.0)) return 0.0;
    // Sums are taken in the order of the circle if few decide or levels are cut, else in that of the feature: another
    // order would be rounded otherwise.
    const bool is_by_circle = slots_.size() < 16 || cut.is_of_levels;
    double left = 0.0, all = 0.0, there = 0.0;
    Weight n = 0;
    for (const Slot slot : is_by_circle ? slots_ : along(cut.cell)) {
      if (is_by_circle) {
        if (!goes_left(cut, samples_.row(slot))) continue;
        left += weight(slot) * (samples_.value(slot) - mean_);
        n += samples_.weight(slot);
        continue;
      }
      const float x = samples_.row(slot)[cut.cell];
      all += weight(slot) * (samples_.value(slot) - mean_);
      if (!is_missing(x)) there = all;
      if (x <= cut.threshold) left = all;
      if (goes_left(cut, samples_.row(slot))) n += samples_.weight(slot);
    }
    if (!is_by_circle && cut.missing_left) left += all - there;
    return left * left * multiplicity(total_) / (multiplicity(n) * multiplicity(total_ - n)) / squares_;
  }

  [[nodiscard]] double neighbours(std::int32_t feature) const {
    const auto n = static_cast<double>(slots_.size());
    double mean = 0.0, squares = 0.0, differences = 0.0;
    for (const Slot slot : slots_) mean += samples_.value(slot);
    mean /= n;
    for (const Slot slot : slots_) squares += squared(samples_.value(slot) - mean);
    const std::vector<Slot> ordered = along(feature);
    for (std::size_t k = 1; k < ordered.size(); ++k) {
      differences += squared(samples_.value(ordered[k]) - samples_.value(ordered[k - 1]));
    }
    return squares > 0.0 ? 1.0 - n * differences / (2.0 * squares * (n - 1.0)) : 0.0;
  }

  [[nodiscard]] double score(Cut cut) const {
    if (!(squares_ > 0.0)) return 0.0;
    return slots_.size() < 16 || cut.is_of_levels ? gain(cut) : std::max(gain(cut), neighbours(cut.cell));
  }

 private:
  static double squared(double x) { return x * x; }
  [[nodiscard]] double weight(Slot slot) const { return multiplicity(samples_.weight(slot)); }

  // Ties as they are, missing values last.
  [[nodiscard]] std::vector<Slot> along(std::int32_t feature) const {
    std::vector<Slot> result = slots_;
    std::ranges::stable_sort(result, [&](Slot a, Slot b) {
      const float x = samples_.row(a)[feature], y = samples_.row(b)[feature];
      return is_missing(x) ? false : is_missing(y) || x < y;
    });
    return result;
  }

  const SampleStore<NumberHashes>& samples_;
  const std::vector<Slot>& slots_;
  std::int64_t total_ = 0;
  double mean_ = 0.0, squares_ = 0.0;
};

// `slots` are in the order of the circle.
template <class Target>
class PlainPanel {
 public:
  using Samples = SampleStore<typename Target::Values>;
  using Order = RankOrder<typename Target::Values>;
  using Judge = std::conditional_t<std::is_same_v<Target, Labels>, PlainLabelJudge, PlainNumberJudge>;

  PlainPanel(const Samples& samples, const Order& order, std::vector<Slot> slots)
      : samples_(samples), order_(order), slots_(std::move(slots)) {}

  [[nodiscard]] Fork decide(Word seed) const {
    const Judge judge(samples_, slots_);
    std::vector<Cut> cuts;
    Cut best;
    for (Word q = 0; q < judge.n_proposals(); ++q) {
      Cut cut = propose(derive(seed, 8 + q), q % 2 == 0);
      if (!cut.asks_if_missing() && any_lacks(cut.cell)) {
        Cut with = cut;
        with.missing_left = true;
        if (judge.gain(with) >= judge.gain(cut)) cut = with;
      }
      cuts.push_back(cut);
      const auto worth = [&](const Cut& one) { return std::pair(judge.score(one), judge.gain(one)); };
      if (q == 0 || worth(cut) > worth(best)) best = cut;
    }
    if (!best.asks_if_missing() && !any_lacks(best.cell)) {
      Weight left = 0, right = 0;
      for (const Slot slot : slots_) {
        (goes_left(best, samples_.row(slot)) ? left : right) += samples_.weight(slot);
      }
      best.missing_left = left >= right;
    }
    return {best, surrogates(cuts, best)};
  }

 private:
  [[nodiscard]] Surrogates surrogates(const std::vector<Cut>& cuts, const Cut& best) const {
    if (best.asks_if_missing() || !any_lacks(best.cell)) return {};
    double n_known = 0.0, n_known_left = 0.0;
    for (const Slot slot : slots_) {
      n_known += !is_missing(x(slot, best.cell));
      n_known_left += x(slot, best.cell) <= best.threshold;
    }
    std::vector<std::pair<double, Surrogate>> found;
    for (const Cut& cut : cuts) {
      if (cut.cell == best.cell || cut.asks_if_missing()) continue;
      int n = 0, n_same = 0;
      for (const Slot slot : slots_) {
        if (is_missing(x(slot, best.cell)) || is_missing(x(slot, cut.cell))) continue;
        ++n;
        n_same += goes_left(best, samples_.row(slot)) == goes_left(cut, samples_.row(slot));
      }
      const double share = (std::max(n_same, n - n_same) + 2.0) / (n + 4.0);
      if (share <= std::max(n_known_left, n_known - n_known_left) / n_known) continue;
      found.push_back({share, {cut.cell, cut.threshold, n_same < n - n_same, cut.is_of_levels}});
    }
    std::ranges::stable_sort(found, std::greater(), [](const auto& one) { return one.first; });
    Surrogates result;
    for (const auto& [share, surrogate] : found) {
      const bool is_known = std::ranges::find(result, surrogate.cell, &Surrogate::cell) != result.end();
      if (!is_known && result.size() < 4) result.push_back(surrogate);
    }
    return result;
  }

  [[nodiscard]] float x(Slot slot, std::int32_t cell) const { return samples_.row(slot)[cell]; }
  [[nodiscard]] Word level(Slot slot, std::int32_t cell) const { return plain_level(samples_.row(slot), cell); }

  [[nodiscard]] bool any_lacks(std::int32_t cell) const {
    return std::ranges::any_of(slots_, [&](Slot slot) { return is_missing(x(slot, cell)); });
  }

  [[nodiscard]] Slot first(const std::vector<Slot>& among, Word place) const {
    for (const Slot slot : among) {
      if (order_.place(slot) >= place) return slot;
    }
    return among.front();
  }

  // The first of 64 salts that separates the level of one sample from the first other level on the circle, or the last.
  [[nodiscard]] Cut propose_levels(Word word, std::int32_t cell, const std::vector<Slot>& pool) const {
    const Slot one = first(pool, derive(word, 1));
    std::vector<Slot> others;
    for (const Slot slot : pool) {
      if (level(slot, cell) != level(one, cell)) others.push_back(slot);
    }
    const Slot other = first(others, derive(word, 2));
    Cut cut;
    for (Word t = 0; t < 64; ++t) {
      const auto salt = static_cast<std::uint32_t>(derive(word, Word{0} - 1 - t) / (Word{1} << 34));
      cut = {cell, std::bit_cast<float>(salt + 0x800000u), false, true};
      if (goes_left(cut, samples_.row(one)) != goes_left(cut, samples_.row(other))) break;
    }
    return cut;
  }

  [[nodiscard]] Cut propose(Word word, bool is_pair) const {
    std::vector<Slot> pool = slots_;
    if (is_pair) {
      const Slot one = first(slots_, derive(word, 1));
      std::vector<Slot> others, rivals;
      for (const Slot slot : slots_) {
        if (!samples_.same_x(slot, one)) others.push_back(slot);
        if (!samples_.same_x(slot, one) && samples_.value(slot) != samples_.value(one)) rivals.push_back(slot);
      }
      pool = {one, first(rivals.empty() ? others : rivals, derive(word, 2))};
    }
    const Layout& layout = samples_.layout();
    const auto n_features = static_cast<std::int32_t>(layout.n_features);
    const auto n_numeric = n_features - static_cast<std::int32_t>(layout.n_categorical);
    // The distinct values that are there, and whether one is missing.
    const auto values = [&](std::int32_t d) {
      std::pair<std::vector<float>, bool> result;
      for (const Slot slot : pool) {
        if (is_missing(x(slot, d))) {
          result.second = true;
        } else {
          result.first.push_back(x(slot, d));
        }
      }
      std::ranges::sort(result.first);
      result.first.erase(std::unique(result.first.begin(), result.first.end()), result.first.end());
      return result;
    };
    const auto differs = [&](std::int32_t d) {
      if (d >= n_numeric) {
        const std::int32_t cell = first_cell(layout, d);
        return std::ranges::any_of(pool, [&](Slot slot) { return level(slot, cell) != level(pool.front(), cell); });
      }
      const auto [there, is_any_missing] = values(d);
      return there.size() + (is_any_missing ? 1 : 0) > 1;
    };
    // A pair cuts a feature that both have, if there is one.
    bool needs_both = false;
    const auto is_any_missing_in = [&](std::int32_t d) { return d < n_numeric && values(d).second; };
    for (std::int32_t d = 0; d < n_features; ++d) needs_both |= is_pair && differs(d) && !is_any_missing_in(d);
    const auto varies = [&](std::int32_t d) { return differs(d) && !(needs_both && is_any_missing_in(d)); };
    std::int32_t feature = -1;
    for (Word t = 0; t < 32 && feature < 0; ++t) {
      const Word drawn = (derive(word, 16 + t) >> 32) * static_cast<Word>(n_features) >> 32;
      if (varies(static_cast<std::int32_t>(drawn))) feature = static_cast<std::int32_t>(drawn);
    }
    if (feature < 0) {
      Word least = 0;
      for (std::int32_t d = 0; d < n_features; ++d) {
        const Word here = derive(word, 64 + static_cast<Word>(d));
        if (!varies(d) || (feature >= 0 && here >= least)) continue;
        feature = d;
        least = here;
      }
    }
    if (feature >= n_numeric) return propose_levels(word, first_cell(layout, feature), pool);
    const auto [there, is_any_missing] = values(feature);
    const bool asks_who_lacks = !is_pair && is_any_missing && derive(word, 4) >> 61 == 0;
    if (there.size() == 1 || asks_who_lacks) return {feature, std::numeric_limits<float>::infinity(), false};
    const float low = there.front(), high = there.back();
    const double share = static_cast<double>(derive(word, 3) >> 11) * 0x1p-53;
    const double position = low + share * (static_cast<double>(high) - static_cast<double>(low));
    if (position >= high) return {feature, low, false};
    float threshold = static_cast<float>(position);
    while (threshold > position) threshold = std::nextafter(threshold, -std::numeric_limits<float>::infinity());
    return {feature, threshold, false};
  }

  const Samples& samples_;
  const Order& order_;
  std::vector<Slot> slots_;
};

}  // namespace onlineforest::guided
