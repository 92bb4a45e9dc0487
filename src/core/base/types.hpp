// Index types and constants that all rooms share. Must not know what they index.
#pragma once

#include <cstdint>
#include <limits>

namespace onlineforest {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Slot = std::int32_t;  // where a point is stored
inline constexpr Slot kNoSlot = -1;

using Serial = std::int64_t;  // arrival number of a point, from 0; never reused

using NodeIndex = std::int32_t;
inline constexpr NodeIndex kNoNode = -1;
inline constexpr NodeIndex kRoot = 0;

using BoxIndex = std::int32_t;
inline constexpr BoxIndex kNoBox = -1;

}  // namespace onlineforest
