// Checks the invariants that every forest keeps after every call, from scratch. Knows nothing of saved states.
#pragma once

#include "mondrian/forest/forest.hpp"

namespace onlineforest::mondrian {

// Checks links, times, cuts, boxes, point lists, paused leaves and what targets keep of the labels. Throws
// std::logic_error that names the first tree and node found wrong. Costs about as much as reading the forest once.
void check_invariants(const Forest& forest);

// Checks one tree that holds the first tree.n_points() of the points.
void check_invariants(const Tree<LabelTarget>& tree, const PointStore& points, std::int32_t min_samples_split);

}  // namespace onlineforest::mondrian
