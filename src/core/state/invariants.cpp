#include "state/invariants.hpp"
#include "process/rates.hpp"
#include "tree/boxes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace onlineforest {

namespace {

void require(bool ok, NodeIndex j, const char* message) {
  if (!ok) throw std::logic_error("node " + std::to_string(j) + ": " + message);
}

// What must be true of what a target keeps of the values.
class LabelChecker {
 public:
  LabelChecker(const Tree<LabelTarget>& tree, const PointStore<Label>& points) : tree_(tree), points_(points) {}

  // Whether all values of the leaf are the same.
  bool check_leaf(NodeIndex j, std::span<const Slot> slots) const {
    std::map<Label, std::uint32_t> counts, kept;
    for (const Slot slot : slots) ++counts[points_.value(slot)];
    const auto n = static_cast<std::int32_t>(slots.size());
    tree_.target().for_each_count(j, n, [&](Label label, std::uint32_t count) { kept[label] = count; });
    require(kept == counts, j, "the label counts of a leaf are wrong");
    require(labels(j).size() == counts.size(), j, "the label set of a leaf is wrong");
    return counts.size() == 1;
  }

  // Whether all values below the node are the same, which they must not.
  bool check_internal(NodeIndex j, NodeIndex left, NodeIndex right) const {
    std::vector<Label> both, common, expected;
    std::ranges::set_union(labels(left), labels(right), std::back_inserter(both));
    require(both == labels(j), j, "the label set is not the union of the children's");
    tree_.target().sets().for_each_common(left, right, [&](Label label) { common.push_back(label); });
    std::ranges::set_intersection(labels(left), labels(right), std::back_inserter(expected));
    require(common == expected, j, "the common labels of the children are wrong");
    return both.size() == 1;
  }

 private:
  std::vector<Label> labels(NodeIndex j) const {
    std::vector<Label> result;
    tree_.target().sets().for_each(j, [&](Label label) { result.push_back(label); });
    return result;
  }

  const Tree<LabelTarget>& tree_;
  const PointStore<Label>& points_;
};

class GaussianChecker {
 public:
  GaussianChecker(const Tree<GaussianTarget>& tree, const PointStore<double>& points)
      : tree_(tree), points_(points), ranges_(tree.nodes().size()) {}

  bool check_leaf(NodeIndex j, std::span<const Slot> slots) {
    const GaussianPrior& prior = tree_.measure().prior;
    const double n = static_cast<double>(slots.size());
    Range& range = ranges_[static_cast<std::size_t>(j)];
    double sum = 0.0, size = 0.0;
    for (const Slot slot : slots) {
      const double residual = prior.residual(points_.value(slot), prior.trend.at(points_.row(slot)));
      sum += residual;
      size = std::max(size, std::abs(residual));
      range = range.with({points_.value(slot), points_.value(slot)});
    }
    require_belief(j, {sum / n, prior.noise / n}, size);
    return range.lower == range.upper;
  }

  bool check_internal(NodeIndex j, NodeIndex left, NodeIndex right) {
    const double variance = tree_.measure().prior.prior_variance();
    const auto message = [&](NodeIndex child) {
      const Belief belief = tree_.target().belief(child);
      return Belief{belief.mean, belief.variance + variance * (fade(j) - fade(child))};
    };
    const Belief a = message(left), b = message(right);
    const double precision = 1.0 / a.variance + 1.0 / b.variance;
    require_belief(j, {(a.mean / a.variance + b.mean / b.variance) / precision, 1.0 / precision},
                   std::max(std::abs(a.mean), std::abs(b.mean)));
    const Range& other = ranges_[static_cast<std::size_t>(right)];
    Range& range = ranges_[static_cast<std::size_t>(j)] = ranges_[static_cast<std::size_t>(left)].with(other);
    return range.lower == range.upper;
  }

 private:
  struct Range {
    double lower = kInfinity, upper = -kInfinity;

    Range with(const Range& other) const { return {std::min(lower, other.lower), std::max(upper, other.upper)}; }
  };

  double fade(NodeIndex j) const { return tree_.target().fade_at(tree_.nodes().split_time(j)); }

  void require_belief(NodeIndex j, const Belief& expected, double size) const {
    constexpr double tolerance = 1e-8;
    const Belief& kept = tree_.target().belief(j);
    require(tree_.target().fade(j) == fade(j), j, "what is to come of the prior variance is not that of its time");
    constexpr double tiny = std::numeric_limits<double>::min();  // below, numbers have few digits
    require(std::abs(kept.mean - expected.mean) <= tolerance * size + tiny, j, "the mean of a belief is wrong");
    require(std::abs(kept.variance - expected.variance) <= tolerance * expected.variance, j,
            "the variance of a belief is wrong");
  }

