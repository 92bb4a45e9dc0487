// The predictive distribution over labels at a point: Algorithm 8 of the paper, on the path of a walk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/elementary.hpp"
#include "base/memory.hpp"
#include "base/simd.hpp"
#include "mondrian/labels/target.hpp"
#include "mondrian/tree/tree.hpp"
#include "mondrian/tree/walk.hpp"

namespace onlineforest::mondrian {

// d_j = exp(-gamma Delta_j): the weight of the parent's distribution in that of a node.
inline double discount_of(double discount_rate, double duration) {
  return discount_rate > 0.0 ? natural_exp(-discount_rate * duration) : 1.0;
}

// The mass that is separated at a step, split into the share for the labels of the node and the share for the parent's
// distribution. With T the time of separation, the latter is E[exp(-gamma T); T < Delta] =
// eta / (eta + gamma) (1 - exp(-(eta + gamma) Delta)) times the mass that arrived. Requires eta > 0.
struct Separated {
  Separated() = default;
  Separated(double separation_rate, double discount_rate, double arrived, double left, double discount)
      : to_parent(std::min(separation_rate / (separation_rate + discount_rate) * (arrived - left * discount),
                           arrived - left)),
        here(arrived - left - to_parent) {}

  double to_parent = 0.0, here = 0.0;
};

// Adds up the distributions of trees. Scratch memory of one thread, reused from tree to tree.
//
// Each posterior mean on the path mixes the label sets of the nodes above it, so each step needs only scalars. A pass
// down computes the mass separated at each step. A pass up computes the mass on each set S_j and on the labels that
// both children hold; the rest goes to the parent, and above the root evenly to all classes. The sets are nested, so a
// last pass visits each label once.
class LabelWalk {
 public:
  // A sum has one number per class, and one for the mass spread evenly over all classes.
  static std::size_t width(std::int32_t n_classes) { return static_cast<std::size_t>(n_classes) + 1; }

  // Adds the distributions of the trees at the rows to `sums`, tree by tree. Each number of a tree is added in one
  // addition, so that a partial sum can be continued elsewhere. Calls on_row(work) after each row with the approximate
  // amount of work.
  template <class OnRow>
  void add_predictions(std::span<const Tree<LabelTarget>> trees, const PointStore& points, const Queries& rows,
                       std::int32_t n_classes, double* sums, OnRow on_row) {
    const std::size_t k = static_cast<std::size_t>(n_classes);
    if (of_nodes_.size() < k + kLabelsAtATime) of_nodes_.resize(k + kLabelsAtATime, 0.0);
    walk_.walk_trees(trees, points, rows, [&](const Tree<LabelTarget>& tree) {
      levels_.clear();
      return [&](const RowPath& path) {
        double* const sum = sums + path.row * width(n_classes);
        constexpr std::size_t per_line = 8;
        for (std::size_t c = 0; c <= k; c += per_line) prefetch(sum + c);
        sum[k] += add(tree, path, std::span(sum, k));
        on_row(path.steps.size() * points.n_features() + k);
      };
    });
  }

  // Turns sums over `n_trees` trees into mean probabilities, n_classes per row.
  static void finish(std::vector<double>& sums, std::int32_t n_classes, double n_trees) {
    const std::size_t k = static_cast<std::size_t>(n_classes), n_rows = sums.size() / width(n_classes);
    for (std::size_t i = 0; i < n_rows; ++i) {
      const double* const sum = sums.data() + i * width(n_classes);
      const double to_each = sum[k] / static_cast<double>(k);
      for (std::size_t c = 0; c < k; ++c) sums[i * k + c] = (sum[c] + to_each) / n_trees;
    }
    sums.resize(n_rows * k);
    if (k == 1) std::ranges::fill(sums, 1.0);  // without rounding
  }

 private:
  static constexpr std::size_t kLabelsAtATime = 2 * simd::kWidth;  // in add_shares, which reads whole groups of labels

