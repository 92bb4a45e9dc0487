// The credit that a split of labels gets for one sample, for importances. Must not know forests.
#pragma once

#include <cstddef>
#include <vector>

#include "orderfree/labels/labels.hpp"
#include "orderfree/tree/importances.hpp"
#include "orderfree/tree/tree_table.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

template <>
class Credit<Labels> {
 public:
  explicit Credit(const TreeTable<Labels>& table) : table_(table) {}

  // Chooses the split node that of() is about.
  void enter(std::size_t node);
  // `learned` is the weight of the sample in the tree. The child must weigh more.
  [[nodiscard]] double of(bool goes_left, Label label, Weight learned) const;

 private:
  // The counts of one label in a node and in its children.
  struct Counts {
    Weight node = 0, left = 0, right = 0;
  };
  // `product` is the scalar product of the counts of this block and of the node.
  struct Block {
    Weight weight = 0;
    double product = 0.0;
  };

  template <class Use>
  void for_each_count(std::size_t node, Use use) const;

  const TreeTable<Labels>& table_;
  std::vector<Counts> counts_;  // by label
  std::vector<Label> labels_;   // those of the node
  Block node_, left_, right_;
};

}  // namespace onlineforest::orderfree
