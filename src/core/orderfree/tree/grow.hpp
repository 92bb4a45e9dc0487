// Stage of a tree: growing, which is splitting blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "orderfree/tree/tree.hpp"

namespace onlineforest::orderfree {

// Sorts by rank, ties by row and value. Large sets get a radix sort of the highest 22 bits first.
template <class Ranked, class Order>
void sort_ranked(std::vector<Ranked>& items, std::vector<Ranked>& spare, const Order& order) {
  const auto less = [&](const Ranked& a, const Ranked& b) { return order.less(a.rank, a.slot, b.rank, b.slot); };
  constexpr int kBits = 11, kHighest = 64 - kBits;
  constexpr std::size_t kBuckets = std::size_t{1} << kBits;
  if (items.size() < kBuckets) {
    std::ranges::sort(items, less);
    return;
  }
  spare.resize(items.size());
  for (const int shift : {kHighest - kBits, kHighest}) {
    std::array<std::uint32_t, kBuckets> begins{};
    for (const Ranked& item : items) ++begins[item.rank >> shift & (kBuckets - 1)];
    std::uint32_t begin = 0;
    for (std::uint32_t& count : begins) begin += std::exchange(count, begin);
    for (const Ranked& item : items) spare[begins[item.rank >> shift & (kBuckets - 1)]++] = item;
    items.swap(spare);
  }
  for (std::size_t begin = 0, end; begin < items.size(); begin = end) {  // sort runs of equal high bits
    end = begin + 1;
    while (end < items.size() && items[end].rank >> (kHighest - kBits) == items[begin].rank >> (kHighest - kBits))
      ++end;
    if (end - begin > 1)
      std::sort(items.begin() + static_cast<std::ptrdiff_t>(begin), items.begin() + static_cast<std::ptrdiff_t>(end),
                less);
  }
}

// The samples of a large block are scattered in memory, so each is prefetched this number of samples ahead.
inline constexpr std::size_t kAhead = 16;

// Finds the samples of least rank, at least kMostDeciding of them. Ranks are uniform, so in nearly all cases one pass
// with an upper bound on the rank finds enough.
template <class Ranked, class Order>
void find_low_ranks(std::span<const Slot> slots, const Order& order, std::vector<Ranked>& found) {
  constexpr double kEnough = 100.0;  // expected number below the bound; at least 64 in nearly all cases
  const double share = kEnough / static_cast<double>(slots.size());
  const Word bound = share < 1.0 ? static_cast<Word>(std::ldexp(share, 64)) : ~Word{0};
  found.clear();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i + kAhead < slots.size()) order.prefetch(slots[i + kAhead]);
    if (const Word rank = order.rank(slots[i]); rank <= bound) found.push_back({rank, slots[i]});
  }
  if (found.size() >= kMostDeciding) return;
  found.clear();
  for (const Slot slot : slots) found.push_back({order.rank(slot), slot});
}

template <class Samples>
bool have_one_x(const Samples& samples, std::span<const Slot> slots) {
  return std::ranges::all_of(slots, [&](Slot slot) { return samples.same_x(slot, slots.front()); });
}

template <class Target>
void Tree<Target>::regrow(const Samples& samples, Scratch& scratch, StopProbe& stop, bool ranks) {
  clear();
  scratch.loaded = nullptr;
  const Order by_rank = order(samples);
  scratch.ranked.clear();
  for (Slot slot = 0; slot < static_cast<Slot>(samples.n_slots()); ++slot) {
    if (samples.weight(slot) > 0 && takes(samples, slot)) scratch.ranked.push_back({by_rank.rank(slot), slot});
  }
  stop.tick(8 * scratch.ranked.size());
  if (scratch.ranked.empty()) return;
  if (ranks) sort_ranked(scratch.ranked, scratch.ranked_too, by_rank);
  const std::int32_t index = lists_.take();
  List& list = lists_[index];
  list.seed = seeds_.root;
  list.is_ranked = ranks;
  list.slots.reserve(scratch.ranked.size());
  for (const Ranked& item : scratch.ranked) list.slots.push_back(item.slot);
  list.summary = Target::summary_of(samples, list.slots, scratch.of_target);
  Node& root = nodes_.emplace_back();
  root.weight = list.summary.total();
  root.contents = index;
  reset_list(list, samples);
}

// Discards what was computed from the former slots of a list. A large list gets a new summary if it has none, or if
// its summary cannot follow the changes.
template <class Target>
void Tree<Target>::reset_list(List& list, const Samples& samples) const {
  list.unsplit();
  list.has_one_x = false;
  if (list.is_small()) {
    list.is_ranked = false;
    list.summary = {};
  } else if (list.summary.total() == 0 || list.summary.is_lost()) {
    list.summary = {};
    for (const Slot slot : list.slots) list.summary.add(samples.value(slot), samples.weight(slot));
  }
}

