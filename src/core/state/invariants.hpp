// What must be true of every forest after every call, checked from scratch.
#pragma once

#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"

namespace onlineforest {

// Throws std::logic_error that names the first thing found wrong: links, times, cuts, boxes, what is kept of the
// values, point lists, pausing. Costs about as much as reading the forest once.
template <class Forest>
void check_invariants(const Forest& forest);

// The same for one tree that holds the first tree.n_points() of the points.
template <class Target>
void check_invariants(const Tree<Target>& tree, const PointStore<typename Target::Value>& points,
                      std::int32_t min_samples_split);

}  // namespace onlineforest
