// The law of a cut in plain code: lists of slots instead of bits. Must not know panels or judges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "guided/labels.hpp"
#include "guided/law.hpp"
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
};

template <class Target>
SampleStore<typename Target::Values> store_of(const World& world, std::size_t n, std::mt19937& draw) {
  constexpr bool has_labels = std::is_same_v<Target, Labels>;
  SampleStore<typename Target::Values> samples(world.n_features, 9, world.key_bits);
  if constexpr (has_labels) samples.values().set(label_hashes(static_cast<std::size_t>(world.n_labels)));
  std::vector<float> row(world.n_features);
  for (std::size_t i = 0; i < n; ++i) {
    for (float& x : row) {
      x = static_cast<float>(static_cast<int>(draw() >> 1) % world.n_values) * 0.25f;
      if (static_cast<int>(draw() % 100) < world.n_missing) x = kMissing;
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
    for (const Slot slot : slots_) {
      for (std::size_t d = 0; d < samples_.n_features(); ++d) {
        if (is_missing(samples_.row(slot)[d])) return 64;
      }
    }
    return 16;
  }

  [[nodiscard]] double gain(Cut cut) const { return score(cut); }
  [[nodiscard]] double score(Cut cut) const {
    std::map<Label, double> sides[2];
    for (const Slot slot : slots_) {
      const bool is_right = !sends_left(cut, {}, samples_.row(slot));
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

// The share of the variance that a cut explains, or that neighbours in the order of its feature have in common.
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
    return samples_.n_features() <= 4 ? 16 : samples_.n_features() >= 8 ? 32 : 4 * samples_.n_features();
  }

  [[nodiscard]] double gain(Cut cut) const {
    if (!(squares_ > 0.0)) return 0.0;
    // Sums are taken in the order of the circle if few decide, else in that of the feature: another order would be
    // rounded otherwise.
    const bool are_few = slots_.size() < 16;
    double left = 0.0, all = 0.0, there = 0.0;
    Weight n = 0;
    for (const Slot slot : are_few ? slots_ : along(cut.feature)) {
      if (are_few) {
        if (!sends_left(cut, {}, samples_.row(slot))) continue;
        left += weight(slot) * (samples_.value(slot) - mean_);
        n += samples_.weight(slot);
        continue;
      }
      const float x = samples_.row(slot)[cut.feature];
      all += weight(slot) * (samples_.value(slot) - mean_);
      if (!is_missing(x)) there = all;
      if (x <= cut.threshold) left = all;
      if (sends_left(cut, {}, samples_.row(slot))) n += samples_.weight(slot);
    }
    if (!are_few && cut.missing_left) left += all - there;
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
    return slots_.size() < 16 ? gain(cut) : std::max(gain(cut), neighbours(cut.feature));
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
      if (!cut.asks_if_missing() && any_lacks(cut.feature)) {
        Cut with = cut;
        with.missing_left = true;
        if (judge.gain(with) >= judge.gain(cut)) cut = with;
      }
      cuts.push_back(cut);
      const auto worth = [&](const Cut& one) { return std::pair(judge.score(one), judge.gain(one)); };
      if (q == 0 || worth(cut) > worth(best)) best = cut;
    }
    if (!best.asks_if_missing() && !any_lacks(best.feature)) {
      Weight left = 0, right = 0;
      for (const Slot slot : slots_) {
        (sends_left(best, {}, samples_.row(slot)) ? left : right) += samples_.weight(slot);
      }
      best.missing_left = left >= right;
    }
    return {best, surrogates(cuts, best)};
  }

 private:
  [[nodiscard]] Surrogates surrogates(const std::vector<Cut>& cuts, const Cut& best) const {
    if (best.asks_if_missing() || !any_lacks(best.feature)) return {};
    double n_known = 0.0, n_known_left = 0.0;
    for (const Slot slot : slots_) {
      n_known += !is_missing(x(slot, best.feature));
      n_known_left += x(slot, best.feature) <= best.threshold;
    }
    std::vector<std::pair<double, Surrogate>> found;
    for (const Cut& cut : cuts) {
      if (cut.feature == best.feature || cut.asks_if_missing()) continue;
      int n = 0, n_same = 0;
      for (const Slot slot : slots_) {
        const float ours = x(slot, best.feature), theirs = x(slot, cut.feature);
        if (is_missing(ours) || is_missing(theirs)) continue;
        ++n;
        n_same += (ours <= best.threshold) == (theirs <= cut.threshold);
      }
      const double share = (std::max(n_same, n - n_same) + 2.0) / (n + 4.0);
      if (share <= std::max(n_known_left, n_known - n_known_left) / n_known) continue;
      found.push_back({share, {cut.feature, cut.threshold, n_same < n - n_same}});
    }
    std::ranges::stable_sort(found, std::greater(), [](const auto& one) { return one.first; });
    Surrogates result;
    for (const auto& [share, surrogate] : found) {
      const bool is_known =
          std::ranges::any_of(result, [&](const Surrogate& other) { return other.feature == surrogate.feature; });
      if (!is_known && result.size() < 4) result.push_back(surrogate);
    }
    return result;
  }

  [[nodiscard]] float x(Slot slot, std::int32_t feature) const { return samples_.row(slot)[feature]; }

  [[nodiscard]] bool any_lacks(std::int32_t feature) const {
    return std::ranges::any_of(slots_, [&](Slot slot) { return is_missing(x(slot, feature)); });
  }

  [[nodiscard]] Slot first(const std::vector<Slot>& among, Word place) const {
    for (const Slot slot : among) {
      if (order_.place(slot) >= place) return slot;
    }
    return among.front();
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
    const auto n_features = static_cast<std::int32_t>(samples_.n_features());
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
      const auto rest = std::ranges::unique(result.first);
      result.first.erase(rest.begin(), rest.end());
      return result;
    };
    const auto differs = [&](std::int32_t d) {
      const auto [there, is_any_missing] = values(d);
      return there.size() + (is_any_missing ? 1 : 0) > 1;
    };
    // A pair cuts a feature that both have, if there is one.
    bool needs_both = false;
    for (std::int32_t d = 0; d < n_features; ++d) needs_both |= is_pair && differs(d) && !values(d).second;
    const auto varies = [&](std::int32_t d) { return differs(d) && !(needs_both && values(d).second); };
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