template <class Target>
NodeIndex Tree<Target>::take_pair() {
  if (!free_pairs_.empty()) {
    const NodeIndex pair = free_pairs_.back();
    free_pairs_.pop_back();
    return pair;
  }
  const auto pair = static_cast<NodeIndex>(nodes_.size());
  nodes_.resize(nodes_.size() + 2);
  free_pairs_.reserve(nodes_.capacity() / 2);  // so that returning a pair cannot fail
  return pair;
}

template <class Target>
void Tree<Target>::find_deciding(const Samples& samples, const List& list, Junction& junction, Scratch& scratch) const {
  const Order by_rank = order(samples);
  constexpr auto kMost = static_cast<std::ptrdiff_t>(kMostDeciding);
  std::vector<Slot>& deciding = junction.deciding;
  if (list.is_ranked) {
    deciding.assign(list.slots.begin(), list.slots.begin() + kMost);
  } else {
    find_low_ranks(list.slots, by_rank, scratch.ranked);
    const auto less = [&](const Ranked& a, const Ranked& b) { return by_rank.less(a.rank, a.slot, b.rank, b.slot); };
    std::nth_element(scratch.ranked.begin(), scratch.ranked.begin() + kMost - 1, scratch.ranked.end(), less);
    deciding.clear();
    for (std::size_t i = 0; i < kMostDeciding; ++i) deciding.push_back(scratch.ranked[i].slot);
  }
  junction.is_stretched = have_one_x(samples, deciding);
  if (!junction.is_stretched) return;
  Slot best = kNoSlot;
  for (const Slot slot : list.slots) {
    if (!samples.same_x(slot, deciding.front()) && (best == kNoSlot || by_rank(slot, best))) best = slot;
  }
  deciding.back() = best;
}

// Decides the split of a junction from its deciding samples. Returns nothing if all their rows are equal.
template <class Target>
std::optional<Fork> Tree<Target>::decide(Junction& junction, const Samples& samples, Scratch& scratch) const {
  Panel<Target>& panel = scratch.panel;
  panel.load(samples, order(samples), junction.deciding);
  scratch.loaded = nullptr;
  if (panel.has_one_x(panel.all())) return std::nullopt;
  Line line = Target::fit_line(panel, scratch.of_target);
  Target::set_line(line, splits_rests_, panel);
  junction.has_new_line = !(line == junction.line);
  junction.line = line;
  Fork fork{panel.decide(panel.all(), junction.seed).split, panel.surrogates()};
  junction.deciding.assign(panel.slots().begin(), panel.slots().end());
  junction.ballot.keep(panel);
  find_last(junction, samples);
  return fork;
}

template <class Target>
void Tree<Target>::find_last(Junction& junction, const Samples& samples) const {
  const Order by_rank = order(samples);
  const std::vector<Slot>& deciding = junction.deciding;
  junction.last = 0;
  junction.last_rank = by_rank.rank(deciding[0]);
  for (std::size_t i = 1; i < deciding.size(); ++i) {
    const Word rank = by_rank.rank(deciding[i]);
    if (!by_rank.less(junction.last_rank, deciding[junction.last], rank, deciding[i])) continue;
    junction.last = i;
    junction.last_rank = rank;
  }
}

// Turns a large list into a junction with two lists. Returns false, and changes nothing, if all its rows are equal.
template <class Target>
bool Tree<Target>::split_list(NodeIndex at, const Samples& samples, Scratch& scratch, StopProbe& stop) {
  const std::int32_t list_index = node(at).contents;
  List& list = lists_[list_index];
  if (have_one_x(samples, list.slots)) {
    list.has_one_x = true;
    return false;
  }
  stop.tick(8 * list.slots.size());
  const std::int32_t index = junctions_.take();
  Junction& junction = junctions_[index];
  junction.parent = list.parent;
  junction.seed = list.seed;
  junction.n = list.slots.size();
  find_deciding(samples, list, junction, scratch);
  junction.fork = *decide(junction, samples, scratch);
  junction.summary = std::move(list.summary);
  divide(at, index, list_index, samples, scratch);
  return true;
}

