// What forests of labels and of numbers do with their samples and trees.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/allowance.hpp"
#include "base/require.hpp"
#include "orderfree/forest/forest.hpp"
#include "orderfree/tree/importances.hpp"

namespace onlineforest::orderfree {

[[nodiscard]] inline const Options& checked(const Options& options) {
  check_options(options);
  return options;
}

// Memory of a forest whose trees are grown, about.
inline constexpr std::size_t kBytesOfSample = 130, kBytesOfArrival = 40, kBytesOfFeature = 16;  // beside rows and trees
inline constexpr std::size_t kBytesOfTree = 700, kBytesOfSampleInTree = 100;

// The largest number instead of one that is larger.
[[nodiscard]] inline std::size_t product(std::size_t a, std::size_t b) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return b != 0 && a > most / b ? most : a * b;
}

// A change, and when it was noted.
struct Noted {
  Change change;
  std::size_t position;
};

// Keeps the first change of each sample: it says how the sample was before. Takes no memory if `changes` has enough.
inline void combine(std::vector<Noted>& noted, std::vector<Change>& changes) {
  std::ranges::sort(noted, [](const Noted& a, const Noted& b) {
    return a.change.slot != b.change.slot ? a.change.slot < b.change.slot : a.position < b.position;
  });
  for (const Noted& one : noted) {
    if (changes.empty() || changes.back().slot != one.change.slot) changes.push_back(one.change);
  }
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
  const std::span<const float> rows = exchange.rows;
  const std::span<const Value> values = exchange.values;
  const std::span<const Weight> weights = exchange.weights;
  std::vector<Slot>& leaving = exchange.leaving;
  const auto weight_of_coming = [&](std::size_t i) { return weights.empty() ? kOne : weights[i]; };
  Weight weight_coming = 0;
  for (std::size_t i = 0; i < values.size(); ++i) weight_coming += weight_of_coming(i);
  require(weight_coming <= kMostWeight - total_weight_, [&] {
    return "the samples of a forest cannot have a total weight of " +
           std::to_string((total_weight_ + weight_coming) / kOne) + "; at most " + std::to_string(kMostWeight / kOne);
  });
  require(values.size() <= Samples::kMostSamples - sample_of_.size(), [&] {
    return "a forest cannot hold " + std::to_string(sample_of_.size() + values.size()) + " samples; at most " +
           std::to_string(Samples::kMostSamples);
  });
  // What follows the first change of the store cannot fail.
  ledger_.reserve();
  std::ranges::sort(leaving, std::greater());
  const std::vector<Move> moves = moves_after(leaving, sample_of_.size());
  std::vector<Noted> noted;
  // A sample that comes or leaves moves at most four others to or from the calibrators.
  noted.reserve(5 * (values.size() + leaving.size()));
  changes_.clear();
  changes_.reserve(noted.capacity());
  if (options_.calibrates) calibrators_.prepare(values.size(), leaving.size());
  std::vector<Slot> coming;
  coming.reserve(values.size());
  tenure_.reserve(values.size());
  if (const std::size_t n = sample_of_.size() + values.size(); n > sample_of_.capacity()) {
    sample_of_.reserve(std::max(n, sample_of_.capacity() + sample_of_.capacity() / 4));
  }
  if (!weights.empty() || !weight_of_.empty()) weight_of_.reserve(sample_of_.size(), values.size());
  const auto note = [&](Slot slot, Weight weight) {
    noted.push_back({{slot, weight, samples_.calibrates(slot)}, noted.size()});
  };
  try {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Weight weight = weight_of_coming(i);
      const Slot slot = samples_.add(rows.data() + i * options_.layout.width(), values[i], weight);
      coming.push_back(slot);
      note(slot, samples_.weight(slot) - weight);
      if (options_.calibrates && samples_.weight(slot) == weight) calibrators_.insert(slot);
    }
  } catch (...) {  // no memory: nothing has changed
    for (std::size_t i = 0; i < coming.size(); ++i) {
      const Slot slot = coming[i];
      samples_.subtract(slot, weight_of_coming(i));
      if (samples_.weight(slot) > 0) continue;
      if (options_.calibrates) calibrators_.erase(slot);
      samples_.release(slot);
    }
    throw;
  }
  for (const Slot arrival : leaving) {
    const Slot slot = sample_of_[static_cast<std::size_t>(arrival)];
    note(slot, samples_.weight(slot));
    samples_.subtract(slot, weight_of_[arrival]);
    total_weight_ -= weight_of_[arrival];
    if (options_.calibrates && samples_.weight(slot) == 0) calibrators_.erase(slot);
  }
  if (options_.calibrates) {
    calibrators_.choose([&](Slot slot, bool calibrates) {
      note(slot, samples_.weight(slot));
      samples_.set_calibrates(slot, calibrates);
    });
  }
  for (const Move& move : moves) {
    sample_of_[static_cast<std::size_t>(move.to)] = sample_of_[static_cast<std::size_t>(move.from)];
  }
  sample_of_.resize(sample_of_.size() - leaving.size());
  weight_of_.remove(leaving, moves);
  tenure_.remove(leaving, moves);
  if (exchange.admission != nullptr) {
    total_weight_ += weight_coming;
    weight_of_.append(weights, values.size());
    sample_of_.insert(sample_of_.end(), coming.begin(), coming.end());
    tenure_.take_in(exchange.n_came, *exchange.admission);
  }
  combine(noted, changes_);
  for (const Change& change : changes_) {
    const Weight by = samples_.weight(change.slot) - change.weight_before;
    if (by != 0) ledger_.add(samples_.value(change.slot), by);
  }
  ledger_.finish();
  if (sample_of_.empty()) tenure_.reset_turned_away();
  std::erase_if(changes_, [this](const Change& change) {
    const bool is_same = samples_.weight(change.slot) == change.weight_before &&
                         samples_.calibrates(change.slot) == change.calibrated_before;
    if (is_same && change.weight_before == 0) samples_.release(change.slot);  // came and left at once
    return is_same;
  });
  if (changes_.empty()) return;
  ++version_;
  is_behind_ = true;
  for (const auto& grown : trees_) {
    grown->is_behind = true;
    grown->is_complete = false;
  }
  catch_up(call);
}

