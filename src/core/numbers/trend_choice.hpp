// Chooses how many knots per feature a trend gets. Knows nothing of trees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/stop.hpp"
#include "points/point_store.hpp"

namespace onlineforest {

inline constexpr std::uint64_t kSeedOfTrend = 0x7472'656e'6400'0000u;  // apart from the seeds of trees and trials

// The largest number of knots that predicts tested points clearly better than fewer knots; 1 is a constant trend.
std::size_t best_knots(const PointStore<double>& points, std::uint64_t seed, StopProbe& stop);

}  // namespace onlineforest
