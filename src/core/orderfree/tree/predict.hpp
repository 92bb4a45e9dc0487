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
      leaves_calibrators_out_(Target::leaves_calibrators_out(index)) {}

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
    flat_.for_each_row(rows.data(), width, n, are_plain,
                       [&](std::size_t i, std::size_t leaf) { flat_.leaves().predict(leaf, answers.at(i)); });
    return;
  }
  for (std::size_t i = 0; i < n; ++i) predict_one(samples, rows.data() + i * width, answers.at(i), scratch, stop);
}

template <class Target>
void Tree<Target>::predict_one(const Samples& samples, const float* x, Answer answer, Scratch& scratch,
                               StopProbe& stop) {
  if (empty()) {
    answer_nothing(answer);
    return;
  }
  NodeIndex at = kRoot;
  for (;;) {
    while (node(at).kind == Kind::kSplit) {
      const Node& here = node(at);
      const float value = x[here.cell.cell()];
      const bool is_plain = !is_missing(value) && !here.cell.is_of_levels();
      const bool goes_left = is_plain ? value <= here.threshold : junctions_[here.contents].fork.sends_left(x);
      at = here.left + static_cast<NodeIndex>(!goes_left);
    }
    if (node(at).kind == Kind::kClosed) {
      answer_closed(at, answer);
      return;
    }
    List& list = lists_[node(at).contents];
    if (list.is_small()) break;
    if (is_leaf(list) || !split_list(at, samples, scratch, stop)) {
      answer_list(list, samples, answer);
      return;
    }
  }
  List& list = lists_[node(at).contents];
  std::array<std::uint32_t, kMostDeciding> path;
  std::size_t depth = 0;
  std::uint32_t twig = 0;
  for (;;) {
    path[depth++] = twig;
    if (list.twigs.empty() || list.twigs[twig].split.cell == kUnsplit) {
      grow_twig(list, {path.data(), depth}, samples, scratch);
    }
    const Twig& here = list.twigs[twig];
    if (here.split.cell == kLeaf) break;
    twig = here.next + static_cast<std::uint32_t>(!list.sends_left(twig, x));
  }
  answer_twig(list, list.twigs[twig].next, answer);
}

template <class Target>
void Tree<Target>::grow_all(const Samples& samples, Scratch& scratch, StopProbe& stop) {
  if (empty() || !flat_.empty()) return;
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
    if (here.kind == Kind::kSplit) {
      const NodeIndex left =
          flat.split(visit.flat, junctions_[here.contents].fork.split, junctions_[here.contents].fork.surrogates);
      visits.push_back({here.left + 1, left + 1});
      visits.push_back({here.left, left});
    } else if (here.kind == Kind::kList && lists_[here.contents].is_small()) {
      List& list = lists_[here.contents];
      if (list.twigs.empty()) list.swap_twigs(spare);
      grow_twigs(list, samples, scratch);
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
    if (twig.split.cell >= 0) {
      const NodeIndex left = flat.split(at, twig.split, list.surrogates_of(index));
      visits[n++] = {twig.next + 1, left + 1};
      visits[n++] = {twig.next, left};
    } else {
      flatten_twig_leaf(list, twig.next, at, flat, scratch);
    }
  }
}

template <class Target>
TreeTable<Target> Tree<Target>::table(const Samples& samples, Scratch& scratch, StopProbe& stop) {
  scratch.loaded = nullptr;
  grow_all(samples, scratch, stop);
  Table table;
  if (empty()) return table;
  std::vector<TableVisit> visits{{kRoot, nullptr, 0, -1, false}};
  List* described = nullptr;
  const auto close = [&described] {
    if (described != nullptr) described->free_twigs();
    described = nullptr;
  };
  while (!visits.empty()) {
    TableVisit visit = visits.back();
    visits.pop_back();
    stop.tick(64);
    if (visit.list == nullptr) {
      close();
      const Node& here = node(visit.at);
      if (here.kind != Kind::kList || !lists_[here.contents].is_small()) {
        add_node(visit, samples, table, visits);
        continue;
      }
      visit.list = described = &lists_[here.contents];
      grow_twigs(*described, samples, scratch);
    }
    add_twig(visit, samples, scratch, table, visits);
  }
  close();
  finish_table(table);
  return table;
}

template <class Target>
void Tree<Target>::add_node(const TableVisit& visit, const Samples& samples, Table& table,
                            std::vector<TableVisit>& visits) {
  const Node& here = node(visit.at);
  const bool is_split = here.kind == Kind::kSplit;
  const Fork fork = is_split ? junctions_[here.contents].fork : Fork{};
  const std::int32_t index = table.add(visit.parent, visit.is_right, fork.split, fork.surrogates);
  describe_node(visit.at, samples, table);
  if (!is_split) return;
  visits.push_back({here.left + 1, nullptr, 0, index, true});
  visits.push_back({here.left, nullptr, 0, index, false});
}

template <class Target>
void Tree<Target>::add_twig(const TableVisit& visit, const Samples& samples, Scratch& scratch, Table& table,
                            std::vector<TableVisit>& visits) const {
  if (scratch.loaded != visit.list) {
    scratch.panel.load(samples, order(samples), visit.list->slots);
    scratch.loaded = visit.list;
  }
  const Twig& twig = visit.list->twigs[visit.twig];
  const bool is_split = twig.split.cell >= 0;
  const Surrogates surrogates = is_split ? visit.list->surrogates_of(visit.twig) : Surrogates();
  const std::int32_t index = table.add(visit.parent, visit.is_right, is_split ? twig.split : Split{}, surrogates);
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
         junction.fork.surrogates.capacity() * sizeof(Surrogate);
  }
  for (const List& list : lists_.items()) {
    n += list.slots.capacity() * sizeof(Slot) + list.summary.nbytes() + list.twigs.capacity() * sizeof(Twig) +
         list.leaves.nbytes() + list.large_leaf.nbytes() + list.surrogates.capacity() * sizeof(list.surrogates[0]);
    for (const auto& [twig, surrogates] : list.surrogates) n += surrogates.capacity() * sizeof(Surrogate);
  }
  return n;
}

}  // namespace onlineforest::orderfree
