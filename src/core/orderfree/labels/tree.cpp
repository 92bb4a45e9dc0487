// Trees of labels: the predictions of leaves.
#include "orderfree/labels/tree.hpp"

#include <algorithm>
#include <utility>

#include "orderfree/tree/stages.hpp"

namespace onlineforest::orderfree {

namespace {

// Rounds a share to a mass; halves are rounded up.
std::uint64_t mass_of(double share) {
  const double mass = share * kFullMass + 0.5;
  return static_cast<std::uint64_t>(mass);
}

// Takes the discount from the weight of each label of a node, or the whole weight if it is less.
class Discounting {
 public:
  explicit Discounting(double discount) : discount_(discount) {}

  // The weight of a label after the discount.
  [[nodiscard]] double rest_of(Weight weight) {
    const double whole = multiplicity(weight);
    if (whole < discount_) {
      light_ += weight;
      return 0.0;
    }
    ++n_heavy_;
    return whole - discount_;
  }
  // The total weight taken from all labels.
  [[nodiscard]] double taken() const { return discount_ * n_heavy_ + multiplicity(light_); }

 private:
  double discount_, n_heavy_ = 0.0;
  Weight light_ = 0;  // integer: the order of labels does not matter
};

}  // namespace

// Adds the shares of the labels of a node. `left` is the share of the prediction left for the node, then for its
// parent.
template <>
void Tree<Labels>::add_counts(const LabelCounts& counts, double& left, Masses answer) const {
  const double total = multiplicity(counts.total());
  Discounting discounting(options_.discount);
  for (const auto& [label, weight] : counts.entries()) {
    answer.labels[label] += mass_of(left * (discounting.rest_of(weight) / total));
  }
  left *= discounting.taken() / total;
}

// Adds the shares of a node and its ancestors, then the rest. Returns the last node that had a share, or kNoNode.
template <>
NodeIndex Tree<Labels>::add_ancestors(NodeIndex at, double left, Masses answer) const {
  NodeIndex last = kNoNode;
  while (at != kNoNode && left >= kLeastLeft) {
    const Junction& junction = junctions_[node(at).contents];
    add_counts(junction.summary, left, answer);
    last = at;
    at = junction.parent;
  }
  answer.rest += mass_of(left);
  return last;
}

template <>
void Tree<Labels>::answer_nothing(Masses answer) const {
  answer.rest += mass_of(1.0);
}

template <>
void Tree<Labels>::answer_junction(NodeIndex at, const Samples&, const float*, Scratch&, Masses answer) {
  (void)add_ancestors(at, 1.0, answer);
}

template <>
void Tree<Labels>::answer_list(List& list, const Samples&, const float*, Masses answer) const {
  double left = 1.0;
  add_counts(list.summary, left, answer);
  (void)add_ancestors(list.parent, left, answer);
}

template <>
void Tree<Labels>::answer_twig(const List& list, std::uint32_t leaf, const float*, Masses answer) const {
  const auto& [left, begin, end, rest] = list.leaves.leaves[leaf];
  for (std::uint32_t i = begin; i < end; ++i) {
    answer.labels[list.leaves.shares[i].label] += list.leaves.shares[i].mass;
  }
  answer.rest += rest;
  if (left > 0.0) (void)add_ancestors(list.parent, left, answer);
}

// Computes the shares of a leaf and its ancestors within the list.
template <>
void Tree<Labels>::make_leaf(List& list, std::span<const std::uint32_t> path, const Panel<Labels>& panel) const {
  std::vector<Share>& shares = list.leaves.shares;
  const auto begin = static_cast<std::uint32_t>(shares.size());
  double left = 1.0;
  for (std::size_t i = path.size(); i-- > 0 && left >= kLeastLeft;) {
    const Block block = list.twigs[path[i]].block;
    const double total = multiplicity(panel.weight_of(block));
    Discounting discounting(options_.discount);
    for (std::size_t c = 0; c < panel.groups().size(); ++c) {
      const Block those = block & panel.groups().block(c);
      if (those == 0) continue;
      const auto label = static_cast<Label>(panel.groups().word(c));
      const double rest = discounting.rest_of(panel.weight_of(those));
      const auto mass = static_cast<std::uint32_t>(mass_of(left * (rest / total)));
      const auto found = std::ranges::find(shares.begin() + begin, shares.end(), label, &Share::label);
      if (found != shares.end()) {
        found->mass += mass;
      } else {
        shares.push_back({label, mass});
      }
    }
    left *= discounting.taken() / total;
  }
  const bool is_done = left < kLeastLeft;
  list.leaves.leaves.push_back({is_done ? 0.0 : left, begin, static_cast<std::uint32_t>(shares.size()),
                                is_done ? static_cast<std::uint32_t>(mass_of(left)) : 0});
}

// Moves the masses of these labels from the scratch memory to the leaf that was added last.
template <>
void Tree<Labels>::take_shares(const LabelCounts& labels, Flat& flat, Scratch& scratch) {
  for (const auto& [label, weight] : labels.entries()) {
    const std::uint64_t mass = std::exchange(scratch.of_target.masses[static_cast<std::size_t>(label)], 0);
    if (mass > 0) flat.leaves().add_share(label, mass);
  }
}

template <>
void Tree<Labels>::flatten_twig_leaf(const List& list, std::uint32_t number, NodeIndex at, Flat& flat,
                                     Scratch& scratch) const {
  const auto& leaf = list.leaves.leaves[number];
  const std::span shares = std::span(list.leaves.shares).subspan(leaf.begin, leaf.end - leaf.begin);
  flat.make_leaf(at);
  if (leaf.left == 0.0) {
    flat.leaves().add(leaf.rest);
    for (const Share& share : shares) flat.leaves().add_share(share.label, share.mass);
    return;
  }
  std::vector<std::uint64_t>& masses = scratch.of_target.masses;
  std::uint64_t rest = leaf.rest;
  for (const Share& share : shares) masses[static_cast<std::size_t>(share.label)] += share.mass;
  const NodeIndex top = add_ancestors(list.parent, leaf.left, {masses.data(), rest});
  flat.leaves().add(rest);
  if (top == kNoNode) {
    for (const Share& share : shares) {
      flat.leaves().add_share(share.label, std::exchange(masses[static_cast<std::size_t>(share.label)], 0));
    }
  } else {
    take_shares(junctions_[node(top).contents].summary, flat, scratch);
  }
}

template <>
void Tree<Labels>::flatten_large_leaf(NodeIndex from, const Samples&, NodeIndex at, Flat& flat, Scratch& scratch) {
  const Node& here = node(from);
  const bool is_list = here.kind == Kind::kList;
  const LabelCounts& counts = is_list ? lists_[here.contents].summary : junctions_[here.contents].summary;
  const NodeIndex parent = is_list ? lists_[here.contents].parent : junctions_[here.contents].parent;
  std::uint64_t* const masses = scratch.of_target.masses.data();
  std::uint64_t rest = 0;
  double left = 1.0;
  add_counts(counts, left, {masses, rest});
  const NodeIndex top = add_ancestors(parent, left, {masses, rest});
  flat.make_leaf(at);
  flat.leaves().add(rest);
  take_shares(top == kNoNode ? counts : junctions_[node(top).contents].summary, flat, scratch);
}

template <>
void Tree<Labels>::describe_node(NodeIndex at, const Samples&, Scratch&, Table& table) {
  const Node& here = node(at);
  const LabelCounts& counts =
      here.kind == Kind::kList ? lists_[here.contents].summary : junctions_[here.contents].summary;
  for (const auto& [label, weight] : counts.entries()) {
    table.columns.label.push_back(label);
    table.columns.count.push_back(weight);
  }
  table.weight.push_back(counts.total());
  table.columns.counts_end.push_back(static_cast<std::int64_t>(table.columns.label.size()));
}

template <>
void Tree<Labels>::describe_twig(Block block, const Panel<Labels>& panel, Table& table) const {
  for (std::size_t c = 0; c < panel.groups().size(); ++c) {
    const Block those = block & panel.groups().block(c);
    if (those == 0) continue;
    table.columns.label.push_back(static_cast<Label>(panel.groups().word(c)));
    table.columns.count.push_back(panel.weight_of(those));
  }
  table.weight.push_back(panel.weight_of(block));
  table.columns.counts_end.push_back(static_cast<std::int64_t>(table.columns.label.size()));
}

template <>
void Tree<Labels>::finish_table(Table&) {}

template class Tree<Labels>;

}  // namespace onlineforest::orderfree
