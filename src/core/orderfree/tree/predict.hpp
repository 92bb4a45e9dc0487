// Stage of a tree: predicting, growing all pending splits, and the table of its nodes.
#pragma once

#include <array>
#include <cmath>
#include <utility>

#include "orderfree/tree/grow.hpp"

namespace onlineforest::orderfree {

template <class Target>
Tree<Target>::Tree(const Options& options, std::size_t index)
    : options_(options),
      seeds_(options.seed, index),
      membership_(options.max_samples < 1.0 ? static_cast<Word>(std::ldexp(options.max_samples, 64)) : ~Word{0}),
      leaves_calibrators_out_(Target::leaves_calibrators_out(index)),
      splits_rests_(Target::splits_rests(index, options.layout)) {}

template <class Target>
void Tree<Target>::clear() {
  flat_.clear();
  nodes_.clear();
  free_pairs_.clear();
  junctions_.clear();
  lists_.clear();
}

template <class Target>
void Tree<Target>::predict(const Samples& samples, std::span<const float> rows, bool are_plain, const Answers& answers,
                           Scratch& scratch, StopProbe& stop) {
  const std::size_t width = samples.layout().width(), n = rows.size() / width;
  if (!flat_.empty()) {
    flat_.for_each_row(rows.data(), width, n, are_plain, [&](std::size_t i, std::size_t leaf) {
      flat_.leaves().predict(leaf, rows.data() + i * width, answers.at(i));
    });
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto answer_of = [&](std::size_t) -> Answer { return answers.at(i); };
    walk(samples, rows.data() + i * width, std::span(&stop_weight_, 1), answer_of, scratch, stop);
  }
}

template <class Target>
void Tree<Target>::predict_each(const Samples& samples, std::span<const float> rows,
                                std::span<const Weight> stop_weights, std::span<const Answers> answers,
                                Scratch& scratch, StopProbe& stop) {
  const std::size_t width = samples.layout().width(), n = rows.size() / width;
  for (std::size_t i = 0; i < n; ++i) {
    const auto answer_of = [&](std::size_t k) -> Answer { return answers[k].at(i); };
    walk(samples, rows.data() + i * width, stop_weights, answer_of, scratch, stop);
  }
}

template <class Target>
template <class AnswerOf>
void Tree<Target>::walk(const Samples& samples, const float* x, std::span<const Weight> stop_weights,
                        AnswerOf answer_of, Scratch& scratch, StopProbe& stop) {
  std::size_t n_open = stop_weights.size();  // the walks of larger stop weights have ended
  if (empty()) {
    while (n_open > 0) answer_nothing(answer_of(--n_open));
    return;
  }
  NodeIndex at = kRoot;
  for (;;) {
    while (node(at).kind == Kind::kSplit) {
      const Node& here = node(at);
      const float value = x[here.cell.cell()];
      const bool is_plain = !is_missing(value) && !here.cell.is_of_levels();
      const bool goes_left = is_plain ? value <= here.threshold : junctions_[here.contents].fork.sends_left(x);
      const NodeIndex child = here.left + static_cast<NodeIndex>(!goes_left);
      while (node(child).weight < stop_weights[n_open - 1]) {
        answer_junction(at, samples, x, scratch, answer_of(--n_open));
        if (n_open == 0) return;
      }
      at = child;
    }
    if (node(at).kind == Kind::kClosed) {
      while (n_open > 0) answer_junction(at, samples, x, scratch, answer_of(--n_open));
      return;
    }
    List& list = lists_[node(at).contents];
    if (list.is_small()) break;
    if (is_leaf(list) || !split_list(at, samples, scratch, stop)) {
      while (n_open > 0) answer_list(list, samples, x, answer_of(--n_open));
      return;
    }
  }
  walk_twigs(lists_[node(at).contents], samples, x, stop_weights.first(n_open), answer_of, scratch);
}

template <class Target>
template <class AnswerOf>
void Tree<Target>::walk_twigs(List& list, const Samples& samples, const float* x, std::span<const Weight> stop_weights,
                              AnswerOf answer_of, Scratch& scratch) {
  std::size_t n_open = stop_weights.size();
  std::array<std::uint32_t, kMostDeciding> path;
  std::size_t depth = 0;
  const auto answer = [&](std::size_t k) {
    const std::uint32_t leaf = leaf_at(list, {path.data(), depth}, samples, scratch);
    answer_twig(list, leaf, x, answer_of(k));
  };
  for (std::uint32_t twig = 0;;) {
    path[depth++] = twig;
    if (list.twigs.empty() || list.twigs[twig].split.cell == kUnsplit) {
      grow_twig(list, {path.data(), depth}, samples, scratch);
    }
    if (list.twigs[twig].split.cell == kLeaf) {
      while (n_open > 0) answer(--n_open);
      return;
    }
    twig = list.twigs[twig].next + static_cast<std::uint32_t>(!list.sends_left(twig, x));
    while (list.twigs[twig].weight < stop_weights[n_open - 1]) {
      answer(--n_open);
      if (n_open == 0) return;
    }
  }
}

template <class Target>
void Tree<Target>::stop_at(Weight stop_weight, const Samples& samples, Scratch& scratch) {
  if (stop_weight == stop_weight_) return;
  const bool rises = stop_weight > stop_weight_;
  stop_weight_ = stop_weight;
  flat_.clear();
  if (rises) prune(samples, scratch);
}

template <class Target>
void Tree<Target>::prune(const Samples& samples, Scratch& scratch) {
  if (empty()) return;
  scratch.loaded = nullptr;
  bool has_collapsed = false;
  std::vector<NodeIndex> stack{kRoot};
  while (!stack.empty()) {
    const NodeIndex at = stack.back();
    stack.pop_back();
    const Node here = node(at);
    const bool is_entered = at == kRoot || enters(here.weight);
    if (here.kind == Kind::kList) {
      if (!is_entered) lists_[here.contents].free_twigs();
    } else if (is_entered) {
      stack.insert(stack.end(), {here.left, here.left + 1});
    } else {
      collapse({at, {}}, samples, scratch);
      has_collapsed = true;
    }
  }
  if (has_collapsed) compact();
}

// Moves everything to new memory without gaps.
template <class Target>
void Tree<Target>::compact() {
  std::vector<Node> nodes{node(kRoot)};
  Recycler<Junction> junctions;
  Recycler<List> lists;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Node old = nodes[at];
    if (old.kind == Kind::kList) {
      const std::int32_t index = lists.take();
      lists[index] = std::move(lists_[old.contents]);
      nodes[at].contents = index;
      continue;
    }
    const std::int32_t index = junctions.take();
    junctions[index] = std::move(junctions_[old.contents]);
    nodes[at].contents = index;
    nodes[at].left = static_cast<NodeIndex>(nodes.size());
    for (const NodeIndex child : {old.left, old.left + 1}) {
      const Node& next = node(child);
      NodeIndex& parent = next.kind == Kind::kList ? lists_[next.contents].parent : junctions_[next.contents].parent;
      parent = static_cast<NodeIndex>(at);
      nodes.push_back(next);
    }
  }
  nodes.shrink_to_fit();
  nodes_ = std::move(nodes);
  free_pairs_ = {};
  free_pairs_.reserve(nodes_.capacity() / 2);
  junctions_ = std::move(junctions);
  lists_ = std::move(lists);
}

