// How a tree of the order-free forest follows changes of its samples.
#include <algorithm>

#include "guided/tree.hpp"

namespace onlineforest::guided {

namespace {

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
  std::optional<bool> is_changed;
  if (!junction.is_stretched && junction.n > kMostDeciding) {
    is_changed = update_deciding(task.at, samples, task.changes);
  }
  bool is_cut_as_before = is_changed.has_value(), has_deciding = is_cut_as_before;
  if (is_changed.value_or(false)) {
    Panel& panel = scratch.panel;
    panel.load(samples, order(samples), junction.deciding);
    has_deciding = !panel.has_one_x(panel.all());
    is_cut_as_before = has_deciding && panel.decide(panel.all(), junction.seed) == junction.cut;
  }
  if (!is_cut_as_before) {
    collapse(task, samples, scratch, has_deciding);
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

// Puts a sample in the place of the one of greatest rank.
void Tree::replace_last(Junction& junction, Slot slot, const RankOrder& by_rank) {
  std::vector<Slot>& deciding = junction.deciding;
  std::erase(deciding, junction.last);
  const auto on_circle = [&](Slot a, Slot b) { return by_rank.on_circle(a, b); };
  deciding.insert(std::ranges::lower_bound(deciding, slot, on_circle), slot);
  junction.last = kNoSlot;
  for (const Slot other : deciding) {
    const Word rank = by_rank.rank(other);
    if (junction.last == kNoSlot || by_rank.less(junction.last_rank, junction.last, rank, other)) {
      junction.last = other;
      junction.last_rank = rank;
    }
  }
}

std::optional<bool> Tree::update_deciding(NodeIndex at, const SampleStore& samples, std::span<const Change> changes) {
  const Node& node = nodes_[static_cast<std::size_t>(at)];
  Junction& junction = junctions_[node.contents];
  const RankOrder by_rank = order(samples);
  std::size_t n_lost = 0, n_entering = 0;
  bool is_reweighted = false;
  const auto comes_later = [&](Slot slot) {
    return by_rank.less(junction.last_rank, junction.last, by_rank.rank(slot), slot);
  };
  for (const Change& change : changes) {
    if (comes_later(change.slot)) continue;
    if (is_gone(samples, change.slot)) {
      ++n_lost;
    } else if (is_new(samples, change)) {
      ++n_entering;
    } else {
      is_reweighted = true;
    }
  }
  if (n_lost == 0 && n_entering == 0) return is_reweighted;
  if (n_lost > kMostDeciding / 2) return std::nullopt;
  if (n_lost == 0 && n_entering == 1) {
    const auto entering = std::ranges::find_if(
        changes, [&](const Change& change) { return is_new(samples, change) && !comes_later(change.slot); });
    replace_last(junction, entering->slot, by_rank);
    return true;
  }
  std::vector<Slot> slots;
  for (const Slot slot : junction.deciding) {
    if (!is_gone(samples, slot)) slots.push_back(slot);
  }
  for (const Change& change : changes) {
    if (is_new(samples, change) && (n_lost > 0 || !comes_later(change.slot))) slots.push_back(change.slot);
  }
  if (n_lost > 0) {
    for (const NodeIndex child : {node.left, node.left + 1}) find_next(child, samples, junction.last, n_lost, slots);
  }
  constexpr auto kMost = static_cast<std::ptrdiff_t>(kMostDeciding);
  std::nth_element(slots.begin(), slots.begin() + kMost - 1, slots.end(), by_rank);
  slots.resize(kMostDeciding);
  junction.last = slots.back();
  junction.last_rank = by_rank.rank(junction.last);
  std::ranges::sort(slots, [&](Slot a, Slot b) { return by_rank.on_circle(a, b); });
  junction.deciding = std::move(slots);
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

// Makes a list of a junction and all below it. The counts of the junction include the changes already.
void Tree::collapse(const Task& task, const SampleStore& samples, Scratch& scratch, bool keeps_deciding) {
  const std::int32_t index = lists_.take();
  List& list = lists_[index];
  Node& top = nodes_[static_cast<std::size_t>(task.at)];
  std::vector<Slot> deciding;
  Slot last = kNoSlot;
  {
    Junction& junction = junctions_[top.contents];
    deciding = std::move(junction.deciding);
    last = junction.last;
    list.parent = junction.parent;
    list.seed = junction.seed;
    list.counts = std::move(junction.counts);
  }
  std::vector<NodeIndex>& stack = scratch.stack;
  stack.assign(1, task.at);
  while (!stack.empty()) {
    const Node node = nodes_[static_cast<std::size_t>(stack.back())];
    stack.pop_back();
    if (node.feature == kList) {
      for (const Slot slot : lists_[node.contents].slots) {
        if (!is_gone(samples, slot)) list.slots.push_back(slot);
      }
      lists_.put_back(node.contents);
    } else {
      junctions_.put_back(node.contents);
      free_pairs_.push_back(node.left);
      stack.push_back(node.left);
      stack.push_back(node.left + 1);
    }
  }
  for (const Change& change : task.changes) {
    if (is_new(samples, change)) list.slots.push_back(change.slot);
  }
  settle(list, samples);
  if (keeps_deciding) {
    list.deciding = std::move(deciding);
    list.last = last;
  }
  top = {0.0f, kList, kNoNode, index};
}

void Tree::apply_to_list(const Task& task, const SampleStore& samples, Scratch& scratch, StopProbe& stop) {
  const std::int32_t index = nodes_[static_cast<std::size_t>(task.at)].contents;
  List& list = lists_[index];
  const bool was_small = list.is_small();
  if (was_small && task.changes.size() == 1 && is_new(samples, task.changes.front()) &&
      list.slots.size() < kMostDeciding) {
    const RankOrder by_rank = order(samples);
    const auto on_circle = [&](Slot a, Slot b) { return by_rank.on_circle(a, b); };
    const Slot slot = task.changes.front().slot;
    list.slots.insert(std::ranges::lower_bound(list.slots, slot, on_circle), slot);
    list.uncut();
    return;
  }
  const bool loses = std::ranges::any_of(task.changes, [&](const Change& c) { return is_gone(samples, c.slot); });
  if (loses) std::erase_if(list.slots, [&](Slot slot) { return is_gone(samples, slot); });
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
  // A sample is found in a long list by looking at all of it. So that this does not happen again, the list is cut.
  if (loses && !has_one_x) (void)cut_list(task.at, samples, scratch, stop);
}

}  // namespace onlineforest::guided
