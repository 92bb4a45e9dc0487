// What a forest tells about its samples and its memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "base/require.hpp"
#include "orderfree/forest/forest.hpp"

namespace onlineforest::orderfree {

template <class Target>
std::size_t Forest<Target>::n_points() const {
  const auto pass = gate_.reading();
  return sample_of_.size();
}

template <class Target>
std::size_t Forest<Target>::n_seen() const {
  const auto pass = gate_.reading();
  return tenure_.n_seen();
}

template <class Target>
std::vector<Serial> Forest<Target>::serials() const {
  const auto pass = gate_.reading();
  std::vector<Serial> result(tenure_.serials().begin(), tenure_.serials().end());
  std::ranges::sort(result);
  return result;
}

template <class Target>
std::vector<std::uint8_t> Forest<Target>::are_stored(std::span<const Serial> serials) const {
  const auto pass = gate_.reading();
  std::vector<std::uint8_t> result;
  for (const Slot slot : tenure_.slots_of(serials)) result.push_back(slot != kNoSlot);
  return result;
}

template <class Target>
std::vector<typename Target::Value> Forest<Target>::values() const {
  const auto pass = gate_.reading();
  std::vector<Value> result;
  for (const Slot slot : arrivals(0, sample_of_.size())) result.push_back(samples_.value(slot));
  return result;
}

template <class Target>
std::vector<Weight> Forest<Target>::weights() const {
  const auto pass = gate_.reading();
  std::vector<Weight> result;
  for (const Slot arrival : order_of_arrivals()) result.push_back(weight_of_[arrival]);
  return result;
}

template <class Target>
std::vector<Slot> Forest<Target>::sample_numbers() const {
  const auto pass = gate_.reading();
  return arrivals(0, sample_of_.size());
}

template <class Target>
std::vector<std::int64_t> Forest<Target>::n_levels() const {
  const auto pass = gate_.reading();
  std::vector<std::int64_t> result;
  for (std::size_t c = 0; c < options_.layout.n_categorical; ++c) {
    result.push_back(static_cast<std::int64_t>(samples_.levels(c).size()));
  }
  return result;
}

template <class Target>
std::vector<Level> Forest<Target>::levels(std::size_t categorical) const {
  const auto pass = gate_.reading();
  require(categorical < options_.layout.n_categorical, [&] {
    return "there are " + std::to_string(options_.layout.n_categorical) + " categorical features, got " +
           std::to_string(categorical);
  });
  std::vector<Level> result;
  for (const auto& [level, n] : samples_.levels(categorical)) result.push_back(level);
  std::ranges::sort(result);
  return result;
}

template <class Target>
std::uint64_t Forest<Target>::version() const {
  const auto pass = gate_.reading();
  return version_;
}

template <class Target>
std::size_t Forest<Target>::nbytes() const {
  const auto pass = gate_.reading();
  std::size_t n = samples_.nbytes() + tenure_.nbytes() + calibrators_.nbytes() + weight_of_.nbytes();
  n += sample_of_.capacity() * sizeof(Slot);
  for (const auto& grown : trees_) {
    const std::shared_lock lock(grown->mutex);  // a prediction in another thread may cut this tree
    n += sizeof(Grown) + grown->tree.nbytes();
  }
  return n;
}

}  // namespace onlineforest::orderfree
