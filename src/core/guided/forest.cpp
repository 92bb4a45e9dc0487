#include "guided/forest.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/require.hpp"
#include "guided/importances.hpp"

namespace onlineforest::guided {

namespace {

constexpr std::size_t kPiece = 256;  // rows predicted together

Options checked(const Options& options) {
  check_options(options);
  return options;
}

void require_finite(std::span<const float> rows) {
  require(std::ranges::all_of(rows, [](float x) { return std::isfinite(x); }), "rows contain NaN or infinity");
}

// Adds up changes of the same sample.
void combine(std::vector<Change>& changes) {
  std::ranges::sort(changes, {}, &Change::slot);
  std::size_t n = 0;
  for (const Change& change : changes) {
    if (n > 0 && changes[n - 1].slot == change.slot) {
      changes[n - 1].by += change.by;
    } else {
      changes[n++] = change;
    }
  }
  changes.resize(n);
}

}  // namespace

Forest::Forest(const Options& options)
    : options_(checked(options)),
      samples_(options_.n_features, options_.seed, options_.key_bits),
      tenure_(options_.keep, options_.seed) {
  trees_.reserve(options_.n_trees);
  for (std::size_t i = 0; i < options_.n_trees; ++i) trees_.push_back(std::make_unique<Grown>(options_, i));
}

std::size_t Forest::n_rows(std::span<const float> rows) const {
  require(rows.size() % options_.n_features == 0, [&] {
    return "rows hold " + std::to_string(rows.size()) + " values, which is no multiple of the " +
           std::to_string(options_.n_features) + " features of the forest";
  });
  return rows.size() / options_.n_features;
}

void Forest::set_labels(std::span<const Word> hashes, std::span<const std::uint8_t> are_declared) {
  const auto pass = gate_.writing();
  const auto n = static_cast<std::size_t>(samples_.n_labels());
  require(hashes.size() >= n, [&] {
    return "there are " + std::to_string(hashes.size()) + " label hashes, but the forest knows " + std::to_string(n) +
           " labels";
  });
  for (std::size_t i = 0; i < n; ++i) {
    require(hashes[i] == samples_.label_hash_of(static_cast<Label>(i)),
            [&] { return "the hash of label " + std::to_string(i) + " has changed"; });
  }
  std::vector<Word> sorted(hashes.begin(), hashes.end());
  std::ranges::sort(sorted);
  require(std::ranges::adjacent_find(sorted) == sorted.end(), "two labels have the same hash");
  require(are_declared.size() == hashes.size(), [&] {
    return "there are " + std::to_string(hashes.size()) + " label hashes, but " + std::to_string(are_declared.size()) +
           " marks of declared labels";
  });
  if (hashes.size() > n) ++labels_version_;
  samples_.set_labels(hashes);
  are_declared_.assign(are_declared.begin(), are_declared.end());
  find_known();
}

void Forest::find_known() {
  known_before_.reserve(are_declared_.size());
  known_.swap(known_before_);
  known_.clear();
  for (std::size_t c = 0; c < are_declared_.size(); ++c) {
    if (are_declared_[c] != 0) known_.push_back(static_cast<Label>(c));
  }
  for (const auto& [label, weight] : totals_.entries()) {
    if (are_declared_[static_cast<std::size_t>(label)] == 0) known_.push_back(label);
  }
  if (known_ != known_before_) ++labels_version_;
}

void Forest::learn(std::span<const float> rows, std::span<const Label> labels, const Call& call) {
  const auto pass = gate_.writing();
  const std::size_t n = n_rows(rows);
  require(labels.size() == n,
          [&] { return "there are " + std::to_string(labels.size()) + " labels for " + std::to_string(n) + " rows"; });
  for (const Label label : labels) {
    require(label >= 0 && label < samples_.n_labels(), [&] {
      return "label " + std::to_string(label) + " is outside [0, " + std::to_string(samples_.n_labels()) + ")";
    });
  }
  require_finite(rows);
  catch_up(call);  // finishes what a stopped call left
  Tenure::Admission admission = tenure_.admit(n);
  std::vector<float> taken_rows;
  std::vector<Label> taken_labels;
  const std::size_t width = options_.n_features;
  taken_rows.reserve(admission.taken.size() * width);
  for (const std::size_t i : admission.taken) {
    for (std::size_t d = 0; d < width; ++d) taken_rows.push_back(rows[i * width + d] + 0.0f);  // -0 becomes 0
    taken_labels.push_back(labels[i]);
  }
  change(taken_rows, taken_labels, std::exchange(admission.leaving, {}), &admission, n, call);
}

// Stores samples that come and removes arrivals that leave, then brings the trees in line.
void Forest::change(std::span<const float> rows, std::span<const Label> labels, std::vector<Slot> leaving,
                    const Tenure::Admission* admission, std::size_t n_came, const Call& call) {
  require(labels.size() <= SampleStore::kMostSamples - sample_of_.size(), [&] {
    return "a forest cannot hold " + std::to_string(sample_of_.size() + labels.size()) + " samples; at most " +
           std::to_string(SampleStore::kMostSamples);
  });
  // What follows the first change of the store cannot fail.
  totals_.reserve(are_declared_.size());
  known_.reserve(are_declared_.size());
  known_before_.reserve(are_declared_.size());
  std::ranges::sort(leaving, std::greater());
  const std::vector<Move> moves = moves_after(leaving, sample_of_.size());
  std::vector<Change> changes;
  changes.reserve(labels.size() + leaving.size());
  std::vector<Slot> coming;
  coming.reserve(labels.size());
  tenure_.reserve(labels.size());
  if (const std::size_t n = sample_of_.size() + labels.size(); n > sample_of_.capacity()) {
    sample_of_.reserve(std::max(n, sample_of_.capacity() + sample_of_.capacity() / 4));
  }
  try {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      changes.push_back({samples_.add(rows.data() + i * options_.n_features, labels[i]), 1});
    }
  } catch (...) {  // no memory: nothing has changed
    for (const Change& change : changes) {
      samples_.subtract(change.slot);
      if (samples_.weight(change.slot) == 0) samples_.release(change.slot);
    }
    throw;
  }
  for (const Change& change : changes) coming.push_back(change.slot);
  for (const Slot arrival : leaving) {
    const Slot slot = sample_of_[static_cast<std::size_t>(arrival)];
    samples_.subtract(slot);
    changes.push_back({slot, -1});
  }
  for (const Move& move : moves) {
    sample_of_[static_cast<std::size_t>(move.to)] = sample_of_[static_cast<std::size_t>(move.from)];
  }
  sample_of_.resize(sample_of_.size() - leaving.size());
  tenure_.remove(leaving, moves);
  if (admission != nullptr) {
    sample_of_.insert(sample_of_.end(), coming.begin(), coming.end());
    tenure_.take_in(n_came, *admission);
  }
  combine(changes);
  const std::size_t n_labels = totals_.n_labels();
  std::int64_t n_gone = 0;
  for (const Change& change : changes) {
    if (change.by != 0) totals_.add(samples_.label(change.slot), change.by);
    n_gone += change.by < 0;
  }
  if (n_gone > 0 || totals_.n_labels() != n_labels) find_known();
  if (sample_of_.empty()) tenure_.reset_turned_away();
  std::erase_if(changes, [this](const Change& change) {
    if (change.by != 0) return false;
    if (samples_.weight(change.slot) == 0) samples_.release(change.slot);  // came and left at once
    return true;
  });
  changes_ = std::move(changes);
  if (changes_.empty()) return;
  is_behind_ = true;
  for (const auto& grown : trees_) {
    grown->is_behind = true;
    grown->is_complete = false;
  }
  catch_up(call);
}

