// What must be true of every forest after every call, checked from scratch.
#pragma once

#include "forest.hpp"

namespace onlineforest {

// Throws std::logic_error that names the first thing found wrong: links, times, cuts, boxes, label sets, counts,
// point lists, pausing. Costs about as much as reading the forest once.
void check_invariants(const LabelForest& forest);

// The same for one tree that holds the first tree.n_points() of the points.
void check_invariants(const Tree<LabelTarget>& tree, const PointStore<Label>& points, std::int32_t min_samples_split);

}  // namespace onlineforest
