#include "mondrian/state/tree_arrays.hpp"
#include "mondrian/tree/boxes.hpp"

#include <limits>

namespace onlineforest::mondrian {

namespace {

// All but what the target keeps.
void set_nodes(TreeArrays& arrays, const Tree<LabelTarget>& tree, const PointStore& points) {
  const NodeStore& nodes = tree.nodes();
  const std::size_t n = nodes.size(), n_features = nodes.n_features();
  arrays.n_nodes = n;
  arrays.parent.assign(n, kNoNode);
  arrays.n_points.assign(n, 0);
  arrays.lower.reserve(n * n_features);
  arrays.upper.reserve(n * n_features);
  BoxBuffer buffer;
  for (std::size_t i = 0; i < n; ++i) {
    const NodeIndex j = static_cast<NodeIndex>(i);
    const Node& node = nodes[j];
    const bool leaf = node.is_leaf();
    if (!leaf) {
      arrays.parent[static_cast<std::size_t>(node.left)] = j;
      arrays.parent[static_cast<std::size_t>(node.right())] = j;
    }
    arrays.left.push_back(leaf ? kNoNode : node.left);
    arrays.right.push_back(leaf ? kNoNode : node.right());
    arrays.split_dimension.push_back(node.split_dimension);
    arrays.split_location.push_back(leaf ? std::numeric_limits<float>::quiet_NaN() : node.split_location);
    arrays.split_time.push_back(nodes.split_time(j));
    const BoxView box = tree.box(j, points, buffer);
    arrays.lower.insert(arrays.lower.end(), box.lower, box.lower + n_features);
    arrays.upper.insert(arrays.upper.end(), box.upper, box.upper + n_features);
  }
  if (n == 0) return;
  const std::vector<NodeIndex> order = parents_first(nodes);
  for (auto j = order.rbegin(); j != order.rend(); ++j) {
    const std::size_t i = static_cast<std::size_t>(*j);
    if (nodes[*j].is_leaf()) arrays.n_points[i] = nodes[*j].n_points;
    if (arrays.parent[i] != kNoNode) arrays.n_points[static_cast<std::size_t>(arrays.parent[i])] += arrays.n_points[i];
  }
}

}  // namespace

TreeArrays tree_arrays(const Forest& forest, std::size_t index) {
  return forest.read([&](const auto& f) {
    const Tree<LabelTarget>& tree = f.trees().at(index);
    TreeArrays arrays;
    set_nodes(arrays, tree, f.points());
    const std::size_t n_classes = static_cast<std::size_t>(forest.current_n_classes());
    arrays.n_classes = n_classes;
    arrays.count.resize(arrays.n_nodes * n_classes);
    arrays.labels.resize(arrays.n_nodes * n_classes);
    const LabelSets& sets = tree.target().sets();
    for (std::size_t i = 0; i < arrays.n_nodes; ++i) {
      const NodeIndex j = static_cast<NodeIndex>(i);
      const Node& node = tree.nodes()[j];
      const auto at = [&](Label label) { return i * n_classes + static_cast<std::size_t>(label); };
      if (node.is_leaf()) {
        tree.target().for_each_count(j, node.n_points,
                                     [&](Label label, LabelTarget::Count count) { arrays.count[at(label)] = count; });
      } else {
        sets.for_each(j, [&](Label label) { arrays.count[at(label)] = 1.0; });
        sets.for_each_common(node.left, node.right(), [&](Label label) { arrays.count[at(label)] = 2.0; });
      }
      sets.for_each(j, [&](Label label) { arrays.labels[at(label)] = 1; });
    }
    return arrays;
  });
}

}  // namespace onlineforest::mondrian