  // How the posterior mean of a step's node distributes a mass of 1.
  struct Level {
    bool is_known = false;
    bool is_plain;     // whether the node has no block of counts
    double decay;      // exp(-gamma Delta_j)
    double discount;   // d_j: `decay`, for a leaf at least the leaf discount
    double n_labels;   // |S_j|, the sum of tab_jk over the labels
    double per_count;  // 1 / c_j
    double to_parent;  // d_j |S_j| / c_j
    // The mass that a plain node gives to each label, and adds for each label that both children hold.
    double to_label, to_common;
    std::uint64_t labels, common;  // the sets if they are words: S_j, and the labels that both children hold
    // For the current row.
    Separated separated;
    double to_each_label = 0.0;
  };

  // A mass for each label of a set that is one word.
  struct Share {
    std::uint64_t labels;
    double to_each;
  };

  Level& level(const Tree<LabelTarget>& tree, const RowPath& path, std::size_t k) {
    Level& level = levels_[k];
    if (!level.is_known) set_level(level, tree, path.steps[k]);
    return level;
  }

  static void set_level(Level& level, const Tree<LabelTarget>& tree, const PathStep& step) {
    const NodeIndex j = step.node;
    const Node& node = tree.nodes()[j];
    const LabelSets& sets = tree.target().sets();
    level.is_known = true;
    level.decay = discount_of(tree.measure().discount_rate, step.duration);
    level.discount = node.is_leaf() ? std::max(level.decay, tree.measure().leaf_discount) : level.decay;
    level.is_plain = tree.target().is_plain(j);
    level.labels = sets.are_words() ? sets.word(j) : 0;
    level.common = sets.are_words() && !node.is_leaf() ? sets.word(node.left) & sets.word(node.right()) : 0;
    level.n_labels = sets.size(j);
    double count = 0.0, of_label = 1.0;
    if (!level.is_plain) {
      tree.target().for_each_in_block(j, [&](Label, LabelTarget::Count of_one) { count += of_one; });
    } else if (node.is_leaf()) {
      count = of_label = static_cast<double>(node.n_points);
    } else {
      count = level.n_labels + sets.size_common(node.left, node.right());
    }
    level.per_count = 1.0 / count;
    level.to_parent = level.discount * level.n_labels / count;
    level.to_label = level.per_count * (of_label - level.discount);
    level.to_common = node.is_leaf() ? 0.0 : level.per_count;
  }

  // Returns the mass above the root, including masses below kNegligibleMass.
  double add(const Tree<LabelTarget>& tree, const RowPath& path, std::span<double> sums) {
    levels_.resize(std::min(levels_.size(), path.n_shared));
    levels_.resize(path.steps.size());
    shares_.clear();
    double mass = separate(tree, path);

    std::size_t top = path.steps.size();
    while (top > 0 && (mass >= kNegligibleMass || top > path.first_outside)) {
      --top;
      Level& here = level(tree, path, top);
      double to_each = 0.0, to_parent = 0.0;
      if (top >= path.first_outside) {  // in proportion to tab_jk
        to_each = here.separated.here / here.n_labels;
        to_parent = here.separated.to_parent;
      }
      if (mass >= kNegligibleMass) {
        to_each += add_posterior_mean(tree, path.steps[top].node, here, mass);
        to_parent += mass * here.to_parent;
      } else {
        to_parent += mass;
      }
      here.to_each_label = to_each;
      shares_.push_back({here.labels, to_each});
      mass = to_parent;
    }
    if (tree.target().sets().are_words()) {
      constexpr std::size_t most = 64;  // labels of a word; there may be more classes, none of which the tree has met
      add_shares(sums.first(std::min(sums.size(), most)));
    } else {
      add_to_lists(tree, path, top, sums);
    }
    return mass;
  }

