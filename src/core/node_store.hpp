// The nodes of one tree: links, cuts, split times and boxes in flat arrays. Knows nothing of labels or of growing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "box.hpp"
#include "point_store.hpp"

namespace onlineforest {

using NodeIndex = std::int32_t;
inline constexpr NodeIndex kNoNode = -1;

// 32 bytes. An internal node has children and a cut; a leaf has the head of the linked list of its points
// instead of the children, and split_dimension kLeaf. `x <= split_location` goes left. The split time of a
// leaf is the lifetime.
struct Node {
  static constexpr std::int32_t kLeaf = -1;

  double split_time = 0.0;
  NodeIndex parent = kNoNode;
  union {
    NodeIndex left = kNoNode;
    Slot first_point;
  };
  union {
    NodeIndex right = kNoNode;
    std::int32_t n_points;
  };
  std::int32_t split_dimension = kLeaf;
  float split_location = 0.0f;

  bool is_leaf() const { return split_dimension == kLeaf; }
  NodeIndex child(const float* row) const { return row[split_dimension] <= split_location ? left : right; }
};

// Boxes lie beside the nodes, per node `lower[D]` then `upper[D]`, contiguous so that the loops over the
// features vectorise. Adding a node may move everything: hold indices, not references.
class NodeStore {
 public:
  explicit NodeStore(std::size_t n_features) : n_features_(n_features) {}

  std::size_t n_features() const { return n_features_; }
  std::size_t size() const { return nodes_.size(); }

  NodeIndex add(NodeIndex parent) {
    bounds_.resize(bounds_.size() + 2 * n_features_);
    nodes_.emplace_back();
    nodes_.back().parent = parent;
    return static_cast<NodeIndex>(nodes_.size() - 1);
  }

  Node& operator[](NodeIndex j) { return nodes_[static_cast<std::size_t>(j)]; }
  const Node& operator[](NodeIndex j) const { return nodes_[static_cast<std::size_t>(j)]; }

  float* lower(NodeIndex j) { return bounds_.data() + 2 * n_features_ * static_cast<std::size_t>(j); }
  float* upper(NodeIndex j) { return lower(j) + n_features_; }
  BoxView box(NodeIndex j) const {
    const float* lower = bounds_.data() + 2 * n_features_ * static_cast<std::size_t>(j);
    return {lower, lower + n_features_};
  }

  // The split time of the parent; 0 above the root.
  double birth_time(NodeIndex j) const {
    const NodeIndex parent = (*this)[j].parent;
    return parent == kNoNode ? 0.0 : (*this)[parent].split_time;
  }

 private:
  std::size_t n_features_;
  std::vector<Node> nodes_;
  std::vector<float> bounds_;
};

}  // namespace onlineforest
