// The interface between a tree and its target. Must not know any kind of target.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.hpp"
#include "points/point_store.hpp"
#include "points/weight.hpp"
#include "process/measure.hpp"
#include "tree/node_store.hpp"

namespace onlineforest {

// A target keeps a summary of values per node: of the values in a leaf, or below an internal node. It also holds the
// pausing rule; PausingRule implements that part.
//
// is_from_children() says how an internal node follows when a value arrives below it. true: `combine` computes it again
// from its children. false: the value is absorbed on its path downwards. kFromChildren says that it is always true, and
// that summaries depend on the measure.
// kKeepsOrder says whether the summary of a leaf depends on the order in which its values were added.
template <class T>
concept TreeTarget =
    requires(T target, const T& known, NodeIndex j, NodeIndex left, NodeIndex right, std::int32_t n_points, double time,
             std::size_t n, Slot slot, std::span<const Slot> slots, std::span<const Slot> (*others)(), const Node& node,
             const NodeStore& nodes, const PointStore<typename T::Value>& points, const typename T::Value& value,
             const MeasureWith<typename T::Prior>& measure) {
      { T::kFromChildren } -> std::convertible_to<bool>;
      { known.is_from_children() } -> std::same_as<bool>;
      { T::kKeepsOrder } -> std::convertible_to<bool>;

      // A target of the same options without nodes.
      { known.empty_copy() } -> std::same_as<T>;
      // Sets the measure, which must outlive its use. Every summary is out of date afterwards if kFromChildren.
      target.set_measure(measure);
      // Sets the split time of a node.
      target.set_time(j, time);

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
      // Whether a leaf holds different values.
      { known.is_mixed(j) } -> std::same_as<bool>;

      // Adds the points `slots` to leaf j, which holds n_points; `slot` is one of those it holds.
      target.add_to_leaf(j, n_points, slot, points, slots);
      // Removes the point `slot` from leaf j; n_points > 0 remain. others() returns their slots, oldest first.
      target.remove_from_leaf(j, points, slot, n_points, others);
      // Empties a node.
      target.clear(j);
      // Moves the summary of the first node to the second, which is empty.
      target.move(left, right);

      // Computes internal node j from its children.
      target.combine(j, left, right);
      // Updates internal node j after a point of this value was removed below it. Returns whether nodes above j may
      // change too.
      { target.remove_one(j, left, right, value) } -> std::same_as<bool>;

      // Number of values kept of a node.
      { known.size(j) } -> std::convertible_to<std::size_t>;
      { known.nbytes() } -> std::same_as<std::size_t>;
    } &&
    (!T::kFromChildren ||
     requires(T target, NodeIndex j, Weight by, std::span<const Slot> (*all)(),
              const PointStore<typename T::Value>& points) {
       // Follows a change of the total weight of leaf j. all() returns its points, oldest first.
       target.reweigh_leaf(j, points, by, all);
     }) &&
    (T::kFromChildren || requires(T target, NodeIndex j, std::int32_t n_points, Weight by, std::span<const Slot> slots,
                                  const PointStore<typename T::Value>& points, const typename T::Value& value) {
      // Follows a change of the weight of a point of this value in leaf j, which holds n_points.
      target.add_weight(j, n_points, value, by);
      // Adds the values of points that pass through internal node j.
      target.absorb(j, points, slots);
      // Adds one value to internal node j. Returns whether the node has changed; if not, no node above changes.
      { target.absorb_one(j, value) } -> std::same_as<bool>;
    });

}  // namespace onlineforest
