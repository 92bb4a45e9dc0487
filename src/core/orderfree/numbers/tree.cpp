// Trees of numbers: the predictions of leaves.
#include "orderfree/numbers/tree.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "orderfree/tree/stages.hpp"

namespace onlineforest::orderfree {

namespace {

// The mean and variance of a block, summed in the order of bits, which does not depend on the order of arrival.
// number_of(i) is for bit i.
template <class NumberOf>
NumberLeaf moments_of(Block block, const Panel<Numbers>& panel, NumberOf number_of) {
  const double total = multiplicity(panel.weight_of(block));
  std::array<double, kMostDeciding> numbers;
  double sum = 0.0;
  for (Block rest = block; rest != 0; rest &= rest - 1) {
    const std::size_t i = first_bit(rest);
    numbers[i] = number_of(i);
    sum += multiplicity(panel.weight(i)) * numbers[i];
  }
  const double mean = sum / total;
  const auto squares_times = [&](double factor) {
    double squares = 0.0;
    for (Block rest = block; rest != 0; rest &= rest - 1) {
      const std::size_t i = first_bit(rest);
      const double deviation = numbers[i] - mean;
      squares += multiplicity(panel.weight(i)) * factor * (deviation * deviation);
    }
    return squares;
  };
  const double squares = squares_times(1.0);
  if (!std::isfinite(squares)) return {mean, squares_times(1.0 / kLargeUnit) / total * kLargeUnit};
  return {mean, squares / total};
}

NumberLeaf leaf_of(Block block, const Panel<Numbers>& panel) {
  const std::span numbers = panel.judge().numbers();
  if (panel.has_one_value(block)) return {numbers[first_bit(block)], 0.0};
  return moments_of(block, panel, [&](std::size_t i) { return numbers[i]; });
}

// Several samples of one number predict this number. Other leaves follow the line.
RestLeaf rest_leaf_of(Block block, const Panel<Numbers>& panel) {
  const std::size_t first = first_bit(block);
  if (block == Block{1} << first) return {panel.judge().rest(panel, first), 0.0};
  if (panel.has_one_value(block)) return {panel.judge().numbers()[first], 0.0, false};
  const auto [mean, variance] = moments_of(block, panel, [&](std::size_t i) { return panel.judge().rest(panel, i); });
  return {mean, variance};
}

// The leaf of a large list or of a junction. Computes its sums if they are not there. for_each(use) calls use(slot) for
// each of its samples.
template <class Large, class ForEach>
RestLeaf leaf_of_large(Large& large, const SampleStore<NumberHashes>& samples, const Line& line, ForEach for_each) {
  if (large.summary.is_pure()) return {large.summary.value(), 0.0, false};
  std::unique_ptr<NumberSums>& sums = large.large_leaf.sums;
  if (!sums) {
    auto fresh = std::make_unique<NumberSums>();
    for_each([&](Slot slot) { fresh->add(Numbers::rest(samples, slot, line), samples.weight(slot)); });
    sums = std::move(fresh);
  }
  const auto [mean, variance] = sums->leaf();
  return {mean, variance};
}

template <class List>
RestLeaf leaf_of_list(List& list, const SampleStore<NumberHashes>& samples, const Line& line) {
  return leaf_of_large(list, samples, line, [&](auto use) { std::ranges::for_each(list.slots, use); });
}

NumberLeaf answer_of(const RestLeaf& leaf, const Line& line, const float* x) {
  return {leaf.follows_line && !line.empty() ? leaf.mean + line.at(x) : leaf.mean, leaf.variance};
}

}  // namespace

// A tree without samples has no answer. The forest does not ask it.
template <>
void Tree<Numbers>::answer_nothing(NumberLeaf& answer) const {
  answer = {};
}

// A junction follows its own line.
template <>
void Tree<Numbers>::answer_junction(NodeIndex at, const Samples& samples, const float* x, Scratch& scratch,
                                    NumberLeaf& answer) {
  Junction& junction = junctions_[node(at).contents];
  const auto for_each = [&](auto use) { for_each_below(at, scratch, use); };
  answer = answer_of(leaf_of_large(junction, samples, junction.line, for_each), junction.line, x);
}

template <>
void Tree<Numbers>::answer_list(List& list, const Samples& samples, const float* x, NumberLeaf& answer) const {
  const Line& line = line_above(list);
  answer = answer_of(leaf_of_list(list, samples, line), line, x);
}

template <>
void Tree<Numbers>::answer_twig(const List& list, std::uint32_t leaf, const float* x, NumberLeaf& answer) const {
  answer = answer_of(list.leaves.leaves[leaf], line_above(list), x);
}

template <>
void Tree<Numbers>::make_leaf(List& list, std::span<const std::uint32_t> path, const Panel<Numbers>& panel) const {
  list.leaves.leaves.push_back(rest_leaf_of(list.twigs[path.back()].block, panel));
}

template <>
void Tree<Numbers>::flatten_twig_leaf(const List& list, std::uint32_t leaf, NodeIndex at, Flat& flat, Scratch&) const {
  flat.make_leaf(at);
  flat.leaves().add(list.leaves.leaves[leaf], line_above(list), list.parent);
}

template <>
void Tree<Numbers>::flatten_large_leaf(NodeIndex from, const Samples& samples, NodeIndex at, Flat& flat,
                                       Scratch& scratch) {
  flat.make_leaf(at);
  const Node& here = node(from);
  if (here.kind == Kind::kList) {
    List& list = lists_[here.contents];
    const Line& line = line_above(list);
    flat.leaves().add(leaf_of_list(list, samples, line), line, list.parent);
  } else {
    Junction& junction = junctions_[here.contents];
    const auto for_each = [&](auto use) { for_each_below(from, scratch, use); };
    flat.leaves().add(leaf_of_large(junction, samples, junction.line, for_each), junction.line, from);
    junction.large_leaf = {};  // the flat tree predicts until a sample changes
  }
}

// Stores the variance in the column `squares`. finish_table() turns it into a sum of squares, and computes the means of
// the nodes that are split from their children.
template <>
void Tree<Numbers>::describe_node(NodeIndex at, const Samples& samples, Scratch& scratch, Table& table) {
  const Node& here = node(at);
  const std::int32_t parent = table.parent.back();
  if (here.kind == Kind::kList) {
    List& list = lists_[here.contents];
    NumberLeaf numbers{list.summary.value(), 0.0};
    if (!list.summary.is_pure()) {
      NumberSums sums;
      for (const Slot slot : list.slots) sums.add(samples.value(slot), samples.weight(slot));
      numbers = sums.leaf();
    }
    table.weight.push_back(list.summary.total());
    table.columns.add(numbers, leaf_of_list(list, samples, line_above(list)), parent);
    return;
  }
  const Junction& junction = junctions_[here.contents];
  table.weight.push_back(junction.summary.total());
  if (here.kind == Kind::kClosed) {
    table.columns.add({junction.summary.value(), 0.0}, {junction.summary.value(), 0.0, false}, parent);
    return;
  }
  NumberLeaf numbers;
  if (!table.is_split(table.cell.size() - 1)) {  // a leaf of this table
    NumberSums sums;
    for_each_below(at, scratch, [&](Slot slot) { sums.add(samples.value(slot), samples.weight(slot)); });
    numbers = sums.leaf();
  }
  table.columns.add(numbers, {}, -1);
  if (junction.line.empty()) return;
  table.columns.line.back() = static_cast<std::int32_t>(table.columns.lines.size());
  table.columns.lines.push_back(junction.line);
}

template <>
void Tree<Numbers>::describe_twig(Block block, const Panel<Numbers>& panel, Table& table) const {
  table.weight.push_back(panel.weight_of(block));
  table.columns.add(leaf_of(block, panel), rest_leaf_of(block, panel), table.parent.back());
}

template <>
void Tree<Numbers>::finish_table(Table& table) {
  for (std::size_t node = 0; node < table.cell.size(); ++node) {
    if (table.is_split(node)) table.columns.rest[node] = std::numeric_limits<double>::quiet_NaN();
  }
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