void Forest::catch_up_tree(Grown& grown, Scratch& scratch, StopProbe& stop) const {
  if (!grown.is_behind) return;
  const bool must_regrow = std::exchange(grown.must_regrow, true);  // until all changes are applied
  grown.is_complete = false;
  try {
    if (must_regrow) {
      grown.tree.regrow(samples_, scratch, stop);
    } else {
      grown.tree.apply(samples_, changes_, scratch, stop);
    }
  } catch (...) {
    scratch.clear();
    throw;
  }
  grown.must_regrow = grown.is_behind = false;
}

void Forest::catch_up(const Call& call) {
  if (!is_behind_) return;
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) { catch_up_tree(*trees_[i], *loan, stop); };
  });
  for (const Change& change : changes_) {
    if (samples_.weight(change.slot) == 0) samples_.release(change.slot);
  }
  changes_.clear();
  is_behind_ = false;
}

// Runs work that may cut blocks of a tree. A stop leaves the tree as it should be; after any other exception, such as
// a lack of memory, it is grown again.
template <class Work>
void Forest::change_tree(Grown& grown, Scratch& scratch, Work work) {
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

void Forest::complete(const Call& call) {
  const auto pass = gate_.writing();
  catch_up(call);
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) {
      Grown& grown = *trees_[i];
      catch_up_tree(grown, *loan, stop);
      change_tree(grown, *loan, [&] { grown.tree.complete(samples_, *loan, stop); });
      grown.is_complete = true;
    };
  });
}

