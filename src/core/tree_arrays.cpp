#include "tree_arrays.hpp"

#include <limits>

namespace onlineforest {

TreeArrays tree_arrays(const LabelForest& forest, std::size_t index) {
  return forest.read([index](const LabelForest& f) {
    const auto& tree = f.trees().at(index);
    const NodeStore& nodes = tree.nodes();
    const std::size_t n = nodes.size(), n_features = nodes.n_features();
    const std::size_t n_classes = static_cast<std::size_t>(f.current_n_classes());
    TreeArrays arrays;
    arrays.n_nodes = n;
    arrays.parent.assign(n, kNoNode);
    BoxBuffer buffer;
    arrays.n_classes = n_classes;
    arrays.count.resize(n * n_classes);
    arrays.labels.resize(n * n_classes);
    arrays.lower.reserve(n * n_features);
    arrays.upper.reserve(n * n_features);
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
      const BoxView box = tree.box(j, f.points(), buffer);
      arrays.lower.insert(arrays.lower.end(), box.lower, box.lower + n_features);
      arrays.upper.insert(arrays.upper.end(), box.upper, box.upper + n_features);

      const LabelSets& sets = tree.target().sets();
      const auto at = [&](Label label) { return i * n_classes + static_cast<std::size_t>(label); };
      if (leaf) {
        tree.target().for_each_count(j, node.n_points, [&](Label label, std::uint32_t count) {
          arrays.count[at(label)] = static_cast<std::int32_t>(count);
        });
      } else {
        sets.for_each(j, [&](Label label) { arrays.count[at(label)] = 1; });
        sets.for_each_common(node.left, node.right(), [&](Label label) { arrays.count[at(label)] = 2; });
      }
      sets.for_each(j, [&](Label label) { arrays.labels[at(label)] = 1; });
    }
    return arrays;
  });
}

}  // namespace onlineforest