template <class Target>
void Forest<Target>::catch_up_tree(Grown& grown, Scratch& scratch, StopProbe& stop, bool needs_many) const {
  if (!grown.is_behind) return;
  const bool must_regrow = std::exchange(grown.must_regrow, true);  // until all changes are applied
  grown.is_complete = false;
  try {
    if (must_regrow) {
      grown.tree.regrow(samples_, scratch, stop, needs_many);
    } else {
      grown.tree.apply(samples_, changes_, scratch, stop);
    }
  } catch (...) {
    scratch.clear();
    throw;
  }
  grown.must_regrow = grown.is_behind = false;
}

template <class Target>
void Forest<Target>::catch_up(const Call& call) {
  if (!is_behind_) return;
  // To learn a sample by itself costs about as much as to grow so many in a set.
  constexpr std::size_t kCheaper = 40;
  const bool are_many = changes_.size() * kCheaper > samples_.n_distinct();
  const bool are_lost =
      std::ranges::any_of(changes_, [this](const Change& change) { return samples_.weight(change.slot) == 0; });
  bool must_all_regrow = true;
  for (const auto& grown : trees_) {
    if (are_many || grown->tree.empty() || grown->tree.is_uncut()) grown->must_regrow = true;
    must_all_regrow = must_all_regrow && grown->must_regrow;
  }
  if (are_lost || !must_all_regrow) {  // otherwise trees wait until they are used
    call.parallel_for(trees_.size(), [&] {
      return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) {
        Grown& grown = *trees_[i];
        if (!grown.must_regrow) {
          catch_up_tree(grown, *loan, stop, false);
        } else if (are_lost) {
          grown.tree.clear();  // nothing of a lost sample stays in memory
        }
      };
    });
  }
  for (const Change& change : changes_) {
    if (samples_.weight(change.slot) == 0) samples_.release(change.slot);
  }
  changes_.clear();
  is_behind_ = false;
}

// Runs work that may cut blocks of a tree. A stop leaves the tree as it should be; after any other exception, such as
// a lack of memory, it is grown again.
template <class Target>
template <class Work>
void Forest<Target>::change_tree(Grown& grown, Scratch& scratch, Work work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    grown.is_behind = grown.must_regrow = true;
    grown.is_complete = false;
    scratch.clear();
    throw;
  }
}

template <class Target>
void Forest<Target>::complete(const Call& call) {
  const auto pass = gate_.writing();
  catch_up(call);
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) {
      Grown& grown = *trees_[i];
      catch_up_tree(grown, *loan, stop, true);
      change_tree(grown, *loan, [&] { grown.tree.complete(samples_, *loan, stop); });
      grown.is_complete = true;
    };
  });
}