  const Tree<GaussianTarget>& tree_;
  const PointStore<double>& points_;
  std::vector<Range> ranges_;  // of the values below each node
};

template <class Target>
using Checker = std::conditional_t<std::is_same_v<Target, LabelTarget>, LabelChecker, GaussianChecker>;

template <class Target>
class TreeChecker {
 public:
  TreeChecker(const Tree<Target>& tree, const PointStore<typename Target::Value>& points,
              std::int32_t min_samples_split)
      : tree_(tree),
        nodes_(tree.nodes()),
        points_(points),
        min_samples_split_(min_samples_split),
        target_(tree, points) {}

  void check() {
    require(tree_.n_points() <= points_.size(), kNoNode, "the tree holds more points than the store");
    if (tree_.empty()) {
      require(tree_.n_points() == 0 && nodes_.size() == 0, kNoNode, "an empty tree has points or nodes");
      return;
    }
    require(tree_.measure().weights.size() == nodes_.n_features(), kNoNode, "not one weight per feature");
    order_nodes();
    n_below_.resize(nodes_.size());
    seen_.assign(tree_.n_points(), false);
    for (auto j = order_.rbegin(); j != order_.rend(); ++j) {
      if (nodes_[*j].is_leaf()) {
        check_leaf(*j);
      } else {
        check_internal(*j);
      }
    }
    require(std::ranges::find(seen_, false) == seen_.end(), kNoNode, "a point lies in no leaf");
    if (tree_.links().are_there()) check_links();
  }

 private:
  // Parents before children; each node exactly once.
  void order_nodes() {
    order_.push_back(kRoot);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      require(order_.size() <= nodes_.size(), order_[i], "more links than nodes");
      const Node& node = nodes_[order_[i]];
      if (node.is_leaf()) continue;
      for (const NodeIndex child : {node.left, node.right()}) {
        require(child > kRoot && static_cast<std::size_t>(child) < nodes_.size(), order_[i], "a child is no node");
        order_.push_back(child);
      }
    }
    require(order_.size() == nodes_.size(), kNoNode, "a node is not reached from the root");
  }

  void check_leaf(NodeIndex j) {
    const Node& leaf = nodes_[j];
    require(nodes_.split_time(j) == tree_.lifetime(), j, "the time of a leaf is not the lifetime");
    require(leaf.first_point != kNoSlot, j, "a leaf has no points");
    std::vector<Slot> slots;
    std::vector<float> lower, upper;
    std::int32_t n = 0;
    for (Slot slot = leaf.first_point; slot != kNoSlot; slot = tree_.next_point(slot), ++n) {
      require(slot >= 0 && static_cast<std::size_t>(slot) < seen_.size(), j, "a point of the leaf is not the tree's");
      require(!seen_[static_cast<std::size_t>(slot)], j, "a point lies in two leaves, or twice in one");
      seen_[static_cast<std::size_t>(slot)] = true;
      slots.push_back(slot);
      if (n == 0) {
        lower.assign(points_.row(slot), points_.row(slot) + nodes_.n_features());
        upper = lower;
      }
      include(lower.data(), upper.data(), points_.box(slot), nodes_.n_features());
    }
    require(n == leaf.n_points, j, "the count of a leaf is wrong");
    n_below_[static_cast<std::size_t>(j)] = n;
    require_box(j, {lower.data(), upper.data()});

    const bool all_equal = target_.check_leaf(j, slots);
    const bool may_pause = all_equal || n < min_samples_split_;
    require(tree_.target().is_paused(j, n) == may_pause, j, "a leaf is paused against the rule");
    if (!may_pause && tree_.lifetime() == kInfinity) {
      const BoxView box{lower.data(), upper.data()};
      const double rate = linear_dimension(tree_.measure().weights.data(), box, nodes_.n_features());
      require(rate < kNoRate, j, "a leaf that could still be cut has no end");
    }
  }

  // The ways back are those there.
  void check_links() {
    for (const NodeIndex j : order_) {
      if (nodes_[j].is_leaf()) {
        Slot before = ~j;
        for (Slot slot = nodes_[j].first_point; slot != kNoSlot; slot = tree_.next_point(slot)) {
          require(tree_.links().before(slot) == before, j, "the way back from a point is wrong");
          before = slot;
        }
      } else {
        require(tree_.links().parent(nodes_[j].left) == j, j, "the way back to a parent is wrong");
      }
    }
    require(tree_.links().parent(kRoot) == kNoNode, kRoot, "the root has a parent");
  }