template <class Target>
void Tree<Target>::grow_all(const Samples& samples, Scratch& scratch, StopProbe& stop) {
  if (empty() || !flat_.empty()) return;
  if (stop_weight_ > 0) prune(samples, scratch);
  scratch.loaded = nullptr;
  struct Visit {
    NodeIndex at, flat;
  };
  scratch.of_target.make_room(samples);
  Flat flat;
  List spare;  // lends its memory for twigs to one list after the other
  std::vector<Visit> visits{{kRoot, flat.add_root()}};
  while (!visits.empty()) {
    const Visit visit = visits.back();
    stop.tick(64);
    const Node here = node(visit.at);
    if (here.kind == Kind::kList && !lists_[here.contents].is_small() && !is_leaf(lists_[here.contents]) &&
        split_list(visit.at, samples, scratch, stop)) {
      continue;
    }
    visits.pop_back();
    if (here.kind == Kind::kSplit && (enters(node(here.left).weight) || enters(node(here.left + 1).weight))) {
      const Fork& fork = junctions_[here.contents].fork;
      const NodeIndex left = flat.split(visit.flat, fork.split, fork.surrogates);
      for (const NodeIndex side : {1, 0}) {
        if (enters(node(here.left + side).weight)) {
          visits.push_back({here.left + side, left + side});
        } else {
          flatten_large_leaf(visit.at, samples, left + side, flat, scratch);
        }
      }
    } else if (here.kind == Kind::kList && lists_[here.contents].is_small()) {
      List& list = lists_[here.contents];
      if (list.twigs.empty()) list.swap_twigs(spare);
      grow_twigs(list, stop_weight_, samples, scratch);
      flatten_twigs(list, visit.flat, flat, scratch);
      list.swap_twigs(spare);
      spare.unsplit();
      list.free_twigs();
      stop.tick(4096);
    } else {
      flatten_large_leaf(visit.at, samples, visit.flat, flat, scratch);
    }
  }
  flat.finish();
  flat_ = std::move(flat);
}

template <class Target>
void Tree<Target>::flatten_twigs(const List& list, NodeIndex root, Flat& flat, Scratch& scratch) const {
  struct Visit {
    std::uint32_t twig;
    NodeIndex at;
  };
  std::array<Visit, kMostDeciding> visits{{{0, root}}};  // large enough: each pending twig holds a sample
  for (std::size_t n = 1; n > 0;) {
    const auto [index, at] = visits[--n];
    const Twig& twig = list.twigs[index];
    const auto add_leaf = [&](NodeIndex to) {
      flatten_twig_leaf(list, static_cast<std::uint32_t>(twig.leaf), to, flat, scratch);
    };
    const auto is_entered = [&](std::uint32_t side) { return enters(list.twigs[twig.next + side].weight); };
    if (twig.split.cell < 0 || (!is_entered(0) && !is_entered(1))) {
      add_leaf(at);
      continue;
    }
    const NodeIndex left = flat.split(at, twig.split, list.surrogates_of(index));
    for (const std::uint32_t side : {1U, 0U}) {
      const NodeIndex to = left + static_cast<NodeIndex>(side);
      if (is_entered(side)) {
        visits[n++] = {twig.next + side, to};
      } else {
        add_leaf(to);
      }
    }
  }
}

