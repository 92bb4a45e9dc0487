// Checks the invariants that every forest keeps after every call, from scratch. Knows nothing of saved states.
#pragma once

#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"

namespace onlineforest {

// Checks links, times, cuts, boxes, point lists, paused leaves and what targets keep of the values. Throws
// std::logic_error that names the first tree and node found wrong. Costs about as much as reading the forest once.
template <class Forest>
void check_invariants(const Forest& forest);

// Checks one tree that holds the first tree.n_points() of the points.
template <class Target>
void check_invariants(const Tree<Target>& tree, const PointStore<typename Target::Value>& points,
                      std::int32_t min_samples_split);

}  // namespace onlineforest