void Forest::forget(std::span<const Serial> serials, const Call& call) {
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
  change({}, {}, std::move(slots), nullptr, 0, call);
}

std::vector<std::size_t> Forest::forget(std::span<const float> rows, std::span<const Label> labels, const Call& call) {
  const auto pass = gate_.writing();
  const std::size_t n = n_rows(rows);
  require(labels.size() == n,
          [&] { return "there are " + std::to_string(labels.size()) + " labels for " + std::to_string(n) + " rows"; });
  catch_up(call);
  // The arrivals of the samples that are asked for.
  std::unordered_map<Slot, std::vector<Slot>> arrivals;
  std::vector<Slot> asked(n, kNoSlot);
  std::vector<std::uint8_t> is_asked(samples_.n_slots(), 0);
  std::vector<float> row(options_.n_features);
  for (std::size_t i = 0; i < n; ++i) {
    if (labels[i] < 0 || labels[i] >= samples_.n_labels()) continue;
    for (std::size_t d = 0; d < row.size(); ++d) row[d] = rows[i * row.size() + d] + 0.0f;
    asked[i] = samples_.find(row.data(), labels[i]);
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
  if (missing.empty()) change({}, {}, std::move(leaving), nullptr, 0, call);
  return missing;
}

void Forest::keep_latest(std::size_t n, const Call& call) {
  const auto pass = gate_.writing();
  catch_up(call);
  change({}, {}, tenure_.all_but_latest(n), nullptr, 0, call);
}

template <class Use>
void Forest::with_tree(std::size_t index, Scratch& scratch, StopProbe& stop, Use use) const {
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
  catch_up_tree(grown, scratch, stop);
  change_tree(grown, scratch, [&] { use(grown.tree); });
}

void Forest::finish(std::span<const std::uint64_t> masses, std::uint64_t rest, std::span<double> probabilities) const {
  std::uint64_t sum = rest;
  for (const std::uint64_t mass : masses) sum += mass;
  const double uniform = static_cast<double>(rest) / static_cast<double>(known_.size());
  for (const Label label : known_) {
    const auto c = static_cast<std::size_t>(label);
    probabilities[c] = (static_cast<double>(masses[c]) + uniform) / static_cast<double>(sum);
  }
}

std::vector<double> Forest::predict(std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n = n_rows(rows), width = options_.n_features;
  require_finite(rows);
  const auto n_labels = static_cast<std::size_t>(samples_.n_labels());
  std::vector<double> result(n * n_labels);
  call.parallel_for((n + kPiece - 1) / kPiece, [&] {
    return [&, loan = scratches_.lend(), masses = std::vector<std::uint64_t>(), rests = std::vector<std::uint64_t>()](
               std::size_t piece, StopProbe& stop) mutable {
      const std::size_t begin = piece * kPiece, size = std::min(kPiece, n - begin);
      masses.assign(size * n_labels, 0);
      rests.assign(size, 0);
      for (std::size_t t = 0; t < trees_.size(); ++t) {
        with_tree((piece + t) % trees_.size(), *loan, stop, [&](Tree& tree) {
          tree.predict(samples_, rows.subspan(begin * width, size * width), rests, masses.data(), *loan, stop);
        });
        stop.tick(64 * size);
      }
      for (std::size_t i = 0; i < size; ++i) {
        finish(std::span(masses).subspan(i * n_labels, n_labels), rests[i],
               std::span(result).subspan((begin + i) * n_labels, n_labels));
      }
    };
  });
  return result;
}

Forest::LeftOut Forest::predict_left_out(const Call& call) const {
  const auto pass = gate_.reading();
  const auto n_labels = static_cast<std::size_t>(samples_.n_labels());
  const std::size_t n = samples_.n_slots();
  std::vector<double> by_slot(n * n_labels, std::numeric_limits<double>::quiet_NaN());
  std::vector<std::int64_t> n_trees(n, 0);
  call.parallel_for((n + kPiece - 1) / kPiece, [&] {
    return [&, loan = scratches_.lend()](std::size_t piece, StopProbe& stop) {
      const std::size_t begin = piece * kPiece, size = std::min(kPiece, n - begin);
      std::vector<std::uint64_t> masses(size * n_labels, 0), rests(size, 0);
      for (std::size_t t = 0; t < trees_.size(); ++t) {
        with_tree((piece + t) % trees_.size(), *loan, stop, [&](Tree& tree) {
          for (std::size_t i = 0; i < size; ++i) {
            const auto slot = static_cast<Slot>(begin + i);
            if (samples_.weight(slot) == 0 || tree.takes(samples_, slot)) continue;
            ++n_trees[begin + i];
            tree.predict(samples_, {samples_.row(slot), options_.n_features}, std::span(rests).subspan(i, 1),
                         masses.data() + i * n_labels, *loan, stop);
          }
        });
        stop.tick(64 * size);
      }
      for (std::size_t i = 0; i < size; ++i) {
        if (n_trees[begin + i] == 0) continue;
        const std::span<double> probabilities = std::span(by_slot).subspan((begin + i) * n_labels, n_labels);
        std::ranges::fill(probabilities, 0.0);
        finish(std::span(masses).subspan(i * n_labels, n_labels), rests[i], probabilities);
      }
    };
  });
  LeftOut result;
  for (const Slot slot : sample_of_) {
    const auto at = static_cast<std::size_t>(slot);
    const std::span<const double> probabilities = std::span(by_slot).subspan(at * n_labels, n_labels);
    result.probabilities.insert(result.probabilities.end(), probabilities.begin(), probabilities.end());
    result.n_trees.push_back(n_trees[at]);
  }
  return result;
}

TreeTable Forest::table(std::size_t index, const Call& call) const {
  const auto pass = gate_.reading();
  require(index < trees_.size(),
          [&] { return "tree " + std::to_string(index) + " is outside [0, " + std::to_string(trees_.size()) + ")"; });
  const auto loan = scratches_.lend();
  StopProbe stop = call.probe();
  return table_of(index, *loan, stop);
}

TreeTable Forest::table_of(std::size_t index, Scratch& scratch, StopProbe& stop) const {
  Grown& grown = *trees_[index];
  const std::unique_lock lock(grown.mutex);
  catch_up_tree(grown, scratch, stop);
  TreeTable table;
  change_tree(grown, scratch, [&] { table = grown.tree.table(samples_, scratch, stop); });
  grown.is_complete = true;
  return table;
}

std::vector<NodeIndex> Forest::apply(std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n = n_rows(rows);
  std::vector<NodeIndex> result(n * trees_.size(), kNoNode);
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t t, StopProbe& stop) {
      const TreeTable table = table_of(t, *loan, stop);
      if (table.feature.empty()) return;
      for (std::size_t i = 0; i < n; ++i) {
        result[i * trees_.size() + t] = table.leaf_of(rows.data() + i * options_.n_features);
        stop.tick(64);
      }
    };
  });
  return result;
}