template <class Target>
TreeTable<Target> Tree<Target>::table_down_to(Weight least, const Samples& samples, Scratch& scratch, StopProbe& stop) {
  scratch.loaded = nullptr;
  Table table;
  table.stop_weight = stop_weight_;
  if (empty()) return table;
  std::vector<TableVisit> visits{{kRoot, nullptr, 0, -1, false}};
  List* described = nullptr;
  const auto close = [&described] {
    if (described != nullptr) described->free_twigs();
    described = nullptr;
  };
  while (!visits.empty()) {
    TableVisit visit = visits.back();
    stop.tick(64);
    if (visit.list == nullptr) {
      close();
      const Node here = node(visit.at);
      const bool is_list = here.kind == Kind::kList, is_open = visit.at == kRoot || here.weight >= least;
      if (is_list && is_open && !lists_[here.contents].is_small() && !is_leaf(lists_[here.contents]) &&
          split_list(visit.at, samples, scratch, stop)) {
        continue;
      }
      if (is_list && lists_[here.contents].is_small()) {
        described = &lists_[here.contents];
        if (is_open) grow_twigs(*described, least, samples, scratch);
        visit.list = described;
      }
    }
    visits.pop_back();
    if (visit.list == nullptr) {
      add_node(visit, least, samples, scratch, table, visits);
    } else {
      add_twig(visit, least, samples, scratch, table, visits);
    }
  }
  close();
  finish_table(table);
  if (least < stop_weight_) prune(samples, scratch);
  return table;
}

template <class Target>
void Tree<Target>::add_node(const TableVisit& visit, Weight least, const Samples& samples, Scratch& scratch,
                            Table& table, std::vector<TableVisit>& visits) {
  const Node& here = node(visit.at);
  const bool is_split = here.kind == Kind::kSplit && (visit.at == kRoot || here.weight >= least);
  const Fork fork = is_split ? junctions_[here.contents].fork : Fork{};
  const std::int32_t index = table.add(visit.parent, visit.is_right, fork.split, fork.surrogates);
  table.last_rank.push_back(is_split ? junctions_[here.contents].last_rank : kAllDecide);
  describe_node(visit.at, samples, scratch, table);
  if (!is_split) return;
  visits.push_back({here.left + 1, nullptr, 0, index, true});
  visits.push_back({here.left, nullptr, 0, index, false});
}

template <class Target>
void Tree<Target>::add_twig(const TableVisit& visit, Weight least, const Samples& samples, Scratch& scratch,
                            Table& table, std::vector<TableVisit>& visits) const {
  const List& list = *visit.list;
  load(list, samples, scratch);
  Twig twig{scratch.panel.all(), 0};  // the whole list, if it is a leaf of the table
  if (!list.twigs.empty()) twig = list.twigs[visit.twig];
  const bool is_split = twig.split.cell >= 0 && (visit.parent < 0 || twig.weight >= least);
  const Surrogates surrogates = is_split ? list.surrogates_of(visit.twig) : Surrogates();
  const std::int32_t index = table.add(visit.parent, visit.is_right, is_split ? twig.split : Split{}, surrogates);
  table.last_rank.push_back(kAllDecide);
  describe_twig(twig.block, scratch.panel, table);
  if (!is_split) return;
  visits.push_back({kNoNode, visit.list, twig.next + 1, index, true});
  visits.push_back({kNoNode, visit.list, twig.next, index, false});
}

template <class Target>
std::size_t Tree<Target>::nbytes() const {
  std::size_t n = flat_.nbytes() + nodes_.capacity() * sizeof(Node) + free_pairs_.capacity() * sizeof(NodeIndex) +
                  junctions_.nbytes() + lists_.nbytes();
  for (const Junction& junction : junctions_.items()) {
    n += junction.summary.nbytes() + junction.deciding.capacity() * sizeof(Slot) + junction.ballot.nbytes() +
         junction.fork.surrogates.capacity() * sizeof(Surrogate) + junction.large_leaf.nbytes();
  }
  for (const List& list : lists_.items()) {
    n += list.slots.capacity() * sizeof(Slot) + list.summary.nbytes() + list.twigs.capacity() * sizeof(Twig) +
         list.leaves.nbytes() + list.large_leaf.nbytes() + list.surrogates.capacity() * sizeof(list.surrogates[0]);
    for (const auto& [twig, surrogates] : list.surrogates) n += surrogates.capacity() * sizeof(Surrogate);
  }
  return n;
}

}  // namespace onlineforest::orderfree