template <class Target>
void Forest<Target>::forget(std::span<const Serial> serials, const Call& call) {
  const auto pass = gate_.writing();
  std::vector<Slot> slots = tenure_.slots_of(serials);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    require(slots[i] != kNoSlot,
            [&] { return "the point with serial " + std::to_string(serials[i]) + " is not stored"; });
  }
  std::vector<Slot> sorted = slots;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  require(twice == sorted.end(), [&] {
    return "the point with serial " + std::to_string(tenure_.serials()[static_cast<std::size_t>(*twice)]) +
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
  // The arrivals of the samples that are asked for.
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
  for (auto& [slot, list] : arrivals) {  // the oldest last
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
  require(n_seen <= Tenure::kMostSeen,
          [&] { return "a forest cannot have seen " + std::to_string(n_seen) + " points: the limit is 2^53"; });
  if (n_seen <= tenure_.n_seen()) return;
  tenure_.take_in(n_seen - tenure_.n_seen(), {{}, {}, tenure_.turned_away()});
}

template <class Target>
void Forest<Target>::prepare_for(std::size_t n_rows, const Call& call) const {
  if (call.n_threads() == 1 || !need_all(n_rows)) return;
  std::vector<std::size_t> incomplete;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    const std::shared_lock lock(trees_[t]->mutex);
    if (!trees_[t]->is_complete) incomplete.push_back(t);
  }
  if (incomplete.empty()) return;
  call.parallel_for(incomplete.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) {
      with_tree(incomplete[i], n_rows, *loan, stop, [](OneTree&) {});
    };
  });
}

template <class Target>
template <class Use>
void Forest<Target>::with_tree(std::size_t index, std::size_t n_rows, Scratch& scratch, StopProbe& stop,
                               Use use) const {
  constexpr std::size_t kManyRows = 16;  // whose cuts are worth the ranks of all samples
  Grown& grown = *trees_[index];
  scratch.loaded = nullptr;
  {
    const std::shared_lock lock(grown.mutex);
    if (grown.is_complete) {
      use(grown.tree);
      return;
    }
  }
  const std::unique_lock lock(grown.mutex);
  const bool needs_all = need_all(n_rows);
  catch_up_tree(grown, scratch, stop, n_rows >= kManyRows);
  change_tree(grown, scratch, [&] {
    if (needs_all) grown.tree.complete(samples_, scratch, stop);
    use(grown.tree);
  });
  if (needs_all) grown.is_complete = true;
}

template <class Target>
template <class AnswerOf, class Use>
void Forest<Target>::predict_row(const float* row, bool is_plain, AnswerOf answer_of, Scratch& scratch, StopProbe& stop,
                                 Use use) const {
  constexpr std::size_t kTogether = OneTree::kTogether;
  for (std::size_t first = 0; first < trees_.size(); first += kTogether) {
    const std::size_t n = std::min(kTogether, trees_.size() - first);
    std::array<const OneTree*, kTogether> flat;
    std::array<std::size_t, kTogether> flat_at, others;
    std::size_t n_flat = 0, n_others = 0;
    {
      std::array<std::shared_lock<std::shared_mutex>, kTogether> locks;
      for (std::size_t t = first; t < first + n; ++t) {
        const Grown& grown = *trees_[t];
        std::shared_lock lock(trees_[t]->mutex);
        if (grown.is_complete && grown.tree.is_flat()) {
          flat[n_flat] = &grown.tree;
          flat_at[n_flat] = t;
          locks[n_flat++] = std::move(lock);
        } else {
          others[n_others++] = t;
        }
      }
      OneTree::predict_together({flat.data(), n_flat}, row, is_plain,
                                [&](std::size_t i) -> typename Target::Answer { return answer_of(flat_at[i]); });
    }
    for (std::size_t i = 0; i < n_others; ++i) {
      with_tree(others[i], 1, scratch, stop, [&](OneTree& tree) { use(others[i], tree); });
    }
  }
}

template <class Target>
TreeTable<Target> Forest<Target>::table(std::size_t index, const Call& call) const {
  const auto pass = gate_.reading();
  require(index < trees_.size(),
          [&] { return "tree " + std::to_string(index) + " is outside [0, " + std::to_string(trees_.size()) + ")"; });
  const auto loan = scratches_.lend();
  StopProbe stop = call.probe();
  return table_of(index, *loan, stop);
}

template <class Target>
TreeTable<Target> Forest<Target>::table_of(std::size_t index, Scratch& scratch, StopProbe& stop) const {
  Grown& grown = *trees_[index];
  const std::unique_lock lock(grown.mutex);
  catch_up_tree(grown, scratch, stop, true);
  Table table;
  change_tree(grown, scratch, [&] { table = grown.tree.table(samples_, scratch, stop); });
  grown.is_complete = true;
  return table;
}