std::vector<double> Forest::importances(const Call& call) const {
  const auto pass = gate_.reading();
  std::vector<std::vector<double>> by_tree(trees_.size());
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t t, StopProbe& stop) {
      const TreeTable table = table_of(t, *loan, stop);
      by_tree[t] = options_.max_samples < 1.0 ? left_out_decreases(samples_, trees_[t]->tree, table, stop)
                                              : decreases(table, options_.n_features);
    };
  });
  std::vector<double> result(options_.n_features, 0.0);
  for (const std::vector<double>& one : by_tree) {
    for (std::size_t d = 0; d < one.size(); ++d) result[d] += one[d] / static_cast<double>(trees_.size());
  }
  return result;
}

ForestState Forest::save() const {
  const auto pass = gate_.reading();
  ForestState state;
  state.options = options_;
  for (Label label = 0; label < samples_.n_labels(); ++label) {
    state.label_hashes.push_back(samples_.label_hash_of(label));
  }
  state.are_declared = are_declared_;
  std::vector<Slot> number(samples_.n_slots(), kNoSlot);
  for (Slot slot = 0; slot < static_cast<Slot>(samples_.n_slots()); ++slot) {
    if (samples_.weight(slot) == 0) continue;
    number[static_cast<std::size_t>(slot)] = static_cast<Slot>(state.labels.size());
    state.rows.insert(state.rows.end(), samples_.row(slot), samples_.row(slot) + options_.n_features);
    state.labels.push_back(samples_.label(slot));
  }
  for (const Slot slot : sample_of_) state.sample_of.push_back(number[static_cast<std::size_t>(slot)]);
  state.serials.assign(tenure_.serials().begin(), tenure_.serials().end());
  state.n_seen = tenure_.n_seen();
  state.turned_away = tenure_.turned_away();
  return state;
}