// Divides a list by the split of a junction, and makes `at` the node of the junction. The list becomes the left child;
// a new list becomes the right one.
template <class Target>
void Tree<Target>::divide(NodeIndex at, std::int32_t junction_index, std::int32_t left_list, const Samples& samples,
                          Scratch& scratch) {
  const NodeIndex pair = take_pair();
  const std::int32_t right_list = lists_.take();
  const Junction& junction = junctions_[junction_index];
  List &left = lists_[left_list], &right = lists_[right_list];
  // The partition is stable, so ranked lists stay ranked.
  typename Target::Division division(samples, scratch.of_target);
  const std::size_t n = left.slots.size();
  std::vector<Slot>&to_left = scratch.to_left, &to_right = scratch.to_right;
  to_left.resize(n);
  to_right.resize(n);
  std::size_t n_left = 0, n_right = 0;
  Weight weight_of_left = 0;
  const auto cell = static_cast<std::size_t>(junction.fork.split.cell);
  for (std::size_t i = 0; i < n; ++i) {
    const Slot slot = left.slots[i];
    if (i + kAhead < n) samples.prefetch(left.slots[i + kAhead], cell);
    const bool goes_left = junction.fork.sends_left(samples.row(slot));
    to_left[n_left] = slot;
    to_right[n_right] = slot;
    n_left += goes_left;
    n_right += !goes_left;
    weight_of_left += goes_left ? samples.weight(slot) : 0;
    division.add(samples.value(slot), samples.weight(slot), goes_left);
  }
  left.slots = std::vector(to_left.begin(), to_left.begin() + static_cast<std::ptrdiff_t>(n_left));
  right.slots = std::vector(to_right.begin(), to_right.begin() + static_cast<std::ptrdiff_t>(n_right));
  left.summary = {};
  division.finish(junction.summary, left.is_small() ? nullptr : &left.summary,
                  right.is_small() ? nullptr : &right.summary);
  left.parent = right.parent = at;
  left.seed = derive(junction.seed, of_node::kLeft);
  right.seed = derive(junction.seed, of_node::kRight);
  right.is_ranked = left.is_ranked;
  reset_list(left, samples);
  reset_list(right, samples);
  node(pair) = {};
  node(pair).weight = weight_of_left;
  node(pair).contents = left_list;
  node(pair + 1) = {};
  node(pair + 1).weight = node(at).weight - weight_of_left;
  node(pair + 1).contents = right_list;
  node(at).left = pair;
  node(at).contents = junction_index;
  set_split(at, junction);
}

// Copies the split of a junction into its node, where walks read it.
template <class Target>
void Tree<Target>::set_split(NodeIndex at, const Junction& junction) {
  node(at).threshold = junction.fork.split.threshold;
  node(at).cell = SplitCell(junction.fork.split);
  node(at).kind = junction.summary.is_pure() ? Kind::kClosed : Kind::kSplit;
}

// Puts the samples of a small list into the panel.
template <class Target>
void Tree<Target>::load(const List& list, const Samples& samples, Scratch& scratch) const {
  if (scratch.loaded == &list) return;
  scratch.panel.load(samples, order(samples), list.slots);
  Target::set_line(line_above(list), splits_rests_, scratch.panel);
  scratch.loaded = &list;
}

// Grows the last twig of a path: splits it or makes it a leaf.
template <class Target>
void Tree<Target>::grow_twig(List& list, std::span<const std::uint32_t> path, const Samples& samples,
                             Scratch& scratch) {
  load(list, samples, scratch);
  Panel<Target>& panel = scratch.panel;
  if (list.twigs.empty()) list.twigs.push_back({panel.all(), panel.weight_of(panel.all())});
  const Block block = list.twigs[path.back()].block;
  const Weight all = list.twigs[path.back()].weight;
  if (panel.has_one_value(block) || all < least_weight() || panel.has_one_x(block)) {
    list.twigs[path.back()].split.cell = kLeaf;
    return;
  }
  Word seed = list.seed;
  for (std::size_t i = 1; i < path.size(); ++i) {
    seed = derive(seed, path[i] == list.twigs[path[i - 1]].next ? of_node::kLeft : of_node::kRight);
  }
  const Proposal& best = panel.decide(block, seed);
  const auto next = static_cast<std::uint32_t>(list.twigs.size());
  const Weight weight_of_left = panel.weight_of(best.left);
  list.twigs.push_back({best.left, weight_of_left});
  list.twigs.push_back({block & ~best.left, all - weight_of_left});
  if (!panel.surrogates().empty()) list.surrogates.emplace_back(path.back(), panel.surrogates());
  Twig& twig = list.twigs[path.back()];
  twig.split = best.split;
  twig.next = next;
}

template <class Target>
std::uint32_t Tree<Target>::leaf_at(List& list, std::span<const std::uint32_t> path, const Samples& samples,
                                    Scratch& scratch) const {
  std::int32_t& leaf = list.twigs[path.back()].leaf;
  if (leaf == kNone) {
    load(list, samples, scratch);
    make_leaf(list, path, scratch.panel);
    leaf = static_cast<std::int32_t>(list.leaves.size()) - 1;
  }
  return static_cast<std::uint32_t>(leaf);
}

template <class Target>
void Tree<Target>::grow_twigs(List& list, Weight stop_weight, const Samples& samples, Scratch& scratch) {
  std::array<std::uint32_t, kMostDeciding> path{};
  for (std::size_t depth = 1;;) {
    const std::uint32_t last = path[depth - 1];
    const std::span<const std::uint32_t> whole(path.data(), depth);
    const bool is_entered = depth == 1 || list.twigs[last].weight >= stop_weight;
    if (is_entered) {
      if (list.twigs.empty() || list.twigs[last].split.cell == kUnsplit) grow_twig(list, whole, samples, scratch);
      if (list.twigs[last].split.cell >= 0) {
        path[depth++] = list.twigs[last].next;
        continue;
      }
    }
    (void)leaf_at(list, is_entered ? whole : whole.first(depth - 1), samples, scratch);
    while (depth > 1 && path[depth - 1] != list.twigs[path[depth - 2]].next) --depth;
    if (depth == 1) break;
    ++path[depth - 1];  // continue with the right sibling
  }
}

}  // namespace onlineforest::orderfree
