#include "orderfree/labels/credit.hpp"

#include <algorithm>
#include <cmath>

namespace onlineforest::orderfree {

template <class Use>
void Credit<Labels>::for_each_count(std::size_t node, Use use) const {
  const auto end = static_cast<std::size_t>(table_.columns.counts_end[node]);
  for (std::size_t i = table_.columns.counts_begin(node); i < end; ++i) {
    use(static_cast<std::size_t>(table_.columns.label[i]), table_.columns.count[i]);
  }
}

void Credit<Labels>::enter(std::size_t node) {
  for (const Label label : labels_) counts_[static_cast<std::size_t>(label)] = {};
  labels_.clear();
  for_each_count(node, [&](std::size_t label, Weight count) {
    if (label >= counts_.size()) counts_.resize(label + 1);
    counts_[label].node = count;
    labels_.push_back(static_cast<Label>(label));
  });
  const auto left = static_cast<std::size_t>(table_.left[node]), right = static_cast<std::size_t>(table_.right[node]);
  for_each_count(left, [&](std::size_t label, Weight count) { counts_[label].left = count; });
  for_each_count(right, [&](std::size_t label, Weight count) { counts_[label].right = count; });
  const auto describe = [&](std::size_t block, Weight Counts::* count) -> Block {
    ProductsOfWeights products;  // exact, so that the order of class codes does not change the result
    for (const Label label : labels_) {
      const Counts& counts = counts_[static_cast<std::size_t>(label)];
      products.add(counts.node, counts.*count);
    }
    return {table_.weight[block], std::ldexp(products.value(), -2 * kWeightBits)};
  };
  node_ = describe(node, &Counts::node);
  left_ = describe(left, &Counts::left);
  right_ = describe(right, &Counts::right);
}

double Credit<Labels>::of(bool goes_left, Label label, Weight learned) const {
  const auto code = static_cast<std::size_t>(label);
  const Counts counts = code < counts_.size() ? counts_[code] : Counts{};
  const Block& child = goes_left ? left_ : right_;
  const double own = multiplicity(learned);
  const double in_node = multiplicity(counts.node), in_child = multiplicity(goes_left ? counts.left : counts.right);
  const double of_node = 1.0 / multiplicity(node_.weight - learned);  // the share of one sample
  const double of_child = 1.0 / multiplicity(child.weight - learned);
  // Products of the counts without the sample itself.
  const double squares = node_.product - own * (2.0 * in_node - own);
  const double product = child.product - own * (in_node + in_child - own);
  return (in_child - own) * of_child - (in_node - own) * of_node - (product * of_child - squares * of_node) * of_node;
}

}  // namespace onlineforest::orderfree
