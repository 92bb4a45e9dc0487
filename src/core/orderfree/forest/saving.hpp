// Saves a forest as a state, and restores a forest from a state. Must not know files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/allowance.hpp"
#include "base/require.hpp"
#include "orderfree/forest/forest.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

// Estimates of the memory of a fully grown forest, in bytes.
inline constexpr std::size_t kBytesOfSample = 130, kBytesOfArrival = 40,
                             kBytesOfFeature = 16;  // without rows and trees
inline constexpr std::size_t kBytesOfTree = 700, kBytesOfSampleInTree = 100;

// Returns a * b, or the largest std::size_t if the product overflows.
[[nodiscard]] inline std::size_t product(std::size_t a, std::size_t b) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return b != 0 && a > most / b ? most : a * b;
}

template <class Target>
ForestState<Target> Forest<Target>::save() const {
  const auto pass = gate_.reading();
  State state;
  state.options = options_;
  state.ledger = ledger_.save(samples_.values());
  bool all_count_once = true;
  std::vector<Slot> number(samples_.n_slots(), kNoSlot);
  for (const Slot arrival : order_of_arrivals()) {
    const auto i = static_cast<std::size_t>(arrival);
    const Slot slot = sample_of_[i];
    Slot& sample = number[static_cast<std::size_t>(slot)];
    if (sample == kNoSlot) {
      sample = static_cast<Slot>(state.values.size());
      state.rows.insert(state.rows.end(), samples_.row(slot), samples_.row(slot) + options_.layout.width());
      state.values.push_back(samples_.value(slot));
    }
    state.sample_of.push_back(sample);
    state.serials.push_back(tenure_.serials()[i]);
    state.weights.push_back(weight_of_[arrival]);
    all_count_once = all_count_once && state.weights.back() == kOne;
  }
  if (all_count_once) state.weights.clear();
  state.n_seen = tenure_.n_seen();
  state.turned_away = tenure_.turned_away();
  return state;
}

template <class Target>
const Options& Forest<Target>::options_within(const State& state, std::size_t max_bytes) {
  check_options(state.options);
  const std::size_t n = state.values.size();
  Allowance memory(max_bytes);
  memory.take(state.rows.size() * sizeof(float) + n * kBytesOfSample + state.serials.size() * kBytesOfArrival);
  memory.take(state.options.layout.width() * kBytesOfFeature);
  if (state.options.calibrates) {
    memory.take(product(n, state.options.layout.n_categorical * Target::Levels::kBytesOfLevel));
  }
  memory.take(product(state.options.n_trees, kBytesOfTree + n * kBytesOfSampleInTree));
  return state.options;
}

template <class Target>
void Forest<Target>::take_in(const State& state) {
  ledger_.restore(state.ledger, samples_.values());
  check_sizes(state);
  check_weights(state.weights);
  (void)check_rows(state.rows);
  ledger_.check(state.values, samples_.values());
  ledger_.reserve();
  if (options_.calibrates) calibrators_.refill(state.values.size(), 0);
  take_in_arrivals(state);
  tenure_.restore(state.serials, state.n_seen, state.turned_away);
  if (options_.calibrates) {
    calibrators_.choose([&](Slot slot, bool calibrates) { samples_.set_calibrates(slot, calibrates); });
  }
  ledger_.finish();
  is_behind_ = true;
  for (const auto& grown : trees_) grown->is_behind = grown->must_regrow = true;
}

template <class Target>
void Forest<Target>::check_sizes(const State& state) {
  const std::size_t n = state.values.size(), n_arrivals = state.sample_of.size();
  const std::size_t width = state.options.layout.width();
  require(state.rows.size() == n * width, [&] {
    return "rows hold " + std::to_string(state.rows.size()) + " values, but " + std::to_string(n) + " samples of " +
           std::to_string(width) + " cells have " + std::to_string(n * width);
  });
  require(n_arrivals == state.serials.size(), [&] {
    return "there are " + std::to_string(n_arrivals) + " arrivals, but " + std::to_string(state.serials.size()) +
           " serials";
  });
  require(n_arrivals <= Samples::kMostSamples, [&] {
    return "there are " + std::to_string(n_arrivals) + " arrivals, at most " + std::to_string(Samples::kMostSamples) +
           " are allowed";
  });
  require(state.weights.empty() || state.weights.size() == n_arrivals, [&] {
    return "there are " + std::to_string(n_arrivals) + " arrivals, but " + std::to_string(state.weights.size()) +
           " weights";
  });
}

template <class Target>
void Forest<Target>::take_in_arrivals(const State& state) {
  const std::size_t n = state.values.size(), width = options_.layout.width();
  std::vector<std::uint8_t> is_held(n, 0);
  std::vector<float> row(width);
  weight_of_.append(state.weights, 0);
  for (std::size_t arrival = 0; arrival < state.sample_of.size(); ++arrival) {
    const Slot sample = state.sample_of[arrival];
    const Weight weight = weight_of_[static_cast<Slot>(arrival)];
    require(sample >= 0 && static_cast<std::size_t>(sample) < n, [&] {
      return "arrival " + std::to_string(arrival) + " has sample " + std::to_string(sample) +
             ", which is outside [0, " + std::to_string(n) + ")";
    });
    const auto i = static_cast<std::size_t>(sample);
    const Value value = ledger_.canonical(state.values[i]);
    Samples::copy_canonical(state.rows.data() + i * width, width, row.data());
    require(is_held[i] != 0 || samples_.find(row.data(), value) == kNoSlot,
            [&] { return "sample " + std::to_string(i) + " equals an earlier one"; });
    require(weight <= kMostWeight - total_weight_, [&] {
      return "arrival " + std::to_string(arrival) + " raises the total weight of the samples to " +
             std::to_string((total_weight_ + weight) / kOne) + "; at most " + std::to_string(kMostWeight / kOne) +
             " is allowed";
    });
    total_weight_ += weight;
    levels_.add(row.data(), value, weight);
    const Slot slot = samples_.add(row.data(), value, weight);
    if (options_.calibrates && is_held[i] == 0) calibrators_.insert(slot);
    is_held[i] = 1;
    sample_of_.push_back(slot);
    ledger_.add(value, weight);
  }
  const auto unheld = std::ranges::find(is_held, 0);
  require(unheld == is_held.end(),
          [&] { return "sample " + std::to_string(unheld - is_held.begin()) + " has no arrival"; });
}

}  // namespace onlineforest::orderfree
