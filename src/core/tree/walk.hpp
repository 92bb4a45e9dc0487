// What every prediction does: walk rows down a tree and see at which rate each is cut off from the boxes on its way.
// Knows nothing of labels; what a prediction makes of a way is a file of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "points/box.hpp"
#include "points/queries.hpp"
#include "process/rates.hpp"
#include "tree/node_store.hpp"
#include "tree/paths.hpp"
#include "tree/tree.hpp"

namespace onlineforest {

// The mass below which nothing more is told apart: what is left is spread evenly.
// Differs from the paper, which carries every mass to the end.
inline constexpr double kNegligibleMass = 1e-12;

// A node on the way of a row.
struct Step {
  NodeIndex node;
  double duration;                // Delta_j: split time less birth time
  BoxView box{nullptr, nullptr};  // once it was asked for
};

// The way of one row from the root to its leaf.
struct Way {
  std::size_t row;
  std::span<const Step> steps;
  // eta_j(x) per step, from `first_outside` on; all of them are positive, and the row is inside the boxes before.
  std::span<const double> separation_rates;
  std::size_t first_outside;
  std::size_t n_shared;  // so many steps from the root are those of the way before
};

// The mass that is cut off from the data before the row reaches its leaf. In the leaf it is cut off sooner or later
// wherever it lies, unless the lifetime ends: that tells nothing.
inline double separated_above_leaf(const Way& way) {
  double hazard = 0.0;
  for (std::size_t k = way.first_outside; k + 1 < way.steps.size(); ++k) {
    hazard += way.separation_rates[k] * way.steps[k].duration;
  }
  return -std::expm1(-hazard);
}

// Sends rows down a tree as sets, so that each node is fetched once for all rows that pass it. Scratch memory of one
// worker, reused from tree to tree.
class SetWalk {
 public:
  // Calls on_tree(tree) for each tree that is not empty, in their order, and what it returns as on_way(way) once for
  // each row. A single row goes down several trees side by side.
  template <class Target, class OnTree>
  void walk_trees(std::span<const Tree<Target>> trees, const PointStore<typename Target::Value>& points,
                  const Queries& rows, OnTree on_tree) {
    if (rows.n == 1) {
      for (std::size_t begin = 0; begin < trees.size(); begin += kSideBySide) {
        const auto some = trees.subspan(begin, std::min(kSideBySide, trees.size() - begin));
        find_paths(some, rows.rows, paths_);
        for (std::size_t i = 0; i < some.size(); ++i) {
          if (!some[i].empty()) walk_along(paths_[i], some[i], points, rows, on_tree(some[i]));
        }
      }
    } else {
      for (const Tree<Target>& tree : trees) {
        if (!tree.empty()) walk(tree, points, rows, on_tree(tree));
      }
    }
  }

  // Calls on_way(way) once for each row, in an order of the tree's. The tree must not be empty.
  //
  // Boxes lie in one another along a way. So the rates are computed from the leaf up, and no more once a row is
  // inside a box: then it is inside of all above.
  template <class Target, class OnWay>
  void walk(const Tree<Target>& tree, const PointStore<typename Target::Value>& points, const Queries& rows,
            OnWay on_way) {
    const NodeStore& nodes = tree.nodes();
    const std::size_t n_features = nodes.n_features();
    order_.resize(rows.n);
    std::iota(order_.begin(), order_.end(), Slot{0});
    const Coordinates at{rows.rows, n_features, 1};
    steps_.clear();
    pending_.clear();
    Pending now{kRoot, 0, order_.size(), 0, 0.0};
    std::size_t n_shared = 0;
    for (;;) {
      const double split_time = nodes.split_time(now.node);
      n_shared = std::min(n_shared, now.depth);
      steps_.resize(now.depth);
      steps_.push_back({now.node, split_time - now.birth_time});
      const Node& node = nodes[now.node];
      nodes.prefetch_box(now.node, 2 * n_features);  // needed when the rows have gone down to their leaves
      const std::span<Slot> set = std::span(order_).subspan(now.begin, now.end - now.begin);
      if (!node.is_leaf()) {
        if (set.size() == 1) {
          now.node = node.child(rows.rows + static_cast<std::size_t>(set.front()) * n_features);
          ++now.depth;
          now.birth_time = split_time;
          continue;
        }
        const std::size_t middle =
            now.begin + at.partition(static_cast<std::size_t>(node.split_dimension), node.split_location, set, spare_);
        Pending right{node.right(), middle, now.end, now.depth + 1, split_time};
        now = {node.left, now.begin, middle, now.depth + 1, split_time};
        if (now.begin == now.end) {
          now = right;
        } else if (right.begin < right.end) {
          pending_.push_back(right);
        }
        continue;
      }
      for (const Slot row : set) {
        const std::size_t i = static_cast<std::size_t>(row);
        const std::size_t first_outside = find_rates(tree, points, rows, i);
        on_way(Way{i, steps_, rates_, first_outside, n_shared});
        n_shared = steps_.size();
      }
      if (pending_.empty()) return;
      now = pending_.back();
      pending_.pop_back();
    }
  }

  // The same for one row, whose path is known.
  template <class Target, class OnWay>
  void walk_along(const Path& path, const Tree<Target>& tree, const PointStore<typename Target::Value>& points,
                  const Queries& row, OnWay on_way) {
    steps_.clear();
    double birth_time = 0.0;
    for (const NodeIndex j : path) {
      const double split_time = tree.nodes().split_time(j);
      steps_.push_back({j, split_time - birth_time});
      birth_time = split_time;
    }
    const std::size_t first_outside = find_rates(tree, points, row, 0);
    on_way(Way{0, steps_, rates_, first_outside, 0});
  }

 private:
  struct Pending {
    NodeIndex node;
    std::size_t begin, end;
    std::size_t depth;
    double birth_time;
  };

  // Returns the first step at which the row is outside.
  template <class Target>
  std::size_t find_rates(const Tree<Target>& tree, const PointStore<typename Target::Value>& points,
                         const Queries& rows, std::size_t i) {
    if (rates_.size() < steps_.size()) rates_.resize(steps_.size());
    const std::size_t n_features = tree.nodes().n_features();
    const std::vector<double>& weights = tree.measure().weights;
    if (!rows.are_plain()) {  // what is missing does not cut off
      known_weights_ = weights;
      for (std::size_t d = 0; d < n_features; ++d) {
        if (std::isnan(rows.given[i * n_features + d])) known_weights_[d] = 0.0;
      }
    }
    separation_.start(rows.are_plain() ? weights.data() : known_weights_.data(), rows.rows + i * n_features,
                      n_features);
    std::size_t first = steps_.size();
    while (first > 0) {
      Step& step = steps_[first - 1];
      if (step.box.lower == nullptr) step.box = tree.box(step.node, points, buffers_[first % buffers_.size()]);
      rates_[first - 1] = separation_.next_rate(step.box);
      if (!(rates_[first - 1] > 0.0)) break;
      --first;
    }
    return first;
  }

  std::array<Path, kSideBySide> paths_;
  std::vector<Slot> order_, spare_;
  std::vector<Pending> pending_;
  std::vector<Step> steps_;
  std::vector<double> rates_, known_weights_;
  // Boxes that are not stored: those of the last steps, fewer points with each step.
  std::array<BoxBuffer, kFewPoints> buffers_;
  NestedSeparation separation_;
};

}  // namespace onlineforest
