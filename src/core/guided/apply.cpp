// How a tree of the order-free forest follows changes of its samples.
#include <algorithm>

#include "guided/tree.hpp"

namespace onlineforest::guided {

namespace {

// So many exchanges are cheaper than to decide afresh.
constexpr std::size_t kFewExchanges = 4;

// A longer list is cut when a sample is removed from it.
constexpr std::size_t kLongList = 1024;

bool is_new(const SampleStore& samples, const Change& change) { return samples.weight(change.slot) == change.by; }
bool is_gone(const SampleStore& samples, Slot slot) { return samples.weight(slot) == 0; }

}  // namespace

void Tree::apply(const SampleStore& samples, std::span<const Change> changes, Scratch& scratch, StopProbe& stop) {
  scratch.loaded = nullptr;
  scratch.changes.clear();
  for (const Change& change : changes) {
    if (takes(samples, change.slot)) scratch.changes.push_back(change);
  }
  if (scratch.changes.empty()) return;
  flat_.clear();
  // Growing a sample in a set costs about a tenth of learning it by itself.
  constexpr std::size_t kCheaper = 10;
  if (empty() || scratch.changes.size() * kCheaper > samples.n_distinct()) {
    regrow(samples, scratch, stop);
    return;
  }
  std::vector<Task> tasks{{kRoot, scratch.changes}};
  while (!tasks.empty()) {
    const Task task = tasks.back();
    tasks.pop_back();
    stop.tick(64 * task.changes.size());
    if (nodes_[static_cast<std::size_t>(task.at)].feature == kList) {
      apply_to_list(task, samples, scratch, stop);
    } else {
      apply_to_junction(task, samples, scratch, tasks);
    }
  }
}

void Tree::apply_to_junction(const Task& task, const SampleStore& samples, Scratch& scratch, std::vector<Task>& tasks) {
  Node& node = nodes_[static_cast<std::size_t>(task.at)];
  Junction& junction = junctions_[node.contents];
  for (const Change& change : task.changes) {
    junction.counts.add(samples.label(change.slot), change.by);
    junction.n += is_new(samples, change);
    junction.n -= is_gone(samples, change.slot);
  }
  const std::optional<Cut> new_cut = decide_again(task.at, samples, task.changes, scratch);
  if (!new_cut) {
    collapse(task, samples, scratch);
    return;
  }
  if (*new_cut != junction.cut) {
    cut_again(task, *new_cut, samples, scratch);
    return;
  }
  set_closed(node, junction);
  const Cut cut = junction.cut;
  const auto middle = std::partition(task.changes.begin(), task.changes.end(), [&](const Change& change) {
    return samples.row(change.slot)[cut.feature] <= cut.threshold;
  });
  const auto n_left = static_cast<std::size_t>(middle - task.changes.begin());
  if (n_left > 0) tasks.push_back({node.left, task.changes.first(n_left)});
  if (n_left < task.changes.size()) tasks.push_back({node.left + 1, task.changes.subspan(n_left)});
}

std::optional<Cut> Tree::decide_again(NodeIndex at, const SampleStore& samples, std::span<const Change> changes,
                                      Scratch& scratch) {
  const Node& node = nodes_[static_cast<std::size_t>(at)];
  Junction& junction = junctions_[node.contents];
  if (junction.is_stretched || junction.n <= kMostDeciding) return std::nullopt;
  const RankOrder by_rank = order(samples);
  const Slot last = junction.deciding[junction.last];
  const auto comes_later = [&](Slot slot) { return by_rank.less(junction.last_rank, last, by_rank.rank(slot), slot); };
  std::vector<Slot>& coming = scratch.coming;
  coming.clear();
  std::size_t n_lost = 0;
  const Change* lost = nullptr;
  bool is_reweighted = false;
  for (const Change& change : changes) {
    if (comes_later(change.slot)) continue;
    if (is_gone(samples, change.slot)) {
      ++n_lost;
      lost = &change;
    } else if (is_new(samples, change)) {
      coming.push_back(change.slot);
    } else {
      is_reweighted = true;
    }
  }
  if (n_lost == 0 && coming.empty() && !is_reweighted) return junction.cut;
  if (n_lost > kMostDeciding / 2) return std::nullopt;
  const bool are_few = n_lost <= 1 && coming.size() <= kFewExchanges && !is_reweighted;
  if (n_lost > 0) {
    for (const Change& change : changes) {
      if (is_new(samples, change) && comes_later(change.slot)) coming.push_back(change.slot);
    }
    for (const NodeIndex child : {node.left, node.left + 1}) find_next(child, samples, last, n_lost, coming);
  }
  if (are_few && exchange_few(junction, samples, lost, coming)) return junction.ballot.best();
  std::vector<Slot>& slots = junction.deciding;
  std::erase_if(slots, [&](Slot slot) { return is_gone(samples, slot); });
  slots.insert(slots.end(), coming.begin(), coming.end());
  std::nth_element(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(kMostDeciding) - 1, slots.end(), by_rank);
  slots.resize(kMostDeciding);
  return decide(junction, samples, scratch);
}

bool Tree::exchange_few(Junction& junction, const SampleStore& samples, const Change* lost,
                        std::vector<Slot>& coming) const {
  if (junction.ballot.empty()) return false;
  const RankOrder by_rank = order(samples);
  std::vector<Slot>& seats = junction.deciding;
  // No more than these can take a seat.
  const std::size_t n_first = std::min(coming.size(), kFewExchanges + 1);
  std::ranges::partial_sort(coming, coming.begin() + static_cast<std::ptrdiff_t>(n_first), by_rank);
  const auto give = [&](std::size_t seat, std::int64_t old_weight) {
    const Slot slot = coming.front();
    if (!junction.ballot.is_open_to(samples, seats, slot)) return false;
    junction.ballot.exchange(samples, by_rank, junction.seed, seats, seat, slot, static_cast<int>(old_weight));
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

// Finds at least the `n` samples of least rank after `last` below a node, or all if there are fewer.
void Tree::find_next(NodeIndex at, const SampleStore& samples, Slot last, std::size_t n,
                     std::vector<Slot>& found) const {
  const RankOrder by_rank = order(samples);
  std::vector<NodeIndex> stack{at};
  std::vector<Slot> here;
  while (!stack.empty()) {
    const Node& node = nodes_[static_cast<std::size_t>(stack.back())];
    stack.pop_back();
    const bool is_list = node.feature == kList;
    const std::vector<Slot>& slots = is_list ? lists_[node.contents].slots : junctions_[node.contents].deciding;
    here.clear();
    for (const Slot slot : slots) {
      if (!is_gone(samples, slot) && by_rank(last, slot)) here.push_back(slot);
    }
    if (is_list || (here.size() >= n && !junctions_[node.contents].is_stretched)) {
      found.insert(found.end(), here.begin(), here.end());
    } else {
      stack.push_back(node.left);
      stack.push_back(node.left + 1);
    }
  }
}

std::vector<Slot> Tree::gather(const Task& task, const SampleStore& samples, Scratch& scratch) {
  std::vector<Slot> slots;
  const auto take_children = [&](const Node& node) {
    free_pairs_.push_back(node.left);
    scratch.stack.push_back(node.left);
    scratch.stack.push_back(node.left + 1);
  };
  scratch.stack.clear();
  take_children(nodes_[static_cast<std::size_t>(task.at)]);
  while (!scratch.stack.empty()) {
    const Node node = nodes_[static_cast<std::size_t>(scratch.stack.back())];
    scratch.stack.pop_back();
    if (node.feature == kList) {
      for (const Slot slot : lists_[node.contents].slots) {
        if (!is_gone(samples, slot)) slots.push_back(slot);
      }
      lists_.put_back(node.contents);
    } else {
      junctions_.put_back(node.contents);
      take_children(node);
    }
  }
  for (const Change& change : task.changes) {
    if (is_new(samples, change)) slots.push_back(change.slot);
  }
  return slots;
}

// Makes a list of a junction and all below it. The counts of the junction include the changes already.
void Tree::collapse(const Task& task, const SampleStore& samples, Scratch& scratch) {
  const std::int32_t index = lists_.take();
  List& list = lists_[index];
  list.slots = gather(task, samples, scratch);
  Node& node = nodes_[static_cast<std::size_t>(task.at)];
  Junction& junction = junctions_[node.contents];
  list.parent = junction.parent;
  list.seed = junction.seed;
  list.counts = std::move(junction.counts);
  junctions_.put_back(node.contents);
  settle(list, samples);
  node = {0.0f, kList, kNoNode, index};
}

// Gives a junction another cut, with all below it in two lists.
void Tree::cut_again(const Task& task, Cut cut, const SampleStore& samples, Scratch& scratch) {
  const std::int32_t list = lists_.take(), junction = nodes_[static_cast<std::size_t>(task.at)].contents;
  lists_[list].slots = gather(task, samples, scratch);
  junctions_[junction].cut = cut;
  split(task.at, junction, list, samples, scratch);
}

void Tree::apply_to_list(const Task& task, const SampleStore& samples, Scratch& scratch, StopProbe& stop) {
  const std::int32_t index = nodes_[static_cast<std::size_t>(task.at)].contents;
  List& list = lists_[index];
  const bool was_small = list.is_small();
  if (was_small && task.changes.size() == 1 && is_new(samples, task.changes.front()) &&
      list.slots.size() < kMostDeciding) {
    list.slots.push_back(task.changes.front().slot);
    list.uncut();
    return;
  }
  const auto n_lost = static_cast<std::size_t>(
      std::ranges::count_if(task.changes, [&](const Change& change) { return is_gone(samples, change.slot); }));
  if (n_lost == 1 && task.changes.size() == 1) {
    list.slots.erase(std::ranges::find(list.slots, task.changes.front().slot));
  } else if (n_lost > 0) {
    std::erase_if(list.slots, [&](Slot slot) { return is_gone(samples, slot); });
  }
  bool has_one_x = list.has_one_x;
  for (const Change& change : task.changes) {
    if (!was_small) list.counts.add(samples.label(change.slot), change.by);
    if (!is_new(samples, change)) continue;
    has_one_x = has_one_x && !list.slots.empty() && samples.same_x(change.slot, list.slots.front());
    list.slots.push_back(change.slot);
    list.is_ranked = false;
  }
  if (list.slots.empty()) {
    clear();
    return;
  }
  settle(list, samples);
  if (list.is_small()) return;
  list.has_one_x = has_one_x;
  // A sample is found in a list by looking at all of it. So that this does not happen often, a long list is cut.
  if (n_lost > 0 && !has_one_x && list.slots.size() > kLongList) (void)cut_list(task.at, samples, scratch, stop);
}

}  // namespace onlineforest::guided