std::unique_ptr<Forest> Forest::restore(const ForestState& state) {
  auto forest = std::make_unique<Forest>(state.options);
  forest->set_labels(state.label_hashes, state.are_declared);
  const std::size_t n = state.labels.size(), width = state.options.n_features;
  require(state.rows.size() == n * width, [&] {
    return "rows hold " + std::to_string(state.rows.size()) + " values, but " + std::to_string(n) + " samples of " +
           std::to_string(width) + " features have " + std::to_string(n * width);
  });
  require(state.sample_of.size() == state.serials.size(), [&] {
    return "there are " + std::to_string(state.sample_of.size()) + " arrivals, but " +
           std::to_string(state.serials.size()) + " serials";
  });
  require_finite(state.rows);
  std::vector<std::uint8_t> is_held(n, 0);
  std::vector<float> row(width);
  for (const Slot sample : state.sample_of) {
    require(sample >= 0 && static_cast<std::size_t>(sample) < n, [&] {
      return "an arrival has sample " + std::to_string(sample) + ", which is outside [0, " + std::to_string(n) + ")";
    });
    const auto i = static_cast<std::size_t>(sample);
    const Label label = state.labels[i];
    require(label >= 0 && label < forest->samples_.n_labels(), [&] {
      return "label " + std::to_string(label) + " is outside [0, " + std::to_string(forest->samples_.n_labels()) + ")";
    });
    for (std::size_t d = 0; d < width; ++d) row[d] = state.rows[i * width + d] + 0.0f;
    require(is_held[i] != 0 || forest->samples_.find(row.data(), label) == kNoSlot,
            [&] { return "sample " + std::to_string(i) + " equals an earlier one"; });
    is_held[i] = 1;
    forest->sample_of_.push_back(forest->samples_.add(row.data(), label));
    forest->totals_.add(label, 1);
  }
  const auto unheld = std::ranges::find(is_held, 0);
  require(unheld == is_held.end(),
          [&] { return "sample " + std::to_string(unheld - is_held.begin()) + " has no arrival"; });
  forest->tenure_.restore(state.serials, state.n_seen, state.turned_away);
  forest->find_known();
  forest->is_behind_ = true;
  for (const auto& grown : forest->trees_) grown->is_behind = grown->must_regrow = true;
  return forest;
}

std::size_t Forest::n_points() const {
  const auto pass = gate_.reading();
  return sample_of_.size();
}

std::size_t Forest::n_seen() const {
  const auto pass = gate_.reading();
  return tenure_.n_seen();
}

std::vector<Serial> Forest::serials() const {
  const auto pass = gate_.reading();
  return {tenure_.serials().begin(), tenure_.serials().end()};
}

std::vector<std::uint8_t> Forest::are_stored(std::span<const Serial> serials) const {
  const auto pass = gate_.reading();
  std::vector<std::uint8_t> result;
  for (const Slot slot : tenure_.slots_of(serials)) result.push_back(slot != kNoSlot);
  return result;
}

std::int32_t Forest::n_labels() const {
  const auto pass = gate_.reading();
  return samples_.n_labels();
}

std::uint64_t Forest::labels_version() const {
  const auto pass = gate_.reading();
  return labels_version_;
}

std::vector<std::int64_t> Forest::label_weights() const {
  const auto pass = gate_.reading();
  std::vector<std::int64_t> result(static_cast<std::size_t>(samples_.n_labels()), 0);
  for (const auto& [label, weight] : totals_.entries()) result[static_cast<std::size_t>(label)] = weight;
  return result;
}

std::size_t Forest::nbytes() const {
  const auto pass = gate_.reading();
  std::size_t n = samples_.nbytes() + tenure_.nbytes() + sample_of_.capacity() * sizeof(Slot);
  for (const auto& grown : trees_) n += sizeof(Grown) + grown->tree.nbytes();
  return n;
}

}  // namespace onlineforest::guided
