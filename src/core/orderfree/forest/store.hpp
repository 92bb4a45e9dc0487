// How a forest stores samples that come and removes those that leave, with every note that its trees need.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "orderfree/forest/forest.hpp"
#include "samples/moves.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

[[nodiscard]] inline const Options& checked(const Options& options) {
  check_options(options);
  return options;
}

template <class Target>
Forest<Target>::Forest(const Options& options)
    : options_(checked(options)),
      samples_(options_.layout, options_.seed, options_.key_bits),
      calibrators_(samples_),
      tenure_(options_.keep, options_.seed) {
  trees_.reserve(options_.n_trees);
  for (std::size_t i = 0; i < options_.n_trees; ++i) {
    trees_.push_back(std::make_unique<Grown>(options_, options_.first_tree + i));
  }
}

template <class Target>
std::size_t Forest<Target>::n_rows(std::span<const float> rows) const {
  const std::size_t width = options_.layout.width();
  require(rows.size() % width == 0, [&] {
    return "rows hold " + std::to_string(rows.size()) + " values, which is no multiple of the " +
           std::to_string(width) + " cells of a row";
  });
  return rows.size() / width;
}

template <class Target>
bool Forest<Target>::check_rows(std::span<const float> rows) const {
  const Layout& layout = options_.layout;
  bool lacks = false;
  const auto check = [&lacks](std::span<const float> numbers) {
    for (const float x : numbers) {
      require(!std::isinf(x), "rows contain infinity");
      lacks = lacks || is_missing(x);
    }
  };
  if (layout.n_categorical == 0) {
    check(rows);
    return !lacks;
  }
  for (; !rows.empty(); rows = rows.subspan(layout.width())) {
    check(rows.first(layout.n_numeric()));
    const auto levels = rows.first(layout.width()).subspan(layout.n_numeric());
    require(std::ranges::all_of(levels, HashCell::may_be), "rows contain something that is no level");
  }
  return false;
}

template <class Target>
std::vector<Slot> Forest<Target>::order_of_arrivals() const {
  const std::span<const Serial> serials = tenure_.serials();
  std::vector<Slot> order(serials.size());
  std::iota(order.begin(), order.end(), Slot{0});
  const auto serial_of = [&](Slot i) { return serials[static_cast<std::size_t>(i)]; };
  if (!std::ranges::is_sorted(serials)) std::ranges::sort(order, {}, serial_of);
  return order;
}

template <class Target>
std::vector<Slot> Forest<Target>::arrivals(std::size_t begin, std::size_t end) const {
  require(begin <= end && end <= sample_of_.size(), [&] {
    return "the samples [" + std::to_string(begin) + ", " + std::to_string(end) + ") are not among the " +
           std::to_string(sample_of_.size()) + " that are stored";
  });
  std::vector<Slot> slots;
  const std::vector<Slot> order = order_of_arrivals();
  for (const Slot i : std::span(order).subspan(begin, end - begin)) {
    slots.push_back(sample_of_[static_cast<std::size_t>(i)]);
  }
  return slots;
}

template <class Target>
void Forest<Target>::learn(std::span<const float> rows, std::span<const Value> values, std::span<const Weight> weights,
                           const Call& call) {
  const auto pass = gate_.writing();
  const std::size_t n = n_rows(rows);
  require(values.size() == n,
          [&] { return "there are " + std::to_string(values.size()) + " values for " + std::to_string(n) + " rows"; });
  require(weights.empty() || weights.size() == n, [&] {
    return "there are " + std::to_string(weights.size()) + " weights for " + std::to_string(n) + " rows";
  });
  ledger_.check(values, samples_.values());
  (void)check_rows(rows);
  check_weights(weights);
  if (std::ranges::all_of(weights, [](Weight weight) { return weight == kOne; })) weights = {};
  catch_up(call);  // finishes what a stopped call left
  Tenure::Admission admission = tenure_.admit(n);
  const std::size_t width = options_.layout.width();
  std::vector<float> taken_rows(admission.taken.size() * width);
  std::vector<Value> taken_values;
  std::vector<Weight> taken_weights;
  taken_values.reserve(admission.taken.size());
  for (const std::size_t i : admission.taken) {
    Samples::copy_canonical(rows.data() + i * width, width, taken_rows.data() + taken_values.size() * width);
    taken_values.push_back(ledger_.canonical(values[i]));
    if (!weights.empty()) taken_weights.push_back(weights[i]);
  }
  change({taken_rows, taken_values, taken_weights, std::exchange(admission.leaving, {}), &admission, n}, call);
}

// Stores samples that come and removes arrivals that leave, then brings the trees in line.
template <class Target>
void Forest<Target>::change(Exchange exchange, const Call& call) {
  check_room(exchange);
  std::ranges::sort(exchange.leaving, std::greater());
  const std::vector<Move> moves = moves_after(exchange.leaving, sample_of_.size());
  Notes notes;
  make_room(exchange, notes);
  const std::vector<Slot> came = store_coming(exchange, notes);
  // From here to the end of the notes, nothing can fail.
  subtract_leaving(exchange.leaving, notes);
  if (options_.calibrates) choose_calibrators(notes);
  replace_arrivals(exchange, moves, came);
  find_changes(notes);
  if (changes_.empty()) return;
  ++version_;
  is_behind_ = true;
  for (const auto& grown : trees_) {
    grown->is_behind = true;
    grown->is_fully_grown = false;
  }
  catch_up(call);
}

