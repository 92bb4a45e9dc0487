// Forgets samples by serial, by row and value, or by age. Must not know how trees follow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "orderfree/forest/forest.hpp"

namespace onlineforest::orderfree {

template <class Target>
void Forest<Target>::forget(std::span<const Serial> serials, const Call& call) {
  const auto pass = gate_.writing();
  std::vector<Slot> slots = tenure_.slots_of(serials);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    require(slots[i] != kNoSlot,
            [&] { return "the sample with serial " + std::to_string(serials[i]) + " is not stored"; });
  }
  std::vector<Slot> sorted = slots;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  require(twice == sorted.end(), [&] {
    return "the sample with serial " + std::to_string(tenure_.serials()[static_cast<std::size_t>(*twice)]) +
           " is given more than once";
  });
  catch_up(call);
  change({.leaving = std::move(slots)}, call);
}

template <class Target>
std::vector<std::size_t> Forest<Target>::forget(std::span<const float> rows, std::span<const Value> values,
                                                const Call& call) {
  const auto pass = gate_.writing();
  const std::size_t n = n_rows(rows);
  require(values.size() == n,
          [&] { return "there are " + std::to_string(values.size()) + " values for " + std::to_string(n) + " rows"; });
  catch_up(call);
  // The arrivals of each sample that is to be forgotten.
  std::unordered_map<Slot, std::vector<Slot>> arrivals;
  std::vector<Slot> asked(n, kNoSlot);
  std::vector<std::uint8_t> is_asked(samples_.n_slots(), 0);
  std::vector<float> row(options_.layout.width());
  for (std::size_t i = 0; i < n; ++i) {
    if (!ledger_.may_be(values[i], samples_.values())) continue;
    Samples::copy_canonical(rows.data() + i * row.size(), row.size(), row.data());
    asked[i] = samples_.find(row.data(), ledger_.canonical(values[i]));
    if (asked[i] != kNoSlot) is_asked[static_cast<std::size_t>(asked[i])] = 1;
  }
  for (std::size_t i = 0; i < sample_of_.size(); ++i) {
    const Slot slot = sample_of_[i];
    if (is_asked[static_cast<std::size_t>(slot)] != 0) arrivals[slot].push_back(static_cast<Slot>(i));
  }
  for (auto& [slot, list] : arrivals) {  // the oldest arrival last
    std::ranges::sort(list, std::greater(), [this](Slot i) { return tenure_.serials()[static_cast<std::size_t>(i)]; });
  }
  std::vector<std::size_t> missing;
  std::vector<Slot> leaving;
  for (std::size_t i = 0; i < n; ++i) {
    if (asked[i] == kNoSlot || arrivals[asked[i]].empty()) {
      missing.push_back(i);
    } else {
      leaving.push_back(arrivals[asked[i]].back());
      arrivals[asked[i]].pop_back();
    }
  }
  if (missing.empty()) change({.leaving = std::move(leaving)}, call);
  return missing;
}

template <class Target>
void Forest<Target>::keep_latest(std::size_t n, const Call& call) {
  const auto pass = gate_.writing();
  catch_up(call);
  change({.leaving = tenure_.all_but_latest(n)}, call);
}

template <class Target>
void Forest<Target>::count_as_seen(std::size_t n_seen) {
  const auto pass = gate_.writing();
  require(n_seen <= Tenure::kMostSeen, [&] { return "n_seen is " + std::to_string(n_seen) + ", the limit is 2^53"; });
  if (n_seen <= tenure_.n_seen()) return;
  tenure_.take_in(n_seen - tenure_.n_seen(), {{}, {}, tenure_.turned_away()});
}

}  // namespace onlineforest::orderfree
