// The path of each row down a tree, with the rates at which the row is separated from the boxes on it: the common part
// of all predictions. Must not know labels, or what a prediction computes from a path.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/compiler.hpp"
#include "base/elementary.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/points/queries.hpp"
#include "mondrian/process/rates.hpp"
#include "mondrian/tree/boxes.hpp"
#include "mondrian/tree/node_store.hpp"
#include "mondrian/tree/paths.hpp"
#include "mondrian/tree/tree.hpp"

namespace onlineforest::mondrian {

// Masses below this are not distinguished any more: predictions spread them evenly.
// Differs from the paper: there every mass is carried to the end.
inline constexpr double kNegligibleMass = 1e-12;

// A node on the path of a row.
struct PathStep {
  NodeIndex node;
  double duration;                // Delta_j: split time minus birth time
  BoxView box{nullptr, nullptr};  // null until it is needed
};

// The path of one row from the root to its leaf.
struct RowPath {
  std::size_t row;
  std::span<const PathStep> steps;
  // eta_j(x) per step. Set, and positive, from step `first_outside` on; before that the row is inside all boxes.
  std::span<const double> separation_rates;
  std::size_t first_outside;
  std::size_t n_shared;  // number of first steps that equal those of the previous path
};

// The mass that is separated from the data before the row reaches its leaf. The leaf itself does not count: with an
// infinite lifetime every row outside its box is separated there eventually.
[[nodiscard]] inline double separated_above_leaf(const RowPath& path) {
  double hazard = 0.0;
  for (std::size_t k = path.first_outside; k + 1 < path.steps.size(); ++k) {
    hazard += path.separation_rates[k] * path.steps[k].duration;
  }
  return one_less_exp_of_minus(hazard);
}

// Sends rows down a tree as sets, so that each node is read once for all rows that pass it. Holds the scratch memory of
// one worker, who reuses it from tree to tree.
class SetWalk {
 public:
  // Calls on_tree(tree) for each tree that is not empty, in order; then calls its result as on_path(path) once for each
  // row. A single row goes down several trees side by side.
  template <class Target, class OnTree>
  void walk_trees(std::span<const Tree<Target>> trees, const PointStore& points, const Queries& rows, OnTree on_tree) {
    if (rows.n == 1) {
      for (std::size_t begin = 0; begin < trees.size(); begin += kSideBySide) {
        const auto some = trees.subspan(begin, std::min(kSideBySide, trees.size() - begin));
        find_paths(some, rows.rows, paths_, [&](std::size_t i) { prefetch_along(paths_[i], some[i], points); });
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

  // Calls on_path(path) once for each row, in the order of the leaves. The tree must not be empty.
  template <class Target, class OnPath>
  void walk(const Tree<Target>& tree, const PointStore& points, const Queries& rows, OnPath on_path) {
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
      nodes.prefetch_box(now.node, 2 * n_features);  // read after the rows have reached their leaves
      tree.target().prefetch_state(now.node);
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
        on_path(RowPath{i, steps_, rates_, first_outside, n_shared});
        n_shared = steps_.size();
      }
      if (pending_.empty()) return;
      now = pending_.back();
      pending_.pop_back();
    }
  }

  // Calls on_path(path) for a single row whose nodes are given.
  template <class Target, class OnPath>
  void walk_along(const Path& nodes, const Tree<Target>& tree, const PointStore& points, const Queries& row,
                  OnPath on_path) {
    steps_.clear();
    double birth_time = 0.0;
    for (const NodeIndex j : nodes) {
      const double split_time = tree.nodes().split_time(j);
      steps_.push_back({j, split_time - birth_time});
      birth_time = split_time;
    }
    const std::size_t first_outside = find_rates(tree, points, row, 0);
    on_path(RowPath{0, steps_, rates_, first_outside, 0});
  }

 private:
  // A node that the rows order_[begin, end) go to.
  struct Pending {
    NodeIndex node;
    std::size_t begin, end;
    std::size_t depth;
    double birth_time;
  };

  // Prefetches what walk_along and predictions read first.
  template <class Target>
  ONLINEFOREST_ALWAYS_INLINE static void prefetch_along(const Path& path, const Tree<Target>& tree,
                                                        const PointStore& points) {
    constexpr std::size_t last = 8;
    prefetch(points.row(tree.nodes()[path.back()].first_point));
    prefetch_end(tree.nodes(), path);
    for (std::size_t i = path.size() - std::min(path.size(), last); i < path.size(); ++i) {
      tree.target().prefetch_state(path[i]);
    }
  }

  // Finds the separation rates of row i along steps_. Returns the first step whose box the row lies outside of.
  template <class Target>
  std::size_t find_rates(const Tree<Target>& tree, const PointStore& points, const Queries& rows, std::size_t i) {
    if (rates_.size() < steps_.size()) rates_.resize(steps_.size());
    const std::size_t n_features = tree.nodes().n_features();
    return separation_.find_rates(tree.measure().weights.data(), rows.rows + i * n_features, n_features,
                                  std::span(rates_).first(steps_.size()), [&](std::size_t k) {
                                    PathStep& step = steps_[k];
                                    if (step.box.lower == nullptr) {
                                      step.box = tree.box(step.node, points, buffers_[k % buffers_.size()]);
                                    }
                                    return step.box;
                                  });
  }

  std::array<Path, kSideBySide> paths_;
  std::vector<Slot> order_, spare_;
  std::vector<Pending> pending_;
  std::vector<PathStep> steps_;
  std::vector<double> rates_;
  // Boxes that are not stored. They belong to the last steps of a path, at most kFewPoints of them: each step has fewer
  // points than the one before.
  std::array<BoxBuffer, kFewPoints> buffers_;
  NestedSeparation separation_;
};

}  // namespace onlineforest::mondrian