template <class Target>
void Forest<Target>::check_room(const Exchange& exchange) const {
  const Weight weight = exchange.total_weight();
  require(weight <= kMostWeight - total_weight_, [&] {
    return "the samples of a forest cannot have a total weight of " + std::to_string((total_weight_ + weight) / kOne) +
           "; at most " + std::to_string(kMostWeight / kOne);
  });
  const std::size_t n = exchange.values.size();
  require(n <= Samples::kMostSamples - sample_of_.size(), [&] {
    return "a forest cannot hold " + std::to_string(sample_of_.size() + n) + " samples; at most " +
           std::to_string(Samples::kMostSamples);
  });
}

// Takes all memory that the steps of a change need, except that of the samples themselves.
template <class Target>
void Forest<Target>::make_room(const Exchange& exchange, Notes& notes) {
  const std::size_t n_coming = exchange.values.size(), n_leaving = exchange.leaving.size();
  ledger_.reserve();
  // A sample that comes or leaves moves at most four others to or from the calibrators.
  const std::size_t n_notes = 5 * (n_coming + n_leaving);
  notes.reserve(n_notes);
  changes_.clear();
  changes_.reserve(n_notes);
  if (options_.calibrates) calibrators_.refill(n_coming, n_leaving);
  tenure_.reserve(n_coming);
  if (const std::size_t n = sample_of_.size() + n_coming; n > sample_of_.capacity()) {
    sample_of_.reserve(std::max(n, sample_of_.capacity() + sample_of_.capacity() / 4));
  }
  if (!exchange.weights.empty() || !weight_of_.empty()) weight_of_.reserve(sample_of_.size(), n_coming);
}

// Stores the samples that come; returns the sample of each. If memory runs out, nothing has changed.
template <class Target>
std::vector<Slot> Forest<Target>::store_coming(const Exchange& exchange, Notes& notes) {
  std::vector<Slot> came;
  came.reserve(exchange.values.size());
  try {
    for (std::size_t i = 0; i < exchange.values.size(); ++i) {
      const Weight weight = exchange.weight(i);
      const Slot slot = samples_.add(exchange.rows.data() + i * options_.layout.width(), exchange.values[i], weight);
      came.push_back(slot);
      notes.add({slot, samples_.weight(slot) - weight, samples_.calibrates(slot)});
      if (options_.calibrates && samples_.weight(slot) == weight) calibrators_.insert(slot);
    }
  } catch (...) {
    for (std::size_t i = 0; i < came.size(); ++i) {
      const Slot slot = came[i];
      samples_.subtract(slot, exchange.weight(i));
      if (samples_.weight(slot) > 0) continue;
      if (options_.calibrates) calibrators_.erase(slot);
      samples_.release(slot);
    }
    throw;
  }
  return came;
}

template <class Target>
void Forest<Target>::subtract_leaving(std::span<const Slot> leaving, Notes& notes) {
  for (const Slot arrival : leaving) {
    const Slot slot = sample_of_[static_cast<std::size_t>(arrival)];
    notes.add({slot, samples_.weight(slot), samples_.calibrates(slot)});
    samples_.subtract(slot, weight_of_[arrival]);
    total_weight_ -= weight_of_[arrival];
    if (options_.calibrates && samples_.weight(slot) == 0) calibrators_.erase(slot);
  }
}

template <class Target>
void Forest<Target>::choose_calibrators(Notes& notes) {
  calibrators_.choose([&](Slot slot, bool calibrates) {
    notes.add({slot, samples_.weight(slot), samples_.calibrates(slot)});
    samples_.set_calibrates(slot, calibrates);
  });
}

// Removes the arrivals that leave, and appends those that came.
template <class Target>
void Forest<Target>::replace_arrivals(const Exchange& exchange, std::span<const Move> moves,
                                      std::span<const Slot> came) {
  for (const Move& move : moves) {
    sample_of_[static_cast<std::size_t>(move.to)] = sample_of_[static_cast<std::size_t>(move.from)];
  }
  sample_of_.resize(sample_of_.size() - exchange.leaving.size());
  weight_of_.remove(exchange.leaving, moves);
  tenure_.remove(exchange.leaving, moves);
  if (exchange.admission != nullptr) {
    total_weight_ += exchange.total_weight();
    weight_of_.append(exchange.weights, exchange.values.size());
    sample_of_.insert(sample_of_.end(), came.begin(), came.end());
    tenure_.take_in(exchange.n_came, *exchange.admission);
  }
  if (sample_of_.empty()) tenure_.reset_turned_away();
}

// Finds the samples that differ from before. Those that came and left at once are released.
template <class Target>
void Forest<Target>::find_changes(Notes& notes) {
  notes.combine(changes_);
  for (const Change& change : changes_) {
    const Weight by = samples_.weight(change.slot) - change.weight_before;
    if (by != 0) ledger_.add(samples_.value(change.slot), by);
  }
  ledger_.finish();
  std::erase_if(changes_, [this](const Change& change) {
    const bool is_same = samples_.weight(change.slot) == change.weight_before &&
                         samples_.calibrates(change.slot) == change.calibrated_before;
    if (is_same && change.weight_before == 0) samples_.release(change.slot);
    return is_same;
  });
}

template <class Target>
std::vector<std::uint8_t> Forest<Target>::are_stored(std::span<const Serial> serials) const {
  const auto pass = gate_.reading();
  std::vector<std::uint8_t> result;
  for (const Slot slot : tenure_.slots_of(serials)) result.push_back(slot != kNoSlot);
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

}  // namespace onlineforest::orderfree
