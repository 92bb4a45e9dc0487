// Small worlds of samples for tests of the order-free forest. Must not know panels or judges.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "orderfree/labels/labels.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/layout.hpp"
#include "orderfree/law/proposal.hpp"
#include "orderfree/law/sample_store.hpp"

namespace onlineforest::orderfree {

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
  int n_missing = 0;           // missing cells, in percent
  bool has_fractions = false;  // weights are not whole
  std::size_t n_categorical = 0;
  int n_levels = 1;
  int n_common = 0;  // samples, in percent, that get the first level instead of a random one
};

// Returns levels, some of which share their low bits and some their high bits.
inline Word level_of(int number) {
  const Word level = derive(31, static_cast<Word>(number)) >> 4, low = (Word{1} << 30) - 1;
  return number % 3 == 0 ? level : number % 3 == 1 ? level & low : level & ~low;
}

inline void put_level(Word level, float* cells) {
  cells[0] = std::bit_cast<float>(static_cast<std::uint32_t>(level & 0x3fffffff) + 0x800000u);
  cells[1] = std::bit_cast<float>(static_cast<std::uint32_t>(level >> 30) + 0x800000u);
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

// The first kMostDeciding slots, in the order of the circle.
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

}  // namespace onlineforest::orderfree
