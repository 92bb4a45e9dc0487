// The predictive distribution of a number at a row, a mixture of normals, computed on the path of a walk; and the exact
// leave-one-out prediction of a stored point.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/elementary.hpp"
#include "numbers/gaussian_target.hpp"
#include "numbers/mixture.hpp"
#include "process/rates.hpp"
#include "tree/tree.hpp"
#include "tree/walk.hpp"

namespace onlineforest {

// Computes the mixtures of trees in units of each tree's prior; the masses of a tree sum to 1. Scratch memory of one
// thread, reused from tree to tree.
//
// There is one component for each edge at which the row may be separated, and one for its leaf. The component of an
// edge has the exact mean and variance over the time of separation: at that time the mean is a bridge between the
// beliefs at both ends, linear in the fade, its variance is quadratic in the fade, and the first two moments of the
// fade have a closed form.
class GaussianWalk {
 public:
  using GaussianTree = Tree<GaussianTarget>;
  using Points = PointStore<double>;

  // Calls on_row(row, tree, components) for each row and each tree that is not empty. Trees come in their order, rows
  // in an order that depends on the tree.
  template <class OnRow>
  void walk(std::span<const GaussianTree> trees, const Points& points, const Queries& rows, OnRow on_row) {
    walk_.walk_trees(trees, points, rows, [&](const GaussianTree& tree) {
      levels_.clear();
      return [&](const RowPath& path) {
        levels_.resize(std::min(levels_.size(), path.n_shared));
        set_levels(tree, path.steps);
        find_components(tree, path);
        on_row(path.row, tree, std::span<const Component>(components_));
      };
    });
  }

  // Calls on_slot(i, components) for each slot with the left-out prediction of one tree: that of the tree restricted to
  // all other points, except that a block which could then pause stays cut. The tree must hold the points.
  template <class OnSlot>
  void leave_out(const GaussianTree& tree, const Points& points, std::span<const Slot> slots, StopProbe& stop,
                 OnSlot on_slot) {
    std::array<Search, kSideBySide> searches;
    for (std::size_t begin = 0; begin < slots.size(); begin += kSideBySide) {
      const std::span<const Slot> some = slots.subspan(begin, std::min(kSideBySide, slots.size() - begin));
      for (std::size_t i = 0; i < some.size(); ++i) {
        paths_[i].clear();
        searches[i] = {&tree.nodes(), points.row(some[i]), &paths_[i]};
      }
      find_paths(std::span<const Search>(searches).first(some.size()), [&](const Search& search) {
        prefetch_end(tree.nodes(), *search.path);
        for (const NodeIndex j : *search.path) tree.target().prefetch_state(j);
      });
      for (std::size_t i = 0; i < some.size(); ++i) {
        find_components_without(tree, points, some[i], paths_[i], stop);
        on_slot(begin + i, std::span<const Component>(components_));
      }
    }
  }

 private:
  // `above` is the belief at the start of a step's edge given all values that are not below the step's node.
  struct Level {
    Belief above;
    double fade;          // at the start of the edge
    double fade_at_node;  // and at its end
    Belief below;         // about the mean of the node, from the values below
  };

  static NodeIndex sibling_of(const NodeStore& nodes, NodeIndex parent, NodeIndex child) {
    return nodes[parent].left + (child == nodes[parent].left);
  }

  // Adds the level of a node whose sibling is `other`.
  void add_level(const GaussianTarget& target, NodeIndex node, Belief below, NodeIndex other) {
    if (levels_.empty()) {
      levels_.push_back({{0.0, 0.0}, 1.0, target.fade(node), below});
      return;
    }
    const Level& up = levels_.back();
    const Belief at_parent{up.above.mean, up.above.variance + target.edge_variance(up.fade, up.fade_at_node)};
    const Belief above = combined(at_parent, target.message(other, up.fade_at_node));
    levels_.push_back({above, up.fade_at_node, target.fade(node), below});
  }

  void set_levels(const GaussianTree& tree, std::span<const PathStep> steps) {
    for (std::size_t k = levels_.size(); k < steps.size(); ++k) {
      const NodeIndex j = steps[k].node;
      const NodeIndex other = k == 0 ? kNoNode : sibling_of(tree.nodes(), steps[k - 1].node, j);
      add_level(tree.target(), j, tree.target().belief(j), other);
    }
  }

