#include "guided/tree.hpp"

#include <cmath>

namespace onlineforest::guided {

namespace {

// Halves are rounded up.
std::uint64_t in_units(double share) {
  const double units = share * kUnit + 0.5;
  return static_cast<std::uint64_t>(units);
}

}  // namespace

Tree::Tree(const Options& options, std::size_t index)
    : options_(options),
      seeds_(options.seed, index),
      membership_(options.max_samples < 1.0 ? static_cast<Word>(std::ldexp(options.max_samples, 64)) : ~Word{0}) {}

bool Tree::takes(const SampleStore& samples, Slot slot) const {
  return options_.max_samples >= 1.0 || scramble(samples.x_hash(slot) ^ seeds_.membership) < membership_;
}

void Tree::clear() {
  flat_.clear();
  nodes_.clear();
  free_pairs_.clear();
  junctions_.clear();
  lists_.clear();
}

void Tree::set_closed(Node& node, const Junction& junction) const {
  node.feature = counts_as_leaf(junction.counts) ? kClosed : junction.cut.feature;
}

// Adds the shares of a node's labels; `left` becomes what is left for its parent.
void Tree::add_counts(const LabelCounts& counts, double& left, Masses masses) const {
  const double discount = options_.discount, total = static_cast<double>(counts.total());
  for (const auto& [label, weight] : counts.entries()) {
    masses.labels[label] += in_units(left * ((static_cast<double>(weight) - discount) / total));
  }
  left *= discount * static_cast<double>(counts.n_labels()) / total;
}

// Adds the shares of a node and its ancestors, and the rest. Returns the last of these nodes; kNoNode if there is none.
NodeIndex Tree::add_ancestors(NodeIndex at, double left, Masses masses) const {
  NodeIndex last = kNoNode;
  while (at != kNoNode && left >= kLeastLeft) {
    const Junction& junction = junctions_[nodes_[static_cast<std::size_t>(at)].contents];
    add_counts(junction.counts, left, masses);
    last = at;
    at = junction.parent;
  }
  masses.rest += in_units(left);
  return last;
}

void Tree::predict(const SampleStore& samples, std::span<const float> rows, std::span<std::uint64_t> rests,
                   std::uint64_t* masses, Scratch& scratch, StopProbe& stop) {
  const auto n_labels = static_cast<std::size_t>(samples.n_labels());
  const std::size_t width = samples.n_features();
  if (!flat_.empty()) {
    flat_.predict(rows.data(), width, rests, masses, n_labels);
    return;
  }
  for (std::size_t i = 0; i < rests.size(); ++i) {
    predict_one(samples, rows.data() + i * width, {masses + i * n_labels, rests[i]}, scratch, stop);
  }
}

void Tree::predict_one(const SampleStore& samples, const float* x, Masses masses, Scratch& scratch, StopProbe& stop) {
  if (empty()) {
    masses.rest += in_units(1.0);
    return;
  }
  const Node* node = nodes_.data();
  NodeIndex at = kRoot;
  for (;;) {
    while (node->feature >= 0) {
      at = node->left + static_cast<NodeIndex>(x[node->feature] > node->threshold);
      node = &nodes_[static_cast<std::size_t>(at)];
    }
    if (node->feature == kClosed) {
      (void)add_ancestors(at, 1.0, masses);
      return;
    }
    List& list = lists_[node->contents];
    if (list.is_small()) break;
    if (is_leaf(list) || !cut_list(at, samples, scratch, stop)) {
      double left = 1.0;
      add_counts(list.counts, left, masses);
      (void)add_ancestors(list.parent, left, masses);
      return;
    }
    node = &nodes_[static_cast<std::size_t>(at)];
  }
  List& list = lists_[node->contents];
  std::array<std::uint32_t, kMostDeciding> path;
  std::size_t depth = 0;
  std::uint32_t twig = 0;
  for (;;) {
    path[depth++] = twig;
    if (list.twigs.empty() || list.twigs[twig].feature == kUncut) {
      grow_twig(list, {path.data(), depth}, samples, scratch);
    }
    const Twig& here = list.twigs[twig];
    if (here.feature == kLeaf) break;
    twig = here.next + static_cast<std::uint32_t>(x[here.feature] > here.threshold);
  }
  const Leaf& leaf = list.leaves[list.twigs[twig].next];
  for (std::uint32_t i = leaf.begin; i < leaf.end; ++i) masses.labels[list.shares[i].label] += list.shares[i].mass;
  masses.rest += leaf.rest;
  if (leaf.left > 0.0) (void)add_ancestors(list.parent, leaf.left, masses);
}

// The shares of a leaf and of its ancestors within the list.
void Tree::make_leaf(List& list, std::span<const std::uint32_t> path, const Panel& panel) const {
  const auto begin = static_cast<std::uint32_t>(list.shares.size());
  double left = 1.0;
  for (std::size_t i = path.size(); i-- > 0 && left >= kLeastLeft;) {
    const Block block = list.twigs[path[i]].block;
    const auto total = static_cast<double>(panel.weight(block));
    double n_labels = 0.0;
    panel.for_each_label(block, [&](Label label, std::int64_t weight) {
      ++n_labels;
      const auto mass =
          static_cast<std::uint32_t>(in_units(left * ((static_cast<double>(weight) - options_.discount) / total)));
      const auto found = std::ranges::find(list.shares.begin() + begin, list.shares.end(), label, &Share::label);
      if (found != list.shares.end()) {
        found->mass += mass;
      } else {
        list.shares.push_back({label, mass});
      }
    });
    left *= options_.discount * n_labels / total;
  }
  const bool is_done = left < kLeastLeft;
  list.leaves.push_back({is_done ? 0.0 : left, begin, static_cast<std::uint32_t>(list.shares.size()),
                         is_done ? static_cast<std::uint32_t>(in_units(left)) : 0});
  Twig& twig = list.twigs[path.back()];
  twig.feature = kLeaf;
  twig.next = static_cast<std::uint32_t>(list.leaves.size()) - 1;
}

TreeTable Tree::table(const SampleStore& samples, Scratch& scratch, StopProbe& stop) {
  scratch.loaded = nullptr;
  complete(samples, scratch, stop);
  TreeTable table;
  if (empty()) return table;
  const auto add = [&table](std::int32_t parent, bool is_right, Cut cut) {
    const auto index = static_cast<std::int32_t>(table.parent.size());
    if (parent >= 0) (is_right ? table.right : table.left)[static_cast<std::size_t>(parent)] = index;
    table.parent.push_back(parent);
    table.left.push_back(-1);
    table.right.push_back(-1);
    table.feature.push_back(cut.feature);
    table.threshold.push_back(cut.threshold);
    return index;
  };
  const auto end_counts = [&table](std::int64_t weight) {
    table.weight.push_back(weight);
    table.counts_end.push_back(static_cast<std::int64_t>(table.label.size()));
  };
  const auto add_count = [&table](Label label, std::int64_t weight) {
    table.label.push_back(label);
    table.count.push_back(weight);
  };
  struct Visit {
    NodeIndex at;      // of a node
    const List* list;  // or of a twig of this list
    std::uint32_t twig;
    std::int32_t parent;
    bool is_right;
  };
  std::vector<Visit> visits{{kRoot, nullptr, 0, -1, false}};
  List* described = nullptr;
  const auto close = [&described] {
    if (described != nullptr) described->free_twigs();
    described = nullptr;
  };
  while (!visits.empty()) {
    Visit visit = visits.back();
    visits.pop_back();
    stop.tick(64);
    if (visit.list == nullptr) {
      close();
      const Node& node = nodes_[static_cast<std::size_t>(visit.at)];
      if (node.feature == kList && lists_[node.contents].is_small()) {
        visit.list = described = &lists_[node.contents];
        grow_twigs(*described, samples, scratch);
      } else {
        const LabelCounts& counts =
            node.feature == kList ? lists_[node.contents].counts : junctions_[node.contents].counts;
        const bool is_cut = node.feature >= 0;
        const std::int32_t index =
            add(visit.parent, visit.is_right, is_cut ? Cut{node.feature, node.threshold} : Cut{});
        for (const auto& [label, weight] : counts.entries()) add_count(label, weight);
        end_counts(counts.total());
        if (is_cut) {
          visits.push_back({node.left + 1, nullptr, 0, index, true});
          visits.push_back({node.left, nullptr, 0, index, false});
        }
        continue;
      }
    }
    if (scratch.loaded != visit.list) {
      scratch.panel.load(samples, order(samples), visit.list->slots);
      scratch.loaded = visit.list;
    }
    const Twig& twig = visit.list->twigs[visit.twig];
    const bool is_cut = twig.feature >= 0;
    const std::int32_t index = add(visit.parent, visit.is_right, is_cut ? Cut{twig.feature, twig.threshold} : Cut{});
    scratch.panel.for_each_label(twig.block, add_count);
    end_counts(scratch.panel.weight(twig.block));
    if (is_cut) {
      visits.push_back({kNoNode, visit.list, twig.next + 1, index, true});
      visits.push_back({kNoNode, visit.list, twig.next, index, false});
    }
  }
  close();
  return table;
}

std::size_t Tree::nbytes() const {
  std::size_t n = flat_.nbytes() + nodes_.capacity() * sizeof(Node) + free_pairs_.capacity() * sizeof(NodeIndex) +
                  junctions_.nbytes() + lists_.nbytes();
  for (const Junction& junction : junctions_.items()) {
    n += junction.counts.nbytes() + junction.deciding.capacity() * sizeof(Slot) + junction.ballot.nbytes();
  }
  for (const List& list : lists_.items()) {
    n += list.slots.capacity() * sizeof(Slot) + list.counts.nbytes() + list.twigs.capacity() * sizeof(Twig) +
         list.leaves.capacity() * sizeof(Leaf) + list.shares.capacity() * sizeof(Share);
  }
  return n;
}

}  // namespace onlineforest::guided
