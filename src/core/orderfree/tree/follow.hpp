// Stage of a tree: following changes of its samples.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "orderfree/tree/grow.hpp"

namespace onlineforest::orderfree {

// Up to this number of replaced deciding samples, updating the ballot is faster than drawing all proposals again.
inline constexpr std::size_t kFewExchanges = 4;

// A list of more samples is split when a sample is removed from it.
inline constexpr std::size_t kLongList = 1024;

template <class Target>
void Tree<Target>::follow(const Samples& samples, std::span<const Change> changes, Scratch& scratch, StopProbe& stop) {
  scratch.loaded = nullptr;
  scratch.steps.clear();
  for (const Change& change : changes) {
    const bool was_taken = takes(samples, change.slot, change.calibrated_before);
    const Weight by = weight(samples, change.slot) - (was_taken ? change.weight_before : 0);
    if (by != 0) scratch.steps.push_back({change.slot, by});
  }
  if (scratch.steps.empty()) return;
  flat_.clear();
  std::vector<Task> tasks{{kRoot, scratch.steps}};
  while (!tasks.empty()) {
    const Task task = tasks.back();
    tasks.pop_back();
    stop.tick(64 * task.steps.size());
    for (const Step& step : task.steps) node(task.at).weight += step.by;
    if (node(task.at).kind == Kind::kList) {
      follow_in_list(task, samples, scratch, stop);
    } else {
      follow_at_junction(task, samples, scratch, tasks);
    }
  }
}

template <class Target>
void Tree<Target>::follow_at_junction(const Task& task, const Samples& samples, Scratch& scratch,
                                      std::vector<Task>& tasks) {
  Junction& junction = junctions_[node(task.at).contents];
  for (const Step& step : task.steps) {
    junction.summary.add(samples.value(step.slot), step.by);
    junction.n += is_new(samples, step);
    junction.n -= is_gone(samples, step.slot);
  }
  const std::optional<Fork> fork = decide_again(task.at, samples, task.steps, scratch);
  if (!fork || junction.summary.total() < least_weight()) {
    collapse(task, samples, scratch);
    return;
  }
  if (junction.summary.is_lost()) {
    junction.summary = {};
    const auto add = [&](Slot slot) { junction.summary.add(samples.value(slot), samples.weight(slot)); };
    for_each_below(task.at, scratch, [&](Slot slot) {
      if (!is_gone(samples, slot)) add(slot);
    });
    for (const Step& step : task.steps) {
      if (is_new(samples, step)) add(step.slot);
    }
  }
  follow_large_leaf(junction, is_end(node(task.at)), task.steps, samples);
  // Surrogates and the side of missing values only matter below if some sample lacks the feature.
  const Fork old = std::exchange(junction.fork, *fork);
  const bool is_same_split = old.split.cell == fork->split.cell && old.split.threshold == fork->split.threshold;
  const bool may_lack = old != *fork && samples.has_missing(fork->split.cell);
  if (may_lack || (!is_same_split && !divide_alike(task.at, old.split, fork->split, samples, scratch))) {
    split_again(task, samples, scratch);
    return;
  }
  if (junction.has_new_line) {
    for (const NodeIndex child : {node(task.at).left, node(task.at).left + 1}) {
      if (node(child).kind != Kind::kList) continue;
      List& list = lists_[node(child).contents];
      splits_rests_ ? list.unsplit() : list.forget_leaves();
    }
  }
  set_split(task.at, junction);
  const auto middle = std::partition(task.steps.begin(), task.steps.end(),
                                     [&](const Step& step) { return fork->sends_left(samples.row(step.slot)); });
  const auto n_left = static_cast<std::size_t>(middle - task.steps.begin());
  const NodeIndex left = node(task.at).left;
  if (n_left > 0) tasks.push_back({left, task.steps.first(n_left)});
  if (n_left < task.steps.size()) tasks.push_back({left + 1, task.steps.subspan(n_left)});
}

// Updates what a junction predicts, if predictions end there. Otherwise discards it.
template <class Target>
void Tree<Target>::follow_large_leaf(Junction& junction, bool is_end, std::span<const Step> steps,
                                     const Samples& samples) {
  if (is_end && !junction.has_new_line) {
    for (const Step& step : steps) junction.large_leaf.add(samples, step.slot, junction.line, step.by);
  } else {
    junction.large_leaf = {};
  }
}

template <class Target>
std::optional<Fork> Tree<Target>::decide_again(NodeIndex at, const Samples& samples, std::span<const Step> steps,
                                               Scratch& scratch) {
  Junction& junction = junctions_[node(at).contents];
  junction.has_new_line = false;
  if (junction.is_stretched || junction.n <= kMostDeciding) return std::nullopt;
  const Order by_rank = order(samples);
  const Slot last = junction.deciding[junction.last];
  const auto comes_later = [&](Slot slot) { return by_rank.less(junction.last_rank, last, by_rank.rank(slot), slot); };
  std::vector<Slot>& coming = scratch.coming;
  coming.clear();
  std::size_t n_lost = 0;
  const Step* lost = nullptr;
  bool is_reweighted = false;
  for (const Step& step : steps) {
    if (comes_later(step.slot)) continue;
    if (is_gone(samples, step.slot)) {
      ++n_lost;
      lost = &step;
    } else if (is_new(samples, step)) {
      coming.push_back(step.slot);
    } else {
      is_reweighted = true;
    }
  }
  if (n_lost == 0 && coming.empty() && !is_reweighted) return junction.fork;
  if (n_lost > kMostDeciding / 2) return std::nullopt;
  const bool are_few = n_lost <= 1 && coming.size() <= kFewExchanges && !is_reweighted;
  if (n_lost > 0) {
    for (const Step& step : steps) {
      if (is_new(samples, step) && comes_later(step.slot)) coming.push_back(step.slot);
    }
    const NodeIndex left = node(at).left;
    for (const NodeIndex child : {left, left + 1}) find_next(child, samples, last, n_lost, coming);
  }
  if (are_few && replace_few(junction, samples, lost, coming)) {
    return Fork{junction.ballot.best(samples, junction.deciding), {}};
  }
  std::vector<Slot>& slots = junction.deciding;
  std::erase_if(slots, [&](Slot slot) { return is_gone(samples, slot); });
  slots.insert(slots.end(), coming.begin(), coming.end());
  std::nth_element(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(kMostDeciding) - 1, slots.end(), by_rank);
  slots.resize(kMostDeciding);
  return decide(junction, samples, scratch);
}

template <class Target>
bool Tree<Target>::replace_few(Junction& junction, const Samples& samples, const Step* lost,
                               std::vector<Slot>& coming) const {
  if (junction.ballot.empty()) return false;
  const Order by_rank = order(samples);
  std::vector<Slot>& seats = junction.deciding;
  // One seat may be free, and at most kFewExchanges more samples can displace the one of greatest rank.
  const std::size_t n_first = std::min(coming.size(), kFewExchanges + 1);
  std::ranges::partial_sort(coming, coming.begin() + static_cast<std::ptrdiff_t>(n_first), by_rank);
  const auto give = [&](std::size_t seat, Weight old_weight) {
    const Slot slot = coming.front();
    if (!junction.ballot.is_open_to(samples, seats, slot)) return false;
    junction.ballot.replace(samples, by_rank, junction.seed, seats, seat, slot, old_weight);
    coming.erase(coming.begin());
    find_last(junction, samples);
    return true;
  };
  if (lost != nullptr) {
    const auto seat = static_cast<std::size_t>(std::ranges::find(seats, lost->slot) - seats.begin());
    if (!give(seat, -lost->by)) return false;
  }
  while (!coming.empty() && by_rank(coming.front(), seats[junction.last])) {
    if (!give(junction.last, samples.weight(seats[junction.last]))) return false;
  }
  return true;
}

// Finds the `n` samples of least rank after `last` below a node, or all if there are fewer, and possibly some more. A
// junction whose deciding samples include n of them need not be searched further.
template <class Target>
void Tree<Target>::find_next(NodeIndex at, const Samples& samples, Slot last, std::size_t n,
                             std::vector<Slot>& found) const {
  const Order by_rank = order(samples);
  std::vector<NodeIndex> stack{at};
  std::vector<Slot> here;
  while (!stack.empty()) {
    const Node& next = node(stack.back());
    stack.pop_back();
    const bool is_list = next.kind == Kind::kList;
    const std::vector<Slot>& slots = is_list ? lists_[next.contents].slots : junctions_[next.contents].deciding;
    here.clear();
    for (const Slot slot : slots) {
      if (!is_gone(samples, slot) && by_rank(last, slot)) here.push_back(slot);
    }
    if (is_list || (here.size() >= n && !junctions_[next.contents].is_stretched)) {
      found.insert(found.end(), here.begin(), here.end());
    } else {
      stack.push_back(next.left);
      stack.push_back(next.left + 1);
    }
  }
}

template <class Target>
template <class Holds>
bool Tree<Target>::all_below(NodeIndex at, Scratch& scratch, Holds holds) const {
  scratch.stack.assign({node(at).left, node(at).left + 1});
  while (!scratch.stack.empty()) {
    const Node& next = node(scratch.stack.back());
    scratch.stack.pop_back();
    if (next.kind != Kind::kList) {
      scratch.stack.push_back(next.left);
      scratch.stack.push_back(next.left + 1);
    } else if (!std::ranges::all_of(lists_[next.contents].slots, holds)) {
      return false;
    }
  }
  return true;
}

template <class Target>
template <class Use>
void Tree<Target>::for_each_below(NodeIndex at, Scratch& scratch, Use use) const {
  (void)all_below(at, scratch, [&](Slot slot) {
    use(slot);
    return true;
  });
}

// Whether two splits send the same samples below a node to the left. A new threshold often lies between the same values
// as the old one.
template <class Target>
bool Tree<Target>::divide_alike(NodeIndex at, const Split& a, const Split& b, const Samples& samples,
                                Scratch& scratch) const {
  if (a.cell != b.cell || a.is_of_levels) return false;
  const float low = std::min(a.threshold, b.threshold), high = std::max(a.threshold, b.threshold);
  return all_below(at, scratch, [&](Slot slot) {
    const float x = samples.row(slot)[a.cell];
    return x <= low || x > high;
  });
}

template <class Target>
std::vector<Slot> Tree<Target>::gather(const Task& task, const Samples& samples, Scratch& scratch) {
  std::vector<Slot> slots;
  slots.reserve(junctions_[node(task.at).contents].n);
  for_each_below(task.at, scratch, [&](Slot slot) {
    if (!is_gone(samples, slot)) slots.push_back(slot);
  });
  for (const Step& step : task.steps) {
    if (is_new(samples, step)) slots.push_back(step.slot);
  }
  scratch.stack.assign(1, node(task.at).left);
  while (!scratch.stack.empty()) {
    const NodeIndex pair = scratch.stack.back();
    scratch.stack.pop_back();
    free_pairs_.push_back(pair);
    for (const NodeIndex at : {pair, pair + 1}) {
      const Node& next = node(at);
      if (next.kind == Kind::kList) {
        lists_.put_back(next.contents);
      } else {
        junctions_.put_back(next.contents);
        scratch.stack.push_back(next.left);
      }
    }
  }
  return slots;
}

// Replaces a junction and all nodes below it by one list. The summary of the junction must include the changes.
template <class Target>
void Tree<Target>::collapse(const Task& task, const Samples& samples, Scratch& scratch) {
  const std::int32_t index = lists_.take();
  List& list = lists_[index];
  list.slots = gather(task, samples, scratch);
  const std::int32_t junction_index = node(task.at).contents;
  Junction& junction = junctions_[junction_index];
  list.parent = junction.parent;
  list.seed = junction.seed;
  list.summary = std::move(junction.summary);
  junctions_.put_back(junction_index);
  reset_list(list, samples);
  Node fresh;
  fresh.weight = node(task.at).weight;
  fresh.contents = index;
  node(task.at) = fresh;
}

// Divides the samples below a junction by its new split into two lists. All nodes below are removed.
template <class Target>
void Tree<Target>::split_again(const Task& task, const Samples& samples, Scratch& scratch) {
  const std::int32_t list = lists_.take(), junction = node(task.at).contents;
  lists_[list].slots = gather(task, samples, scratch);
  divide(task.at, junction, list, samples, scratch);
}

template <class Target>
void Tree<Target>::follow_in_list(const Task& task, const Samples& samples, Scratch& scratch, StopProbe& stop) {
  List& list = lists_[node(task.at).contents];
  const bool was_small = list.is_small();
  if (was_small && task.steps.size() == 1 && is_new(samples, task.steps.front()) && list.slots.size() < kMostDeciding) {
    list.slots.push_back(task.steps.front().slot);
    list.unsplit();
    return;
  }
  const auto n_lost = static_cast<std::size_t>(
      std::ranges::count_if(task.steps, [&](const Step& step) { return is_gone(samples, step.slot); }));
  if (n_lost == 1 && task.steps.size() == 1) {
    list.slots.erase(std::ranges::find(list.slots, task.steps.front().slot));
  } else if (n_lost > 0) {
    std::erase_if(list.slots, [&](Slot slot) { return is_gone(samples, slot); });
  }
  bool has_one_x = list.has_one_x;
  for (const Step& step : task.steps) {
    if (!was_small) list.summary.add(samples.value(step.slot), step.by);
    if (!is_new(samples, step)) continue;
    has_one_x = has_one_x && !list.slots.empty() && samples.same_x(step.slot, list.slots.front());
    list.slots.push_back(step.slot);
    list.is_ranked = false;
  }
  if (list.slots.empty()) {
    clear();
    return;
  }
  typename Target::LargeLeaf large_leaf = std::exchange(list.large_leaf, {});
  reset_list(list, samples);
  if (list.is_small()) return;
  list.has_one_x = has_one_x;
  for (const Step& step : task.steps) large_leaf.add(samples, step.slot, line_above(list), step.by);
  list.large_leaf = std::move(large_leaf);
  // Finding a sample in a list takes a scan of the list. Splitting long lists keeps such scans short.
  if (n_lost > 0 && !has_one_x && list.slots.size() > kLongList) (void)split_list(task.at, samples, scratch, stop);
}

}  // namespace onlineforest::orderfree