  // Computes the components of a path whose levels are set.
  void find_components(const GaussianTree& tree, const RowPath& path) {
    const GaussianPrior& prior = tree.measure().prior;
    const double variance = prior.prior_variance(), rate_of_fading = tree.measure().discount_rate;
    const double fade_at_end = tree.target().fade_at(tree.lifetime());
    components_.clear();
    double hazard = 0.0, arrived = 1.0;
    for (std::size_t k = path.first_outside; k < path.steps.size() && arrived >= kNegligibleMass; ++k) {
      const Level& level = levels_[k];
      const double rate = path.separation_rates[k];
      hazard += rate * path.steps[k].duration;
      const double left = natural_exp(-hazard), mass = arrived - left;
      if (mass > 0.0) {
        // E[f] and E[f^2] of the fade f = exp(-gamma t) at the time t of separation.
        const double from = level.fade, to = level.fade_at_node;
        const double share = left / mass;
        const double fade = std::clamp(rate / (rate + rate_of_fading) * (from + share * (from - to)), to, from);
        const double square =
            std::clamp(rate / (rate + 2.0 * rate_of_fading) * (from * from + share * (from * from - to * to)),
                       fade * fade, from * from);
        // The bridge weighs the belief below by w = (variance from above up to t) / (variance of the whole edge).
        const double whole = level.above.variance + level.below.variance + variance * (from - to);
        double mean = level.below.mean, bridge = 0.0;
        if (whole > 0.0) {
          const double w = (level.above.variance + variance * (from - fade)) / whole;
          const double spread = variance * variance * (square - fade * fade) / (whole * whole);  // variance of w
          const double apart = level.below.mean - level.above.mean;
          mean = level.above.mean + apart * w;
          bridge = whole * (w * (1.0 - w) - spread) + apart * apart * spread;
        }
        // Outside the box of all points the trend is uncertain itself.
        const double of_trend = k == 0 ? prior.trend_variance : 0.0;
        components_.push_back(
            {mass, mean, std::max(bridge, 0.0) + variance * (fade - fade_at_end) + prior.noise + of_trend});
      }
      arrived = left;
    }
    const Level& last = levels_.back();
    const Belief above{last.above.mean, last.above.variance + variance * (last.fade - last.fade_at_node)};
    const Belief leaf = combined(above, last.below);
    if (arrived > 0.0) components_.push_back({arrived, leaf.mean, leaf.variance + prior.noise});
  }

  // A node on the path of a point in the tree restricted to all other points.
  struct Place {
    NodeIndex node, other;  // `other` is the sibling, kNoNode for the root
    bool held_it;           // the point is in or below this node
  };

  void find_components_without(const GaussianTree& tree, const Points& points, Slot slot, const Path& path,
                               StopProbe& stop) {
    find_places(tree, points.row(slot), path);
    if (places_.empty()) {  // there are no other points
      const GaussianTarget& target = tree.target();
      const GaussianPrior& prior = tree.measure().prior;
      const double variance = target.edge_variance(1.0, target.fade(kRoot)) + prior.noise + prior.trend_variance;
      components_.assign(1, {1.0, 0.0, variance});
      return;
    }
    steps_.clear();
    double birth_time = 0.0;
    for (const Place& place : places_) {
      const double split_time = tree.nodes().split_time(place.node);
      steps_.push_back({place.node, split_time - birth_time});
      birth_time = split_time;
    }
    set_beliefs(tree, points, slot);
    levels_.clear();
    for (std::size_t k = 0; k < places_.size(); ++k) {
      add_level(tree.target(), places_[k].node, beliefs_[k], places_[k].other);
    }
    const std::size_t first_outside = find_rates(tree, points, slot, stop);
    find_components(tree, {0, steps_, rates_, first_outside, 0});
  }

