#include "mondrian/state/invariants.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "mondrian/process/rates.hpp"
#include "mondrian/state/require.hpp"
#include "mondrian/tree/boxes.hpp"

namespace onlineforest::mondrian {

namespace {

template <class... Parts>
void require_invariant(bool ok, const Parts&... parts) {
  if (!ok) throw std::logic_error(text_of(parts...));
}

template <class... Parts>
void require_node(bool ok, NodeIndex j, const Parts&... parts) {
  require_invariant(ok, "node ", j, ": ", parts...);
}

// Checks label sets and label counts.
class LabelChecker {
 public:
  LabelChecker(const Tree<LabelTarget>& tree, const PointStore& points) : tree_(tree), points_(points) {}

  // Returns whether all labels of the leaf are equal.
  bool check_leaf(NodeIndex j, std::span<const Slot> slots) const {
    std::map<Label, LabelTarget::Count> counts, kept;
    std::size_t total = 0;
    for (const Slot slot : slots) {
      counts[points_.label(slot)] += points_.count(slot);
      total += static_cast<std::size_t>(points_.count(slot));
    }
    const auto n = static_cast<std::int32_t>(slots.size());
    tree_.target().for_each_count(j, n, [&](Label label, LabelTarget::Count count) { kept[label] = count; });
    require_node(kept == counts, j, "the label counts of the leaf are not those of its points");
    require_node(tree_.target().is_plain(j) == (counts.size() == 1 && total == slots.size()), j,
                 "the leaf keeps counts although its number of points says them, or the other way round");
    require_node(labels(j).size() == counts.size(), j, "the label set has ", labels(j).size(),
                 " labels, the points have ", counts.size());
    return counts.size() == 1;
  }

  // Returns whether all labels below the node are equal.
  bool check_internal(NodeIndex j, NodeIndex left, NodeIndex right) const {
    std::vector<Label> both, common, expected;
    std::ranges::set_union(labels(left), labels(right), std::back_inserter(both));
    require_node(both == labels(j), j, "the label set is not the union of the children's label sets");
    tree_.target().sets().for_each_common(left, right, [&](Label label) { common.push_back(label); });
    std::ranges::set_intersection(labels(left), labels(right), std::back_inserter(expected));
    require_node(common == expected, j, "the common labels are not the intersection of the children's label sets");
    require_node(tree_.target().is_plain(j), j, "counts are kept of an internal node");
    return both.size() == 1;
  }

 private:
  std::vector<Label> labels(NodeIndex j) const {
    std::vector<Label> result;
    tree_.target().sets().for_each(j, [&](Label label) { result.push_back(label); });
    return result;
  }

  const Tree<LabelTarget>& tree_;
  const PointStore& points_;
};

class TreeChecker {
 public:
  TreeChecker(const Tree<LabelTarget>& tree, const PointStore& points, std::int32_t min_samples_split)
      : tree_(tree),
        nodes_(tree.nodes()),
        points_(points),
        min_samples_split_(min_samples_split),
        labels_(tree, points) {}

  void check() {
    require_invariant(tree_.n_points() <= points_.size(), "the tree holds ", tree_.n_points(), " points, the store ",
                      points_.size());
    if (tree_.empty()) {
      require_invariant(tree_.n_points() == 0 && nodes_.size() == 0, "an empty tree has ", tree_.n_points(),
                        " points and ", nodes_.size(), " nodes");
      return;
    }
    const std::size_t n_weights = tree_.measure().weights.size();
    require_invariant(n_weights == nodes_.n_features(), "the measure has ", n_weights, " weights, the tree ",
                      nodes_.n_features(), " features");
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
    const auto lost = std::ranges::find(seen_, false);
    require_invariant(lost == seen_.end(), "point ", lost - seen_.begin(), " is in no leaf");
    if (tree_.links().are_there()) check_links();
  }

 private:
  // Parents before children, each node exactly once.
  void order_nodes() {
    order_.push_back(kRoot);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      require_node(order_.size() <= nodes_.size(), order_[i], "more nodes are linked than the ", nodes_.size(),
                   " stored");
      const Node& node = nodes_[order_[i]];
      if (node.is_leaf()) continue;
      for (const NodeIndex child : {node.left, node.right()}) {
        require_node(child > kRoot && static_cast<std::size_t>(child) < nodes_.size(), order_[i], "child ", child,
                     " is outside (0, ", nodes_.size(), ")");
        order_.push_back(child);
      }
    }
    require_invariant(order_.size() == nodes_.size(), "the root reaches ", order_.size(), " of ", nodes_.size(),
                      " nodes");
  }

