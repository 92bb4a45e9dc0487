// The separation rate of a row from a box over some groups of features: the inner loop of predictions with many
// features, compiled for several instruction sets. Must not know trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mondrian/points/box.hpp"

namespace onlineforest::mondrian {

// Returns the sum over the groups of the weighted distances of the row from the box; group g holds the simd::kWidth
// dimensions from simd::kWidth g on. Keeps the groups in which the row is outside the box, in their order, and sets
// `n_groups` to their number.
using GroupedRate = double (*)(const double* weights, BoxView box, const float* row, std::uint32_t* groups,
                               std::size_t& n_groups);

// One function per instruction set that this processor has, the fastest last. All return the same bits.
[[nodiscard]] std::span<const GroupedRate> grouped_rates();

}  // namespace onlineforest::mondrian
