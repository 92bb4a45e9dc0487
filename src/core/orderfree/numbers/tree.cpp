// Trees of numbers: the predictions of leaves.
#include "orderfree/numbers/tree.hpp"

#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "orderfree/tree/stages.hpp"

namespace onlineforest::orderfree {

namespace {

// Computes the leaf of a block. Sums the numbers in the order of bits, which does not depend on the order of arrival.
NumberLeaf leaf_of(Block block, const Panel<Numbers>& panel) {
  const NumberJudge& judge = panel.judge();
  if (panel.has_one_value(block)) return {judge.value(first_bit(block)), 0.0};
  const double total = multiplicity(panel.weight_of(block));
  double sum = 0.0;
  for (Block rest = block; rest != 0; rest &= rest - 1) {
    const std::size_t i = first_bit(rest);
    sum += multiplicity(panel.weight(i)) * judge.value(i);
  }
  const double mean = sum / total;
  const auto squares_times = [&](double factor) {
    double squares = 0.0;
    for (Block rest = block; rest != 0; rest &= rest - 1) {
      const std::size_t i = first_bit(rest);
      const double deviation = judge.value(i) - mean;
      squares += multiplicity(panel.weight(i)) * factor * (deviation * deviation);
    }
    return squares;
  };
  const double squares = squares_times(1.0);
  if (!std::isfinite(squares)) return {mean, squares_times(1.0 / kLargeUnit) / total * kLargeUnit};
  return {mean, squares / total};
}

}  // namespace

// A tree without samples has no answer. The forest does not ask it.
template <>
void Tree<Numbers>::answer_nothing(NumberLeaf& answer) const {
  answer = {};
}

template <>
void Tree<Numbers>::answer_closed(NodeIndex at, NumberLeaf& answer) const {
  answer = {junctions_[node(at).contents].summary.value(), 0.0};
}

template <>
void Tree<Numbers>::answer_list(List& list, const Samples& samples, NumberLeaf& answer) const {
  if (list.summary.is_pure()) {
    answer = {list.summary.value(), 0.0};
    return;
  }
  std::unique_ptr<NumberSums>& sums = list.large_leaf.sums;
  if (!sums) {
    auto fresh = std::make_unique<NumberSums>();
    for (const Slot slot : list.slots) fresh->add(samples.value(slot), samples.weight(slot));
    sums = std::move(fresh);
  }
  answer = sums->leaf();
}

template <>
void Tree<Numbers>::answer_twig(const List& list, std::uint32_t leaf, NumberLeaf& answer) const {
  answer = list.leaves.leaves[leaf];
}

template <>
void Tree<Numbers>::make_leaf(List& list, std::span<const std::uint32_t> path, const Panel<Numbers>& panel) const {
  list.leaves.leaves.push_back(leaf_of(list.twigs[path.back()].block, panel));
}

template <>
void Tree<Numbers>::flatten_twig_leaf(const List& list, std::uint32_t leaf, NodeIndex at, Flat& flat, Scratch&) const {
  flat.make_leaf(at);
  flat.leaves().add(list.leaves.leaves[leaf]);
}

template <>
void Tree<Numbers>::flatten_large_leaf(NodeIndex from, const Samples& samples, NodeIndex at, Flat& flat, Scratch&) {
  NumberLeaf leaf;
  if (node(from).kind == Kind::kList) {
    answer_list(lists_[node(from).contents], samples, leaf);
  } else {
    answer_closed(from, leaf);
  }
  flat.make_leaf(at);
  flat.leaves().add(leaf);
}

// Stores the variance in the column `squares`. finish_table() turns it into a sum of squares, and computes the means of
// the nodes that are split from their children.
template <>
void Tree<Numbers>::describe_node(NodeIndex at, const Samples& samples, Table& table) {
  const Node& here = node(at);
  NumberLeaf leaf;
  if (here.kind == Kind::kList) {
    answer_list(lists_[here.contents], samples, leaf);
  } else if (here.kind == Kind::kClosed) {
    answer_closed(at, leaf);
  }
  const Weight weight =
      here.kind == Kind::kList ? lists_[here.contents].summary.total() : junctions_[here.contents].summary.total();
  table.weight.push_back(weight);
  table.columns.mean.push_back(leaf.mean);
  table.columns.squares.push_back(leaf.variance);
}

template <>
void Tree<Numbers>::describe_twig(Block block, const Panel<Numbers>& panel, Table& table) const {
  const NumberLeaf leaf = leaf_of(block, panel);
  table.weight.push_back(panel.weight_of(block));
  table.columns.mean.push_back(leaf.mean);
  table.columns.squares.push_back(leaf.variance);
}

template <>
void Tree<Numbers>::finish_table(Table& table) {
  std::vector<double>&mean = table.columns.mean, &squares = table.columns.squares;
  const std::vector<double> variance = squares;
  const auto fill = [&](double scale) {
    table.columns.scale = scale;
    for (std::size_t node = table.cell.size(); node-- > 0;) {  // children come after their parents
      if (!table.is_split(node)) {
        squares[node] = variance[node] / scale * multiplicity(table.weight[node]);
        continue;
      }
      const auto left = static_cast<std::size_t>(table.left[node]), right = static_cast<std::size_t>(table.right[node]);
      const double n_left = multiplicity(table.weight[left]), n_right = multiplicity(table.weight[right]);
      const double n = n_left + n_right, difference = mean[right] - mean[left];
      mean[node] = mean[left] + difference * (n_right / n);
      squares[node] = squares[left] + squares[right] + difference * difference / scale * (n_left * n_right / n);
    }
  };
  fill(1.0);
  if (!squares.empty() && !std::isfinite(squares[0])) fill(kLargeUnit);  // the root has the largest sum of squares
}

template class Tree<Numbers>;

}  // namespace onlineforest::orderfree