  // If the point is alone in its leaf, the leaf's sibling replaces their parent, and the path continues below the
  // sibling.
  void find_places(const GaussianTree& tree, const float* row, const Path& path) {
    const NodeStore& nodes = tree.nodes();
    places_.clear();
    const bool is_alone = nodes[path.back()].n_points == 1;
    const std::size_t n_kept = path.size() - (is_alone ? std::min<std::size_t>(path.size(), 2) : 0);
    const auto sibling = [&](std::size_t k) { return k == 0 ? kNoNode : sibling_of(nodes, path[k - 1], path[k]); };
    for (std::size_t k = 0; k < n_kept; ++k) places_.push_back({path[k], sibling(k), true});
    if (n_kept == path.size() || path.size() == 1) return;
    NodeIndex j = sibling(n_kept + 1), other = sibling(n_kept);
    for (;;) {
      places_.push_back({j, other, false});
      if (nodes[j].is_leaf()) return;
      const NodeIndex child = nodes[j].child(row);
      other = sibling_of(nodes, j, child);
      j = child;
    }
  }

  // The belief about each place from the values below it.
  void set_beliefs(const GaussianTree& tree, const Points& points, Slot slot) {
    const GaussianTarget& target = tree.target();
    beliefs_.resize(places_.size());
    for (std::size_t k = places_.size(); k-- > 0;) {
      const auto [j, other, held_it] = places_[k];
      const Node& node = tree.nodes()[j];
      if (!held_it) {
        beliefs_[k] = target.belief(j);
      } else if (node.is_leaf()) {
        const GaussianPrior& prior = tree.measure().prior;
        const double left = multiplicity(target.weight(j) - points.weight(slot)), mean = target.belief(j).mean;
        const double residual = prior.residual(points.value(slot), points.expected(slot));
        beliefs_[k] = {mean + (mean - residual) * points.multiplicity(slot) / left, prior.noise / left};
      } else {
        const double fade = target.fade(j);
        beliefs_[k] = combined(target.message(beliefs_[k + 1], target.fade(places_[k + 1].node), fade),
                               target.message(places_[k + 1].other, fade));
      }
    }
  }

  // The rates at which the point is separated from the places. Returns the first place from which they are positive.
  std::size_t find_rates(const GaussianTree& tree, const Points& points, Slot slot, StopProbe& stop) {
    const std::size_t n_features = tree.nodes().n_features();
    rates_.resize(places_.size());
    const auto box_of = [&](std::size_t k) {
      const Place& place = places_[k];
      if (!place.held_it) {
        box_.assign(tree.box(place.node, points, buffer_), n_features);
      } else if (tree.nodes()[place.node].is_leaf()) {
        set_box_without(tree, points, place.node, slot, stop);
      } else {
        include(box_.lower(), box_.upper(), tree.box(places_[k + 1].other, points, buffer_), n_features);
      }
      return box_.view();
    };
    return separation_.find_rates(tree.measure().weights.data(), points.row(slot), n_features, rates_, box_of);
  }

  // The box of a leaf changes only if the point touches it.
  void set_box_without(const GaussianTree& tree, const Points& points, NodeIndex leaf, Slot slot, StopProbe& stop) {
    const std::size_t n_features = tree.nodes().n_features();
    if (tree.nodes().has_box(leaf)) {
      const BoxView box = tree.nodes().stored_box(leaf);
      const float* row = points.row(slot);
      bool touches = false;
      for (std::size_t d = 0; d < n_features; ++d) touches |= row[d] == box.lower[d] || row[d] == box.upper[d];
      if (!touches) {
        box_.assign(box, n_features);
        return;
      }
    }
    Slot other = tree.nodes()[leaf].first_point;
    if (other == slot) other = tree.next_point(other);
    box_.assign(points.box(other), n_features);
    for (; other != kNoSlot; other = tree.next_point(other)) {
      if (other != slot) include(box_.lower(), box_.upper(), points.box(other), n_features);
      stop.tick(n_features);
    }
  }

  SetWalk walk_;
  std::vector<Level> levels_;
  std::vector<Component> components_;
  // For left-out predictions.
  std::array<Path, kSideBySide> paths_;
  std::vector<Place> places_;
  std::vector<Belief> beliefs_;
  std::vector<PathStep> steps_;
  std::vector<double> rates_;
  BoxBuffer box_, buffer_;
  NestedSeparation separation_;
};

}  // namespace onlineforest
