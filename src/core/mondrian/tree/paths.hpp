// Paths down trees, as lists of nodes. Must not know targets.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/compiler.hpp"
#include "mondrian/tree/node_store.hpp"

namespace onlineforest::mondrian {

using Path = std::vector<NodeIndex>;  // from the root, or another node, to a leaf

inline constexpr std::size_t kUsualDepth = 32;  // rough length of a path, for estimates of work

// Appends the nodes from j down to the leaf of the row.
inline void find_path(const NodeStore& nodes, NodeIndex j, const float* row, Path& path) {
  for (; !nodes[j].is_leaf(); j = nodes[j].child(row)) path.push_back(j);
  path.push_back(j);
}

// The leaf of the row in a tree that is not empty.
[[nodiscard]] inline NodeIndex find_leaf(const NodeStore& nodes, const float* row) {
  NodeIndex j = kRoot;
  while (!nodes[j].is_leaf()) j = nodes[j].child(row);
  return j;
}

// All nodes of a tree that is not empty, each parent before its children.
[[nodiscard]] inline std::vector<NodeIndex> parents_first(const NodeStore& nodes) {
  std::vector<NodeIndex> order{kRoot};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Node& node = nodes[order[i]];
    if (node.is_leaf()) continue;
    order.push_back(node.left);
    order.push_back(node.right());
  }
  return order;
}

// A search for the path of a row down a tree that is not empty.
struct Search {
  const NodeStore* nodes;
  const float* row;
  Path* path;  // receives the nodes; empty at first
};

inline constexpr std::size_t kSideBySide = 12;  // searches in progress at the same time

// Finds up to kSideBySide paths side by side, which hides the latency of memory at every step. Calls on_found(search)
// for each, in any order.
template <class OnFound>
void find_paths(std::span<const Search> searches, OnFound on_found) {
  struct Walker {
    NodeIndex node;
    Search search;
  };
  std::array<Walker, kSideBySide> walkers;
  std::size_t n = searches.size();
  for (std::size_t i = 0; i < n; ++i) walkers[i] = {kRoot, searches[i]};
  while (n > 0) {
    for (std::size_t i = 0; i < n;) {
      Walker& walker = walkers[i];
      const NodeStore& nodes = *walker.search.nodes;
      walker.search.path->push_back(walker.node);
      const Node& node = nodes[walker.node];
      if (node.is_leaf()) {
        on_found(walker.search);
        walker = walkers[--n];
      } else {
        walker.node = node.child(walker.search.row);
        prefetch(&nodes[walker.node]);
        ++i;
      }
    }
  }
}

// Prefetches split times and boxes of the last nodes of a path, which extending and predicting read first.
ONLINEFOREST_ALWAYS_INLINE void prefetch_end(const NodeStore& nodes, const Path& path) {
  constexpr std::size_t last = 8, most = 64;
  for (std::size_t i = path.size() - std::min(path.size(), last); i < path.size(); ++i) {
    nodes.prefetch_split_time(path[i]);
    nodes.prefetch_box(path[i], most);
  }
}

// Finds the paths of one row down up to kSideBySide trees. The path in an empty tree is empty. Calls on_found(i) when
// the path in tree i is complete.
template <class Tree, class OnFound>
void find_paths(std::span<Tree> trees, const float* row, std::array<Path, kSideBySide>& paths, OnFound on_found) {
  std::array<Search, kSideBySide> searches;
  std::size_t n = 0;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    paths[i].clear();
    if (!trees[i].empty()) searches[n++] = {&trees[i].nodes(), row, &paths[i]};
  }
  find_paths(std::span<const Search>(searches).first(n),
             [&](const Search& search) { on_found(static_cast<std::size_t>(search.path - paths.data())); });
}

}  // namespace onlineforest::mondrian
