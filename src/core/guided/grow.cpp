// How a tree of the order-free forest cuts its blocks.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "guided/tree.hpp"

namespace onlineforest::guided {

namespace {

using Ranked = Scratch::Ranked;

// Sorts by rank, ties by content.
void sort_ranked(std::vector<Ranked>& items, std::vector<Ranked>& spare, const RankOrder& order) {
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
  for (std::size_t begin = 0, end; begin < items.size(); begin = end) {  // the bits that are left
    end = begin + 1;
    while (end < items.size() && items[end].rank >> (kHighest - kBits) == items[begin].rank >> (kHighest - kBits))
      ++end;
    if (end - begin > 1)
      std::sort(items.begin() + static_cast<std::ptrdiff_t>(begin), items.begin() + static_cast<std::ptrdiff_t>(end),
                less);
  }
}

// The samples of least rank, at least as many as decide. Ranks are uniform, so a bound finds them in one pass.
void find_low_ranks(std::span<const Slot> slots, const RankOrder& order, std::vector<Ranked>& found) {
  constexpr double kEnough = 100.0;  // nearly always at least 64
  const double share = kEnough / static_cast<double>(slots.size());
  const Word bound = share < 1.0 ? static_cast<Word>(std::ldexp(share, 64)) : ~Word{0};
  found.clear();
  for (const Slot slot : slots) {
    if (const Word rank = order.rank(slot); rank <= bound) found.push_back({rank, slot});
  }
  if (found.size() >= kMostDeciding) return;
  found.clear();
  for (const Slot slot : slots) found.push_back({order.rank(slot), slot});
}

bool have_one_x(const SampleStore& samples, std::span<const Slot> slots) {
  return std::ranges::all_of(slots, [&](Slot slot) { return samples.same_x(slot, slots.front()); });
}

}  // namespace

void Tree::regrow(const SampleStore& samples, Scratch& scratch, StopProbe& stop) {
  clear();
  scratch.loaded = nullptr;
  const RankOrder by_rank = order(samples);
  scratch.ranked.clear();
  for (Slot slot = 0; slot < static_cast<Slot>(samples.n_slots()); ++slot) {
    if (samples.weight(slot) > 0 && takes(samples, slot)) scratch.ranked.push_back({by_rank.rank(slot), slot});
  }
  stop.tick(8 * scratch.ranked.size());
  if (scratch.ranked.empty()) return;
  sort_ranked(scratch.ranked, scratch.ranked_too, by_rank);
  const std::int32_t index = lists_.take();
  List& list = lists_[index];
  list.seed = seeds_.root;
  list.is_ranked = true;
  scratch.counts.resize(static_cast<std::size_t>(samples.n_labels()));
  list.slots.reserve(scratch.ranked.size());
  for (const Ranked& item : scratch.ranked) {
    list.slots.push_back(item.slot);
    scratch.counts[static_cast<std::size_t>(samples.label(item.slot))] += samples.weight(item.slot);
  }
  for (std::size_t c = 0; c < scratch.counts.size(); ++c) {
    const std::int64_t count = std::exchange(scratch.counts[c], 0);
    if (count > 0) list.counts.add(static_cast<Label>(c), count);
  }
  settle(list, samples);
  nodes_.push_back({0.0f, kList, kNoNode, index});
}

// Brings a list whose slots have changed into its form.
void Tree::settle(List& list, const SampleStore& samples) {
  list.uncut();
  list.has_one_x = false;
  if (list.is_small()) {
    list.is_ranked = false;
    list.counts = {};
  } else if (list.counts.total() == 0) {
    for (const Slot slot : list.slots) list.counts.add(samples.label(slot), samples.weight(slot));
  }
}

NodeIndex Tree::take_pair() {
  if (!free_pairs_.empty()) {
    const NodeIndex pair = free_pairs_.back();
    free_pairs_.pop_back();
    return pair;
  }
  const auto pair = static_cast<NodeIndex>(nodes_.size());
  nodes_.resize(nodes_.size() + 2);
  free_pairs_.reserve(nodes_.capacity() / 2);  // so that giving pairs back cannot fail
  return pair;
}

void Tree::find_deciding(const SampleStore& samples, const List& list, Junction& junction, Scratch& scratch) const {
  const RankOrder by_rank = order(samples);
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

// The cut of a junction whose deciding samples are known; nothing if all their rows are equal.
std::optional<Cut> Tree::decide(Junction& junction, const SampleStore& samples, Scratch& scratch) const {
  Panel& panel = scratch.panel;
  panel.load(samples, order(samples), junction.deciding);
  scratch.loaded = nullptr;
  if (panel.has_one_x(panel.all())) return std::nullopt;
  const Cut cut = panel.decide(panel.all(), junction.seed).cut;
  junction.deciding.assign(panel.slots().begin(), panel.slots().end());
  junction.ballot.keep(panel);
  find_last(junction, samples);
  return cut;
}

void Tree::find_last(Junction& junction, const SampleStore& samples) const {
  const RankOrder by_rank = order(samples);
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

// Makes a junction of a large list. False if all its rows are equal.
bool Tree::cut_list(NodeIndex at, const SampleStore& samples, Scratch& scratch, StopProbe& stop) {
  const std::int32_t list_index = nodes_[static_cast<std::size_t>(at)].contents;
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
  junction.cut = *decide(junction, samples, scratch);
  junction.counts = std::move(list.counts);
  split(at, index, list_index, samples, scratch);
  return true;
}

// Gives a node a junction, whose samples are in a list. The list becomes that of the left side.
void Tree::split(NodeIndex at, std::int32_t junction_index, std::int32_t left_list, const SampleStore& samples,
                 Scratch& scratch) {
  const NodeIndex pair = take_pair();
  const std::int32_t right_list = lists_.take();
  const Junction& junction = junctions_[junction_index];
  const Cut cut = junction.cut;
  List &left = lists_[left_list], &right = lists_[right_list];
  // A stable partition, which keeps the order of ranks, and the counts of the left side.
  scratch.counts.resize(static_cast<std::size_t>(samples.n_labels()));
  const std::size_t n = left.slots.size();
  std::vector<Slot> kept(n);
  right.slots.resize(n);
  std::size_t n_left = 0, n_right = 0;
  for (const Slot slot : left.slots) {
    const bool goes_left = samples.row(slot)[cut.feature] <= cut.threshold;
    kept[n_left] = slot;
    right.slots[n_right] = slot;
    n_left += goes_left;
    n_right += !goes_left;
    scratch.counts[static_cast<std::size_t>(samples.label(slot))] += goes_left ? samples.weight(slot) : 0;
  }
  kept.resize(n_left);
  right.slots.resize(n_right);
  left.slots = std::move(kept);
  left.slots.shrink_to_fit();
  right.slots.shrink_to_fit();
  left.counts = {};
  for (const auto& [label, weight] : junction.counts.entries()) {
    std::int64_t& on_left = scratch.counts[static_cast<std::size_t>(label)];
    if (on_left > 0 && n_left > kMostDeciding) left.counts.add(label, on_left);
    if (weight > on_left && n_right > kMostDeciding) right.counts.add(label, weight - on_left);
    on_left = 0;
  }
  left.parent = right.parent = at;
  left.seed = derive(junction.seed, of_node::kLeft);
  right.seed = derive(junction.seed, of_node::kRight);
  right.is_ranked = left.is_ranked;
  settle(left, samples);
  settle(right, samples);
  nodes_[static_cast<std::size_t>(pair)] = {0.0f, kList, kNoNode, left_list};
  nodes_[static_cast<std::size_t>(pair) + 1] = {0.0f, kList, kNoNode, right_list};
  Node& node = nodes_[static_cast<std::size_t>(at)];
  node = {cut.threshold, cut.feature, pair, junction_index};
  set_closed(node, junction);
}

// Cuts the last twig of a path, or makes it a leaf.
void Tree::grow_twig(List& list, std::span<const std::uint32_t> path, const SampleStore& samples, Scratch& scratch) {
  Panel& panel = scratch.panel;
  if (scratch.loaded != &list) {
    panel.load(samples, order(samples), list.slots);
    scratch.loaded = &list;
  }
  if (list.twigs.empty()) list.twigs.push_back({panel.all(), 0.0f, kUncut, 0});
  const Block block = list.twigs[path.back()].block;
  if (panel.has_one_label(block) || panel.weight(block) < options_.min_samples_split || panel.has_one_x(block)) {
    make_leaf(list, path, panel);
    return;
  }
  Word seed = list.seed;
  for (std::size_t i = 1; i < path.size(); ++i) {
    seed = derive(seed, path[i] == list.twigs[path[i - 1]].next ? of_node::kLeft : of_node::kRight);
  }
  const Proposal& best = panel.decide(block, seed);
  const auto next = static_cast<std::uint32_t>(list.twigs.size());
  list.twigs.push_back({best.left, 0.0f, kUncut, 0});
  list.twigs.push_back({block & ~best.left, 0.0f, kUncut, 0});
  Twig& twig = list.twigs[path.back()];
  twig.threshold = best.cut.threshold;
  twig.feature = best.cut.feature;
  twig.next = next;
}

void Tree::grow_twigs(List& list, const SampleStore& samples, Scratch& scratch) {
  std::array<std::uint32_t, kMostDeciding> path{};
  for (std::size_t depth = 1;;) {
    const std::uint32_t last = path[depth - 1];
    if (list.twigs.empty() || list.twigs[last].feature == kUncut)
      grow_twig(list, {path.data(), depth}, samples, scratch);
    if (list.twigs[last].feature >= 0) {
      path[depth++] = list.twigs[last].next;
      continue;
    }
    while (depth > 1 && path[depth - 1] != list.twigs[path[depth - 2]].next) --depth;
    if (depth == 1) break;
    ++path[depth - 1];  // from a left twig to the right one
  }
}

void Tree::complete(const SampleStore& samples, Scratch& scratch, StopProbe& stop) {
  if (empty() || !flat_.empty()) return;
  scratch.loaded = nullptr;
  struct Visit {
    NodeIndex at, flat;
  };
  scratch.masses.resize(static_cast<std::size_t>(samples.n_labels()), 0);
  FlatTree flat;
  std::vector<Visit> visits{{kRoot, flat.add_root()}};
  while (!visits.empty()) {
    const Visit visit = visits.back();
    stop.tick(64);
    const Node node = nodes_[static_cast<std::size_t>(visit.at)];
    if (node.feature == kList && !lists_[node.contents].is_small() && !is_leaf(lists_[node.contents]) &&
        cut_list(visit.at, samples, scratch, stop)) {
      continue;
    }
    visits.pop_back();
    if (node.feature >= 0) {
      const NodeIndex left = flat.cut(visit.flat, node.feature, node.threshold);
      visits.push_back({node.left + 1, left + 1});
      visits.push_back({node.left, left});
    } else if (node.feature == kList && lists_[node.contents].is_small()) {
      List& list = lists_[node.contents];
      grow_twigs(list, samples, scratch);
      flatten_twigs(list, visit.flat, flat, scratch);
      list.free_twigs();
      stop.tick(4096);
    } else {
      flatten_large_leaf(node, visit.flat, flat, scratch);
    }
  }
  flat.finish();
  flat_ = std::move(flat);
}

void Tree::flatten_twigs(const List& list, NodeIndex root, FlatTree& flat, Scratch& scratch) const {
  std::vector<std::pair<std::uint32_t, NodeIndex>> visits{{0, root}};
  while (!visits.empty()) {
    const auto [index, at] = visits.back();
    visits.pop_back();
    const Twig& twig = list.twigs[index];
    if (twig.feature >= 0) {
      const NodeIndex left = flat.cut(at, twig.feature, twig.threshold);
      visits.emplace_back(twig.next + 1, left + 1);
      visits.emplace_back(twig.next, left);
      continue;
    }
    const Leaf& leaf = list.leaves[twig.next];
    const std::span shares = std::span(list.shares).subspan(leaf.begin, leaf.end - leaf.begin);
    if (leaf.left == 0.0) {
      flat.make_leaf(at, leaf.rest);
      for (const Share& share : shares) flat.add_share(share.label, share.mass);
      continue;
    }
    std::uint64_t rest = leaf.rest;
    for (const Share& share : shares) scratch.masses[static_cast<std::size_t>(share.label)] += share.mass;
    const NodeIndex top = add_ancestors(list.parent, leaf.left, {scratch.masses.data(), rest});
    flat.make_leaf(at, rest);
    if (top == kNoNode) {
      for (const Share& share : shares) {
        flat.add_share(share.label, std::exchange(scratch.masses[static_cast<std::size_t>(share.label)], 0));
      }
    } else {
      take_shares(junctions_[nodes_[static_cast<std::size_t>(top)].contents].counts, flat, scratch);
    }
  }
}

void Tree::flatten_large_leaf(const Node& node, NodeIndex at, FlatTree& flat, Scratch& scratch) const {
  const bool is_list = node.feature == kList;
  const LabelCounts& counts = is_list ? lists_[node.contents].counts : junctions_[node.contents].counts;
  const NodeIndex parent = is_list ? lists_[node.contents].parent : junctions_[node.contents].parent;
  std::uint64_t rest = 0;
  double left = 1.0;
  add_counts(counts, left, {scratch.masses.data(), rest});
  const NodeIndex top = add_ancestors(parent, left, {scratch.masses.data(), rest});
  flat.make_leaf(at, rest);
  take_shares(top == kNoNode ? counts : junctions_[nodes_[static_cast<std::size_t>(top)].contents].counts, flat,
              scratch);
}

// Moves the masses of these labels from the scratch memory to the last leaf.
void Tree::take_shares(const LabelCounts& labels, FlatTree& flat, Scratch& scratch) {
  for (const auto& [label, weight] : labels.entries()) {
    const std::uint64_t mass = std::exchange(scratch.masses[static_cast<std::size_t>(label)], 0);
    if (mass > 0) flat.add_share(label, mass);
  }
}

}  // namespace onlineforest::guided
