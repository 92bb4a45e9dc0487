// The table of the nodes of a tree, in preorder, left children first. It depends on the set of samples alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/law/proposal.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

inline constexpr Word kAllDecide = ~Word{0};

template <class Target>
struct TreeTable {
  std::vector<std::int32_t> parent, left, right, cell;  // -1 for none
  std::vector<float> threshold;
  std::vector<std::uint8_t> missing_left, is_of_levels;
  std::vector<Weight> weight;
  std::vector<Word> last_rank;               // the greatest rank of a deciding sample; kAllDecide if all samples decide
  std::vector<std::int64_t> surrogates_end;  // the surrogates of node i are [surrogates_end[i - 1], surrogates_end[i])
  Surrogates surrogates;
  typename Target::Columns columns;  // labels or numbers of each node
  Weight stop_weight = 0;            // predictions do not enter lighter nodes, except the root

  // Appends the root (`above` is -1) or a child of node `above`. Returns its index. The caller then appends its weight,
  // last rank and columns.
  std::int32_t add(std::int32_t above, bool is_right, const Split& of_node, std::span<const Surrogate> its_surrogates) {
    const auto index = static_cast<std::int32_t>(parent.size());
    if (above >= 0) (is_right ? right : left)[static_cast<std::size_t>(above)] = index;
    parent.push_back(above);
    left.push_back(-1);
    right.push_back(-1);
    cell.push_back(of_node.cell);
    threshold.push_back(of_node.threshold);
    missing_left.push_back(of_node.missing_left);
    is_of_levels.push_back(of_node.is_of_levels);
    surrogates.insert(surrogates.end(), its_surrogates.begin(), its_surrogates.end());
    surrogates_end.push_back(static_cast<std::int64_t>(surrogates.size()));
    return index;
  }

  [[nodiscard]] bool is_split(std::size_t node) const { return cell[node] >= 0; }
  [[nodiscard]] Split split(std::size_t node) const {
    return {cell[node], threshold[node], missing_left[node] != 0, is_of_levels[node] != 0};
  }

  // The child of a split node to which a row goes.
  [[nodiscard]] std::size_t child(std::size_t node, const float* row) const {
    const std::size_t begin = node == 0 ? 0 : static_cast<std::size_t>(surrogates_end[node - 1]);
    const auto of_node = std::span(surrogates).subspan(begin, static_cast<std::size_t>(surrogates_end[node]) - begin);
    return static_cast<std::size_t>(sends_left(split(node), of_node, row) ? left[node] : right[node]);
  }

  // The child that the prediction of a row enters; kNoNode if it ends at this node.
  [[nodiscard]] NodeIndex next(std::size_t node, const float* row) const {
    if (!is_split(node)) return kNoNode;
    const std::size_t found = child(node, row);
    return weight[found] < stop_weight ? kNoNode : static_cast<NodeIndex>(found);
  }

  // The node at which the prediction of a row ends. The tree must not be empty.
  [[nodiscard]] NodeIndex leaf_of(const float* row) const {
    NodeIndex at = kRoot;
    for (NodeIndex to = at; to != kNoNode; to = next(static_cast<std::size_t>(at), row)) at = to;
    return at;
  }
};

}  // namespace onlineforest::orderfree