  void check_leaf(NodeIndex j) {
    const Node& leaf = nodes_[j];
    require_node(nodes_.split_time(j) == tree_.lifetime(), j, "the split time of the leaf is ", nodes_.split_time(j),
                 ", the lifetime is ", tree_.lifetime());
    require_node(leaf.first_point != kNoSlot, j, "the leaf has no points");
    std::vector<Slot> slots;
    std::vector<float> lower, upper;
    std::int32_t n = 0;
    for (Slot slot = leaf.first_point; slot != kNoSlot; slot = tree_.next_point(slot), ++n) {
      require_node(slot >= 0 && static_cast<std::size_t>(slot) < seen_.size(), j, "point ", slot, " is outside [0, ",
                   seen_.size(), ")");
      require_node(!seen_[static_cast<std::size_t>(slot)], j, "point ", slot, " is in two leaves or twice in one");
      seen_[static_cast<std::size_t>(slot)] = true;
      slots.push_back(slot);
      if (n == 0) {
        lower.assign(points_.row(slot), points_.row(slot) + nodes_.n_features());
        upper = lower;
      }
      include(lower.data(), upper.data(), points_.box(slot), nodes_.n_features());
    }
    require_node(n == leaf.n_points, j, "the leaf counts ", leaf.n_points, " points, but lists ", n);
    n_below_[static_cast<std::size_t>(j)] = n;
    require_box(j, {lower.data(), upper.data()});

    const bool all_equal = labels_.check_leaf(j, slots);
    const bool may_pause = all_equal || n < min_samples_split_;
    require_node(tree_.target().is_paused(j, n) == may_pause, j,
                 may_pause ? "the leaf must be paused, but is not" : "the leaf is paused, but must not be");
    if (!may_pause && tree_.lifetime() == kInfinity) {
      const BoxView box{lower.data(), upper.data()};
      const double rate = linear_dimension(tree_.measure().weights.data(), box, nodes_.n_features());
      require_node(rate < kNoRate, j, "the leaf is not paused and has linear dimension ", rate, ", but is not cut");
    }
  }

  // Links to parents and to the point before must match the links to children and to the next point.
  void check_links() {
    for (const NodeIndex j : order_) {
      if (nodes_[j].is_leaf()) {
        Slot before = ~j;
        for (Slot slot = nodes_[j].first_point; slot != kNoSlot; slot = tree_.next_point(slot)) {
          require_node(tree_.links().before(slot) == before, j, "the link back from point ", slot, " is ",
                       tree_.links().before(slot), " instead of ", before);
          before = slot;
        }
      } else {
        const NodeIndex parent = tree_.links().parent(nodes_[j].left);
        require_node(parent == j, nodes_[j].left, "the parent is ", parent, " instead of ", j);
      }
    }
    require_node(tree_.links().parent(kRoot) == kNoNode, kRoot, "the root has the parent ",
                 tree_.links().parent(kRoot));
  }

  void check_internal(NodeIndex j) {
    const Node& node = nodes_[j];
    const NodeIndex left = node.left, right = node.right();
    const double split_time = nodes_.split_time(j);
    require_node(split_time >= 0.0 && split_time < tree_.lifetime(), j, "the split time ", split_time,
                 " is outside [0, lifetime = ", tree_.lifetime(), ")");
    require_node(split_time <= nodes_.split_time(left) && split_time <= nodes_.split_time(right), j, "the split time ",
                 split_time, " is after those of the children, ", nodes_.split_time(left), " and ",
                 nodes_.split_time(right));
    std::int32_t& n = n_below_[static_cast<std::size_t>(j)];
    n = n_below_[static_cast<std::size_t>(left)] + n_below_[static_cast<std::size_t>(right)];
    require_node(node.split_dimension >= 0 && static_cast<std::size_t>(node.split_dimension) < nodes_.n_features(), j,
                 "the split dimension ", node.split_dimension, " is outside [0, ", nodes_.n_features(), ")");
    const std::size_t d = static_cast<std::size_t>(node.split_dimension);
    require_node(tree_.measure().weights[d] > 0.0, j, "the split dimension ", d, " has weight 0");
    const BoxView left_box = tree_.box(left, points_, left_buffer_),
                  right_box = tree_.box(right, points_, right_buffer_);
    require_node(left_box.upper[d] <= node.split_location && node.split_location < right_box.lower[d], j,
                 "the split location ", node.split_location, " is outside [", left_box.upper[d], ", ",
                 right_box.lower[d], ") between the children's boxes");

    std::vector<float> lower(left_box.lower, left_box.lower + nodes_.n_features());
    std::vector<float> upper(left_box.upper, left_box.upper + nodes_.n_features());
    include(lower.data(), upper.data(), right_box, nodes_.n_features());
    require_box(j, {lower.data(), upper.data()});

    const bool all_equal = labels_.check_internal(j, left, right);
    require_node(!all_equal, j, "the node cuts a block whose points all have the same label");
    require_node(n >= min_samples_split_, j, "the node cuts a block of ", n, " points, min_samples_split is ",
                 min_samples_split_);
  }

