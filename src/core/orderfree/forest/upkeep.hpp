// Brings the trees up to date with the samples, and gives access to trees that are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "base/stop.hpp"
#include "orderfree/forest/forest.hpp"
#include "orderfree/tree/importances.hpp"

namespace onlineforest::orderfree {

template <class Target>
void Forest<Target>::catch_up_tree(Grown& grown, Scratch& scratch, StopProbe& stop, bool needs_many) const {
  if (!grown.is_behind) return;
  const bool must_regrow = std::exchange(grown.must_regrow, true);  // until the tree has followed all changes
  grown.is_fully_grown = false;
  try {
    if (must_regrow) {
      grown.tree.regrow(samples_, scratch, stop, needs_many);
    } else {
      grown.tree.follow(samples_, changes_, scratch, stop);
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
  // Following one changed sample costs about as much as regrowing 40. So with more changes, a tree is regrown.
  constexpr std::size_t kRegrownPerChange = 40;
  const bool are_many = changes_.size() * kRegrownPerChange > samples_.n_distinct();
  const bool are_lost =
      std::ranges::any_of(changes_, [this](const Change& change) { return samples_.weight(change.slot) == 0; });
  bool must_all_regrow = true;
  for (const auto& grown : trees_) {
    if (are_many || grown->tree.empty() || grown->tree.is_unsplit()) grown->must_regrow = true;
    must_all_regrow = must_all_regrow && grown->must_regrow;
  }
  if (are_lost || !must_all_regrow) {  // otherwise each tree is regrown at its next use
    call.parallel_for(trees_.size(), [&] {
      return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) {
        Grown& grown = *trees_[i];
        if (!grown.must_regrow) {
          catch_up_tree(grown, *loan, stop, false);
        } else if (are_lost) {
          grown.tree.clear();  // a tree must not keep data of a forgotten sample
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

// Runs work that may split blocks of a tree. After an interrupt the tree is still valid; after any other exception,
// such as a lack of memory, it is regrown.
template <class Target>
template <class Work>
void Forest<Target>::change_tree(Grown& grown, Scratch& scratch, Work work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    grown.is_behind = grown.must_regrow = true;
    grown.is_fully_grown = false;
    scratch.clear();
    throw;
  }
}

template <class Target>
void Forest<Target>::check_stop_weight(Weight stop_weight) {
  require(stop_weight >= 0 && stop_weight <= kMostWeight, [&] {
    return "stop_weight must be in [0, " + std::to_string(kMostWeight) + "], got " + std::to_string(stop_weight);
  });
}

// Sets the stop weight of a tree that is up to date.
template <class Target>
void Forest<Target>::stop_at(Grown& grown, Weight stop_weight, Scratch& scratch) const {
  if (grown.tree.stop_weight() == stop_weight) return;
  grown.is_fully_grown = false;
  grown.tree.stop_at(stop_weight, samples_, scratch);
}

template <class Target>
void Forest<Target>::grow_all(Weight stop_weight, const Call& call) {
  check_stop_weight(stop_weight);
  const auto pass = gate_.writing();
  catch_up(call);
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) {
      Grown& grown = *trees_[i];
      catch_up_tree(grown, *loan, stop, true);
      change_tree(grown, *loan, [&] {
        stop_at(grown, stop_weight, *loan);
        grown.tree.grow_all(samples_, *loan, stop);
      });
      grown.is_fully_grown = true;
    };
  });
}

template <class Target>
void Forest<Target>::grow_all_for(std::size_t n_rows, Weight stop_weight, const Call& call) const {
  if (call.n_threads() == 1 || !need_all(n_rows)) return;
  std::vector<std::size_t> not_grown;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    const std::shared_lock lock(trees_[t]->mutex);
    if (!trees_[t]->is_fully_grown || trees_[t]->tree.stop_weight() != stop_weight) not_grown.push_back(t);
  }
  if (not_grown.empty()) return;
  call.parallel_for(not_grown.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t i, StopProbe& stop) {
      with_tree(not_grown[i], n_rows, stop_weight, *loan, stop, [](OneTree&) {});
    };
  });
}

template <class Target>
template <class Use>
void Forest<Target>::with_tree(std::size_t index, std::size_t n_rows, Weight stop_weight, Scratch& scratch,
                               StopProbe& stop, Use use) const {
  Grown& grown = *trees_[index];
  scratch.loaded = nullptr;
  {
    const std::shared_lock lock(grown.mutex);
    if (grown.is_fully_grown && grown.tree.stop_weight() == stop_weight) {
      use(grown.tree);
      return;
    }
  }
  with_tree_alone(index, n_rows, scratch, stop, [&](OneTree& tree) {
    stop_at(grown, stop_weight, scratch);
    if (need_all(n_rows)) {
      tree.grow_all(samples_, scratch, stop);
      grown.is_fully_grown = true;
    }
    use(tree);
  });
}

template <class Target>
template <class Use>
void Forest<Target>::with_tree_alone(std::size_t index, std::size_t n_rows, Scratch& scratch, StopProbe& stop,
                                     Use use) const {
  Grown& grown = *trees_[index];
  scratch.loaded = nullptr;
  const std::unique_lock lock(grown.mutex);
  catch_up_tree(grown, scratch, stop, n_rows >= kManyRows);
  change_tree(grown, scratch, [&] { use(grown.tree); });
}

template <class Target>
template <class AnswerOf, class Use>
void Forest<Target>::predict_row(const float* row, bool is_plain, Weight stop_weight, AnswerOf answer_of,
                                 Scratch& scratch, StopProbe& stop, Use use) const {
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
        if (grown.is_fully_grown && grown.tree.is_flat() && grown.tree.stop_weight() == stop_weight) {
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
      with_tree(others[i], 1, stop_weight, scratch, stop, [&](OneTree& tree) { use(others[i], tree); });
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
  Table table;
  with_tree_alone(index, kManyRows, *loan, stop, [&](OneTree& tree) { table = tree.table(samples_, *loan, stop); });
  return table;
}

template <class Target>
std::vector<NodeIndex> Forest<Target>::apply(std::span<const float> rows, Weight stop_weight, const Call& call) const {
  check_stop_weight(stop_weight);
  const auto pass = gate_.reading();
  const std::size_t n = n_rows(rows);
  (void)check_rows(rows);
  std::vector<NodeIndex> result(n * trees_.size(), kNoNode);
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t t, StopProbe& stop) {
      Table table;
      with_tree_alone(t, kManyRows, *loan, stop, [&](OneTree& tree) {
        stop_at(*trees_[t], stop_weight, *loan);
        table = tree.table(samples_, *loan, stop);
      });
      if (table.cell.empty()) return;
      for (std::size_t i = 0; i < n; ++i) {
        result[i * trees_.size() + t] = table.leaf_of(rows.data() + i * options_.layout.width());
        stop.tick(64);
      }
    };
  });
  return result;
}