  void check_internal(NodeIndex j) {
    const Node& node = nodes_[j];
    const NodeIndex left = node.left, right = node.right();
    const double split_time = nodes_.split_time(j);
    require(split_time >= 0.0 && split_time < tree_.lifetime(), j, "the split time is not before the lifetime");
    require(split_time <= nodes_.split_time(left) && split_time <= nodes_.split_time(right), j,
            "a child is cut before its parent");
    std::int32_t& n = n_below_[static_cast<std::size_t>(j)];
    n = n_below_[static_cast<std::size_t>(left)] + n_below_[static_cast<std::size_t>(right)];
    require(node.split_dimension >= 0 && static_cast<std::size_t>(node.split_dimension) < nodes_.n_features(), j,
            "the split dimension is no feature");
    const std::size_t d = static_cast<std::size_t>(node.split_dimension);
    require(tree_.measure().weights[d] > 0.0, j, "a feature of weight 0 is cut");
    const BoxView left_box = tree_.box(left, points_, left_buffer_),
                  right_box = tree_.box(right, points_, right_buffer_);
    require(left_box.upper[d] <= node.split_location && node.split_location < right_box.lower[d], j,
            "the cut does not pass between the children's boxes");

    std::vector<float> lower(left_box.lower, left_box.lower + nodes_.n_features());
    std::vector<float> upper(left_box.upper, left_box.upper + nodes_.n_features());
    include(lower.data(), upper.data(), right_box, nodes_.n_features());
    require_box(j, {lower.data(), upper.data()});

    const bool all_equal = target_.check_internal(j, left, right);
    require(!all_equal && n >= min_samples_split_, j, "a block that may pause is cut");
  }

  void require_box(NodeIndex j, BoxView expected) {
    require(nodes_.has_box(j) == (n_below_[static_cast<std::size_t>(j)] > kFewPoints), j,
            "a box is stored that need not be, or is not that must be");
    const BoxView box = tree_.box(j, points_, left_buffer_);
    const std::size_t n = nodes_.n_features();
    require(
        std::equal(box.lower, box.lower + n, expected.lower) && std::equal(box.upper, box.upper + n, expected.upper), j,
        "the box is not the hull of its points");
  }

  const Tree<Target>& tree_;
  const NodeStore& nodes_;
  const PointStore<typename Target::Value>& points_;
  std::int32_t min_samples_split_;
  Checker<Target> target_;
  BoxBuffer left_buffer_, right_buffer_;
  std::vector<NodeIndex> order_;
  std::vector<std::int32_t> n_below_;
  std::vector<bool> seen_;
};

void check_values(const LabelForest& forest) {
  for (const Label label : forest.points().values()) {
    if (label < 0 || label >= forest.current_n_classes()) throw std::logic_error("a stored label is no class");
  }
}

void check_values(const GaussianForest& forest) {
  for (const double value : forest.points().values()) {
    if (!(std::abs(value) <= kLargestValue)) throw std::logic_error("a stored value is out of range");
  }
}

}  // namespace

template <class Target>
void check_invariants(const Tree<Target>& tree, const PointStore<typename Target::Value>& points,
                      std::int32_t min_samples_split) {
  TreeChecker<Target>(tree, points, min_samples_split).check();
}

template <class Forest>
void check_invariants(const Forest& forest) {
  forest.read([&forest](const auto& f) {
    check_values(forest);
    if (f.tenure().serials().size() != f.points().size()) throw std::logic_error("not every point has its time");
    if (f.tenure().is_limited() && f.points().size() > f.options().keep.capacity) {
      throw std::logic_error("more points are kept than may be");
    }
    for (std::size_t i = 0; i < f.trees().size(); ++i) {
      try {
        check_invariants(f.trees()[i], f.points(), f.options().min_samples_split);
      } catch (const std::logic_error& error) {
        throw std::logic_error("tree " + std::to_string(i) + ", " + error.what());
      }
    }
  });
}

template void check_invariants(const Tree<LabelTarget>&, const PointStore<Label>&, std::int32_t);
template void check_invariants(const Tree<GaussianTarget>&, const PointStore<double>&, std::int32_t);
template void check_invariants(const LabelForest&);
template void check_invariants(const GaussianForest&);

}  // namespace onlineforest