  void require_box(NodeIndex j, BoxView expected) {
    const std::int32_t n_below = n_below_[static_cast<std::size_t>(j)];
    require_node(nodes_.has_box(j) == (n_below > kFewPoints), j, nodes_.has_box(j) ? "a box" : "no box",
                 " is stored for ", n_below, " points; boxes are stored for more than ", kFewPoints);
    const BoxView box = tree_.box(j, points_, left_buffer_);
    const std::size_t n = nodes_.n_features();
    for (std::size_t d = 0; d < n; ++d) {
      require_node(box.lower[d] == expected.lower[d] && box.upper[d] == expected.upper[d], j, "the box is [",
                   box.lower[d], ", ", box.upper[d], "] in feature ", d, ", the points span [", expected.lower[d], ", ",
                   expected.upper[d], "]");
    }
  }

  const Tree<LabelTarget>& tree_;
  const NodeStore& nodes_;
  const PointStore& points_;
  std::int32_t min_samples_split_;
  LabelChecker labels_;
  BoxBuffer left_buffer_, right_buffer_;
  std::vector<NodeIndex> order_;
  std::vector<std::int32_t> n_below_;
  std::vector<bool> seen_;
};

void check_labels(const Forest& forest) {
  for (const Label label : forest.points().labels()) {
    require_invariant(label >= 0 && label < forest.current_n_classes(), "the stored label ", label, " is outside [0, ",
                      forest.current_n_classes(), ")");
  }
}

// A point counts as often as it has arrivals, and it is found by its contents.
void check_counts(const PointStore& points, const Arrivals& arrivals) {
  std::vector<std::int32_t> counts(points.size(), 0);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Slot point = arrivals.point(static_cast<Slot>(i));
    require_invariant(point >= 0 && static_cast<std::size_t>(point) < points.size(), "arrival ", i,
                      " counts for point ", point, ", there are ", points.size());
    ++counts[static_cast<std::size_t>(point)];
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    require_invariant(points.count(slot) == counts[i], "point ", i, " counts ", points.count(slot), " times, it has ",
                      counts[i], " arrivals");
    const auto hash = PointStore::hash_of(points.row_of(slot), points.label(slot));
    require_invariant(points.find(points.row_of(slot), points.label(slot), hash) == slot, "point ", i, " is not found");
  }
}

}  // namespace

void check_invariants(const Tree<LabelTarget>& tree, const PointStore& points, std::int32_t min_samples_split) {
  TreeChecker(tree, points, min_samples_split).check();
}

void check_invariants(const Forest& forest) {
  forest.read([](const Forest& f) {
    check_labels(f);
    const std::size_t n_arrivals = f.arrivals().size(), n_serials = f.tenure().serials().size();
    require_invariant(n_serials == n_arrivals, n_arrivals, " arrivals have ", n_serials, " serials");
    require_invariant(!f.tenure().is_limited() || n_arrivals <= f.options().keep.capacity, n_arrivals,
                      " arrivals are kept, the capacity is ", f.options().keep.capacity);
    check_counts(f.points(), f.arrivals());
    for (std::size_t i = 0; i < f.trees().size(); ++i) {
      try {
        check_invariants(f.trees()[i], f.points(), f.options().min_samples_split);
      } catch (const std::logic_error& error) {
        throw std::logic_error(text_of("tree ", i, ", ", error.what()));
      }
    }
  });
}

}  // namespace onlineforest::mondrian