// The order of keys depends on the set of samples alone.
template <class Target>
std::vector<Slot> Forest<Target>::slots_by_key() const {
  std::vector<Slot> slots;
  slots.reserve(samples_.n_distinct());
  for (Slot slot = 0; slot < static_cast<Slot>(samples_.n_slots()); ++slot) {
    if (samples_.weight(slot) > 0) slots.push_back(slot);
  }
  std::ranges::sort(slots, [&](Slot a, Slot b) {
    return samples_.key(a) != samples_.key(b) ? samples_.key(a) < samples_.key(b) : samples_.content_less(a, b);
  });
  return slots;
}

template <class Target>
std::vector<double> Forest<Target>::importances(Weight stop_weight, const Call& call) const {
  check_stop_weight(stop_weight);
  const auto pass = gate_.reading();
  const std::vector<Slot> slots = slots_by_key();
  const std::size_t n_features = options_.layout.n_features;
  std::vector<double> result(trees_.size() * n_features, 0.0);
  call.parallel_for(trees_.size(), [&] {
    return [&, loan = scratches_.lend()](std::size_t t, StopProbe& stop) {
      Table table;
      with_tree_alone(t, kManyRows, *loan, stop, [&](OneTree& tree) {
        stop_at(*trees_[t], stop_weight, *loan);
        table = tree.table_above(samples_, *loan, stop);
      });
      const std::vector<double> credits = Importances<Target>(samples_, trees_[t]->tree, table).of(slots, stop);
      std::ranges::copy(credits, result.begin() + static_cast<std::ptrdiff_t>(t * n_features));
    };
  });
  return result;
}

}  // namespace onlineforest::orderfree
