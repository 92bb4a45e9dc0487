// The relevance of each feature: how much it tells about the labels, estimated on points. Knows no Mondrian tree.
//
// Scouts are greedy trees. At each node a few features, drawn uniformly, are tried with one random cut each, and the
// best cut is taken, so that scouts reach places where features tell something only together. Every tried cut counts
// for its feature: its decrease of the impurity minus the decrease that a cut independent of the labels has by chance.
// So an irrelevant feature has a relevance of at most 0 in expectation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/call.hpp"
#include "base/rng.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/points/point_store.hpp"

namespace onlineforest::mondrian {

// Draws up to `n` of the slots [0, n_points) without replacement, in random order.
std::vector<Slot> draw_slots(std::size_t n_points, std::size_t n, Rng& rng);

// Returns the mean over scouts, each of which sees some of the points. Positive where there is evidence. `columns` are
// those of all points.
std::vector<double> measure_relevance(const PointStore& points, const Columns& columns, std::int32_t n_classes,
                                      std::uint64_t seed, const Call& call);

}  // namespace onlineforest::mondrian
