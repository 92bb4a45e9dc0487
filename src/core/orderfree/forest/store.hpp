// Changes the set of samples: stores samples that come, removes arrivals that leave, and notes the changes for the
// trees.
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
      levels_(options_.calibrates ? options_.layout : Layout{}),
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
    return "rows hold " + std::to_string(rows.size()) + " numbers, which is not a multiple of the " +
           std::to_string(width) + " cells of a row";
  });
  return rows.size() / width;
}

template <class Target>
bool Forest<Target>::check_rows(std::span<const float> rows) const {
  const Layout& layout = options_.layout;
  const std::size_t width = layout.width(), n_numeric = layout.n_numeric();
  bool lacks = false;
  const auto check_numbers = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      require(!std::isinf(rows[i]), [&] {
        return "row " + std::to_string(i / width) + ", feature " + std::to_string(i % width) +
               ": the value is infinite";
      });
      lacks = lacks || is_missing(rows[i]);
    }
  };
  if (layout.n_categorical == 0) {
    check_numbers(0, rows.size());
    return !lacks;
  }
  for (std::size_t begin = 0; begin < rows.size(); begin += width) {
    check_numbers(begin, begin + n_numeric);
    for (std::size_t cell = n_numeric; cell < width; ++cell) {
      require(HashCell::may_be(rows[begin + cell]), [&] {
        return "row " + std::to_string(begin / width) + ", categorical feature " +
               std::to_string(layout.feature_of(cell) - n_numeric) + ": the cells do not encode a level";
      });
    }
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
    return "the range of samples [" + std::to_string(begin) + ", " + std::to_string(end) + ") is not within [0, " +
           std::to_string(sample_of_.size()) + ")";
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
  catch_up(call);  // finishes the changes of a call that was interrupted
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

// Stores the samples that come, removes the arrivals that leave, and lets the trees follow.
template <class Target>
void Forest<Target>::change(SetChange set_change, const Call& call) {
  check_room(set_change);
  std::ranges::sort(set_change.leaving, std::greater());
  const std::vector<Move> moves = moves_after(set_change.leaving, sample_of_.size());
  Notes notes;
  make_room(set_change, notes);
  const std::vector<Slot> came = store_coming(set_change, notes);
  // From here to the end of find_changes(), no step allocates memory, so none can fail.
  subtract_leaving(set_change.leaving, notes);
  if (options_.calibrates) choose_calibrators(notes);
  replace_arrivals(set_change, moves, came);
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
void Forest<Target>::check_room(const SetChange& set_change) const {
  const Weight weight = set_change.total_weight();
  require(weight <= kMostWeight - total_weight_, [&] {
    return "the samples of a forest cannot have a total weight of " + std::to_string((total_weight_ + weight) / kOne) +
           "; at most " + std::to_string(kMostWeight / kOne);
  });
  const std::size_t n = set_change.values.size();
  require(n <= Samples::kMostSamples - sample_of_.size(), [&] {
    return "a forest cannot hold " + std::to_string(sample_of_.size() + n) + " samples; at most " +
           std::to_string(Samples::kMostSamples);
  });
}

// Allocates the memory that the later steps need, except that of store_coming(): then no later step can fail.
template <class Target>
void Forest<Target>::make_room(const SetChange& set_change, Notes& notes) {
  const std::size_t n_coming = set_change.values.size(), n_leaving = set_change.leaving.size();
  ledger_.reserve();
  // Besides its own note, a sample that comes or leaves causes at most four others, of samples that become calibrators
  // or cease to be.
  const std::size_t n_notes = 5 * (n_coming + n_leaving);
  notes.reserve(n_notes);
  changes_.clear();
  changes_.reserve(n_notes);
  if (options_.calibrates) calibrators_.refill(n_coming, n_leaving);
  tenure_.reserve(n_coming);
  if (const std::size_t n = sample_of_.size() + n_coming; n > sample_of_.capacity()) {
    sample_of_.reserve(std::max(n, sample_of_.capacity() + sample_of_.capacity() / 4));
  }
  if (!set_change.weights.empty() || !weight_of_.empty()) weight_of_.reserve(sample_of_.size(), n_coming);
}

// Stores the samples that come and returns their slots. If memory runs out, undoes all changes.
template <class Target>
std::vector<Slot> Forest<Target>::store_coming(const SetChange& set_change, Notes& notes) {
  std::vector<Slot> came;
  came.reserve(set_change.values.size());
  const auto row = [&](std::size_t i) { return set_change.rows.data() + i * options_.layout.width(); };
  std::size_t n_counted = 0;
  try {
    for (std::size_t i = 0; i < set_change.values.size(); ++i) {
      const Weight weight = set_change.weight(i);
      levels_.add(row(i), set_change.values[i], weight);
      ++n_counted;
      const Slot slot = samples_.add(row(i), set_change.values[i], weight);
      came.push_back(slot);
      notes.add({slot, samples_.weight(slot) - weight, samples_.calibrates(slot)});
      if (options_.calibrates && samples_.weight(slot) == weight) calibrators_.insert(slot);
    }
  } catch (...) {
    for (std::size_t i = 0; i < n_counted; ++i) levels_.subtract(row(i), set_change.values[i], set_change.weight(i));
    for (std::size_t i = 0; i < came.size(); ++i) {
      const Slot slot = came[i];
      samples_.subtract(slot, set_change.weight(i));
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
    levels_.subtract(samples_.row(slot), samples_.value(slot), weight_of_[arrival]);
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

// Removes the arrivals that leave, and appends the new ones.
template <class Target>
void Forest<Target>::replace_arrivals(const SetChange& set_change, std::span<const Move> moves,
                                      std::span<const Slot> came) {
  for (const Move& move : moves) {
    sample_of_[static_cast<std::size_t>(move.to)] = sample_of_[static_cast<std::size_t>(move.from)];
  }
  sample_of_.resize(sample_of_.size() - set_change.leaving.size());
  weight_of_.remove(set_change.leaving, moves);
  tenure_.remove(set_change.leaving, moves);
  if (set_change.admission != nullptr) {
    total_weight_ += set_change.total_weight();
    weight_of_.append(set_change.weights, set_change.values.size());
    sample_of_.insert(sample_of_.end(), came.begin(), came.end());
    tenure_.take_in(set_change.n_came, *set_change.admission);
  }
  if (sample_of_.empty()) tenure_.reset_turned_away();
}

// Finds the samples whose weight or choice as a calibrator has changed. Releases samples that came and left in one
// change.
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
    return "categorical feature " + std::to_string(categorical) + " is outside [0, " +
           std::to_string(options_.layout.n_categorical) + ")";
  });
  std::vector<Level> result;
  for (const auto& [level, n] : samples_.levels(categorical)) result.push_back(level);
  std::ranges::sort(result);
  return result;
}

}  // namespace onlineforest::orderfree