template <class Target>
std::vector<NodeIndex> Forest<Target>::apply(std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n = n_rows(rows);
  (void)check_rows(rows);
  std::vector<NodeIndex> result(n * trees_.size(), kNoNode);
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t t, StopProbe& stop) {
      const Table table = table_of(t, *loan, stop);
      if (table.cell.empty()) return;
      for (std::size_t i = 0; i < n; ++i) {
        result[i * trees_.size() + t] = table.leaf_of(rows.data() + i * options_.layout.width());
        stop.tick(64);
      }
    };
  });
  return result;
}

template <class Target>
std::vector<double> Forest<Target>::importances(const Call& call) const {
  const auto pass = gate_.reading();
  std::vector<std::vector<double>> by_tree(trees_.size());
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t t, StopProbe& stop) {
      const Table table = table_of(t, *loan, stop);
      by_tree[t] =
          leaves_out() ? left_out_decreases(samples_, trees_[t]->tree, table, stop) : decreases(table, options_.layout);
    };
  });
  std::vector<double> result;
  result.reserve(trees_.size() * options_.layout.n_features);
  for (const std::vector<double>& one : by_tree) result.insert(result.end(), one.begin(), one.end());
  return result;
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
  memory.take(product(state.options.n_trees, kBytesOfTree + n * kBytesOfSampleInTree));
  return state.options;
}

template <class Target>
void Forest<Target>::take_in(const State& state) {
  ledger_.restore(state.ledger, samples_.values());
  const std::size_t n = state.values.size(), width = options_.layout.width();
  require(state.rows.size() == n * width, [&] {
    return "rows hold " + std::to_string(state.rows.size()) + " values, but " + std::to_string(n) + " samples of " +
           std::to_string(width) + " cells have " + std::to_string(n * width);
  });
  require(state.sample_of.size() == state.serials.size(), [&] {
    return "there are " + std::to_string(state.sample_of.size()) + " arrivals, but " +
           std::to_string(state.serials.size()) + " serials";
  });
  require(state.sample_of.size() <= Samples::kMostSamples, [&] {
    return "there are " + std::to_string(state.sample_of.size()) + " arrivals, at most " +
           std::to_string(Samples::kMostSamples) + " are allowed";
  });
  require(state.weights.empty() || state.weights.size() == state.sample_of.size(), [&] {
    return "there are " + std::to_string(state.sample_of.size()) + " arrivals, but " +
           std::to_string(state.weights.size()) + " weights";
  });
  check_weights(state.weights);
  (void)check_rows(state.rows);
  ledger_.check(state.values, samples_.values());
  ledger_.reserve();
  if (options_.calibrates) calibrators_.prepare(n, 0);
  std::vector<std::uint8_t> is_held(n, 0);
  std::vector<float> row(width);
  weight_of_.append(state.weights, 0);
  for (std::size_t arrival = 0; arrival < state.sample_of.size(); ++arrival) {
    const Slot sample = state.sample_of[arrival];
    const Weight weight = weight_of_[static_cast<Slot>(arrival)];
    require(sample >= 0 && static_cast<std::size_t>(sample) < n, [&] {
      return "an arrival has sample " + std::to_string(sample) + ", which is outside [0, " + std::to_string(n) + ")";
    });
    const auto i = static_cast<std::size_t>(sample);
    const Value value = ledger_.canonical(state.values[i]);
    Samples::copy_canonical(state.rows.data() + i * width, width, row.data());
    require(is_held[i] != 0 || samples_.find(row.data(), value) == kNoSlot,
            [&] { return "sample " + std::to_string(i) + " equals an earlier one"; });
    require(weight <= kMostWeight - total_weight_, "the total weight of the samples is too large");
    total_weight_ += weight;
    const Slot slot = samples_.add(row.data(), value, weight);
    if (options_.calibrates && is_held[i] == 0) calibrators_.insert(slot);
    is_held[i] = 1;
    sample_of_.push_back(slot);
    ledger_.add(value, weight);
  }
  const auto unheld = std::ranges::find(is_held, 0);
  require(unheld == is_held.end(),
          [&] { return "sample " + std::to_string(unheld - is_held.begin()) + " has no arrival"; });
  tenure_.restore(state.serials, state.n_seen, state.turned_away);
  if (options_.calibrates) {
    calibrators_.choose([&](Slot slot, bool calibrates) { samples_.set_calibrates(slot, calibrates); });
  }
  ledger_.finish();
  is_behind_ = true;
  for (const auto& grown : trees_) grown->is_behind = grown->must_regrow = true;
}

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
