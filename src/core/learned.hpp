// What is learned about the measure from labelled points: how much each feature should weigh, and how much a leaf
// leaves to its parent.
#pragma once

#include <cstdint>

#include "forest.hpp"

namespace onlineforest {

// A function of the points and the options alone; the threads do not matter.
Learned learn_measure(const PointStore<Label>& points, std::int32_t n_classes, const ForestOptions& options,
                      std::size_t n_threads, StopSignal& signal);

}  // namespace onlineforest