  // Computes the mass separated at each step. Returns the mass that reaches the leaf.
  double separate(const Tree<LabelTarget>& tree, const RowPath& path) {
    const double discount_rate = tree.measure().discount_rate;
    double hazard = 0.0, arrived = 1.0;
    for (std::size_t k = path.first_outside; k < path.steps.size(); ++k) {
      const double rate = path.separation_rates[k];
      Level& here = level(tree, path, k);
      hazard += rate * path.steps[k].duration;
      const double left = natural_exp(-hazard);
      here.separated = Separated(rate, discount_rate, arrived, left, here.decay);
      arrived = left;
    }
    return arrived;
  }

  // Adds the mass on counts, or on labels that both children hold. Returns the mass on each label of the set.
  double add_posterior_mean(const Tree<LabelTarget>& tree, NodeIndex j, const Level& here, double mass) {
    if (!here.is_plain) {
      const double per_count = mass * here.per_count;
      tree.target().for_each_in_block(j, [&](Label label, LabelTarget::Count count) {
        of_nodes_[static_cast<std::size_t>(label)] += per_count * (count - here.discount);
      });
      return 0.0;
    }
    const double to_common = mass * here.to_common;
    if (here.common != 0) {
      shares_.push_back({here.common, to_common});
    } else if (!tree.target().sets().are_words() && !tree.nodes()[j].is_leaf()) {
      const Node& node = tree.nodes()[j];
      tree.target().sets().for_each_common(
          node.left, node.right(), [&](Label label) { of_nodes_[static_cast<std::size_t>(label)] += to_common; });
    }
    return mass * here.to_label;
  }

  // Adds the shares and the masses of single labels, eight labels at a time: so there are no branches that a processor
  // could not predict.
  void add_shares(std::span<double> sums) {
    constexpr std::size_t width = simd::kWidth;
    for (std::size_t first = 0; first < sums.size(); first += kLabelsAtATime) {
      double* const alone = of_nodes_.data() + first;
      simd::Double4 low = simd::load(alone), high = simd::load(alone + width);
      for (const Share& share : shares_) {
        const std::uint64_t labels = share.labels >> first;
        low = simd::add(low, simd::only(labels, share.to_each));
        high = simd::add(high, simd::only(labels >> width, share.to_each));
      }
      double* const sum = sums.data() + first;
      if (first + kLabelsAtATime <= sums.size()) {
        simd::store(sum, simd::add(simd::load(sum), low));
        simd::store(sum + width, simd::add(simd::load(sum + width), high));
      } else {
        simd::store(alone, low);
        simd::store(alone + width, high);
        for (std::size_t i = 0; first + i < sums.size(); ++i) sum[i] += alone[i];
      }
      simd::store(alone, simd::zero());
      simd::store(alone + width, simd::zero());
    }
  }

  // A label gets the mass per label of every set on the path that contains it, plus its own mass. Only labels in the
  // topmost set have any, because it contains all sets below.
  void add_to_lists(const Tree<LabelTarget>& tree, const RowPath& path, std::size_t top, std::span<double> sums) {
    const LabelSets& sets = tree.target().sets();
    double sum = 0.0;
    const auto add_sum = [&](Label label) {
      double& alone = of_nodes_[static_cast<std::size_t>(label)];
      sums[static_cast<std::size_t>(label)] += alone + sum;
      alone = 0.0;
    };
    for (std::size_t k = top; k < path.steps.size(); ++k) {
      sum += levels_[k].to_each_label;
      if (k + 1 < path.steps.size()) {
        sets.for_each_only_in(path.steps[k].node, path.steps[k + 1].node, add_sum);
      } else {
        sets.for_each(path.steps[k].node, add_sum);
      }
    }
  }

  SetWalk walk_;
  std::vector<Level> levels_;
  std::vector<Share> shares_;     // shares for the current row, if sets are words
  std::vector<double> of_nodes_;  // mass on single labels for the current row; 0 between rows
};

}  // namespace onlineforest::mondrian
