// What every prediction does: walk a point down a tree and see how likely it branches off at each node.
// Knows nothing of labels; what a prediction makes of the steps is a file of its own.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "box.hpp"
#include "node_store.hpp"
#include "tree.hpp"

namespace onlineforest {

struct Step {
  NodeIndex node;
  double duration;         // Delta_j: split time less birth time
  double separation_rate;  // eta_j(x), 0 inside the box
  double separated;        // the probability of branching off here, and not before
};

// The mass below which a walk stops: what it would still tell apart weighs no more than this.
// Differs from the paper: its walk goes down to the leaf.
inline constexpr double kNegligibleMass = 1e-12;

// Algorithm 8 of the paper, the part that does not look at labels. Fills `steps` from the root down and returns the
// mass that never branched off; it belongs to the last step's node (the leaf, or an inner node where what was left
// became negligible). The tree must not be empty.
template <class Target>
double descend(const Tree<Target>& tree, const float* row, std::vector<Step>& steps) {
  const NodeStore& nodes = tree.nodes();
  const double* weights = tree.measure().weights.data();
  steps.clear();
  double remaining = 1.0;
  double birth_time = 0.0;
  for (NodeIndex j = tree.root();; j = nodes[j].child(row)) {
    const Node& node = nodes[j];
    const double duration = node.split_time - birth_time;
    const double rate = separation_rate(weights, nodes.box(j), row, nodes.n_features());
    double separated = 0.0;
    if (rate > 0.0) {  // asked first: 0 times an infinite duration is no number
      separated = remaining * -std::expm1(-duration * rate);
      remaining *= std::exp(-duration * rate);
    }
    steps.push_back({j, duration, rate, separated});
    if (node.is_leaf() || remaining < kNegligibleMass) return remaining;
    birth_time = node.split_time;
  }
}

// The leaf a point falls into.
template <class Target>
NodeIndex find_leaf(const Tree<Target>& tree, const float* row) {
  const NodeStore& nodes = tree.nodes();
  NodeIndex j = tree.root();
  while (!nodes[j].is_leaf()) j = nodes[j].child(row);
  return j;
}

}  // namespace onlineforest
