// The predictive distribution over labels at a point: Algorithm 8 of the paper, on the steps of a walk.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "label_target.hpp"
#include "tree.hpp"
#include "walk.hpp"

namespace onlineforest {

// d_j = exp(-gamma Delta_j): how much of a node's distribution is its parent's.
inline double discount_of(double discount_rate, double duration) {
  return discount_rate > 0.0 ? std::exp(-discount_rate * duration) : 1.0;
}

// E[exp(-gamma T)] for T exponential with rate eta, truncated to the node's duration: the discount of a node that
// is inserted above it where the point branches off. eta > 0.
inline double expected_discount(double discount_rate, double separation_rate, double duration) {
  if (!(discount_rate > 0.0)) return 1.0;
  // As a quotient of means, each of which is at most the duration: neither over- nor underflows.
  const double both = separation_rate + discount_rate;
  const double above = std::expm1(-both * duration) / both;
  const double below = std::expm1(-separation_rate * duration) / separation_rate;
  return std::min(above / below, 1.0);
}

// Adds the tree's distribution at `row` to `probabilities`, one entry per class known.
//
// Each posterior mean on the path mixes the label sets of the nodes above it. So the walk down keeps scalars only,
// and one walk up adds for each node its set S_j, or the labels both its children hold, with the mass that reaches
// it; what is left goes to the parent, and above the root evenly to all classes.
inline void add_label_prediction(const Tree<LabelTarget>& tree, const float* row, std::span<double> probabilities,
                                 std::vector<Step>& steps) {
  const NodeStore& nodes = tree.nodes();
  const LabelTarget& target = tree.target();
  const LabelSets& sets = target.sets();
  const double discount_rate = tree.measure().discount_rate;

  double mass = descend(tree, row, steps);  // what rests on the posterior mean of the node at hand
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const NodeIndex j = step->node;
    const double n_labels = sets.size(j);
    double to_each_label = 0.0, to_parent = 0.0;
    if (step->separated > 0.0) {
      const double d = expected_discount(discount_rate, step->separation_rate, step->duration);
      to_each_label += step->separated * (1.0 - d) / n_labels;
      to_parent += step->separated * d;
    }
    if (mass > 0.0) {
      const double d = discount_of(discount_rate, step->duration);
      double count;
      if (nodes[j].is_leaf()) {
        count = nodes[j].n_points;
        target.for_each_count(j, nodes[j].n_points, [&](Label label, std::uint32_t c) {
          probabilities[static_cast<std::size_t>(label)] += mass * (c - d) / count;
        });
      } else {
        const NodeIndex left = nodes[j].left, right = nodes[j].right;
        count = n_labels + sets.size_common(left, right);
        to_each_label += mass * (1.0 - d) / count;
        sets.for_each_common(left, right,
                             [&](Label label) { probabilities[static_cast<std::size_t>(label)] += mass / count; });
      }
      to_parent += mass * d * n_labels / count;
    }
    if (to_each_label > 0.0) {
      sets.for_each(j, [&](Label label) { probabilities[static_cast<std::size_t>(label)] += to_each_label; });
    }
    mass = to_parent;
  }
  const double evenly = mass / static_cast<double>(probabilities.size());
  for (double& p : probabilities) p += evenly;
}

}  // namespace onlineforest
