// The interface between a tree and its target. Must not know any kind of target.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.hpp"
#include "mondrian/points/point_store.hpp"
#include "mondrian/tree/node_store.hpp"

namespace onlineforest::mondrian {

// A target keeps a summary of labels per node: of the labels in a leaf, or below an internal node. It also holds the
// pausing rule; PausingRule implements that part.
template <class T>
concept TreeTarget =
    requires(T target, const T& known, NodeIndex j, NodeIndex left, NodeIndex right, std::int32_t n_points,
             std::int32_t by, std::size_t n, Slot slot, std::span<const Slot> slots, const Node& node,
             const NodeStore& nodes, const PointStore& points, Label label) {
      // A target of the same options without nodes.
      { known.empty_copy() } -> std::same_as<T>;

      // Allocates memory for n nodes in advance.
      target.expect_nodes(n);
      // Extends the target to n nodes; new nodes are empty.
      target.reserve_nodes(n);
      // Removes all nodes but the first n; they must be empty.
      target.truncate(n);

      // The pausing rule.
      { known.is_small(n) } -> std::same_as<bool>;
      { known.may_pause(points, slots) } -> std::same_as<bool>;
      { known.is_paused(j, n_points) } -> std::same_as<bool>;
      { known.stays_paused(j, node, points, slots) } -> std::same_as<bool>;
      { known.may_join(nodes, j, points) } -> std::same_as<bool>;
      // Whether a leaf holds different labels.
      { known.is_mixed(j) } -> std::same_as<bool>;

      // Adds the points `slots` to leaf j, which holds n_points.
      target.add_to_leaf(j, n_points, points, slots);
      // Removes the point `slot` from leaf j; n_points > 0 remain.
      target.remove_from_leaf(j, points, slot, n_points);
      // Follows a change of how often a point of this label counts in leaf j, which holds n_points.
      target.add_count(j, n_points, label, by);
      // Empties a node.
      target.clear(j);
      // Moves the summary of the first node to the second, which is empty.
      target.move(left, right);

      // Computes internal node j from its children.
      target.combine(j, left, right);
      // Adds the labels of points that pass through internal node j.
      target.absorb(j, points, slots);
      // Adds one label to internal node j. Returns whether the node has changed; if not, no node above changes.
      { target.absorb_one(j, label) } -> std::same_as<bool>;
      // Updates internal node j after a point of this label was removed below it. Returns whether nodes above j may
      // change too.
      { target.remove_one(j, left, right, label) } -> std::same_as<bool>;

      // Number of labels kept of a node.
      { known.size(j) } -> std::convertible_to<std::size_t>;
      { known.nbytes() } -> std::same_as<std::size_t>;
    };

}  // namespace onlineforest::mondrian
