// Checks of a state that need no forest: lengths of arrays, ranges of numbers, indices of measures. Does not know how a
// forest is built.
#pragma once

#include <cstddef>
#include <vector>

#include "mondrian/state/archive.hpp"

namespace onlineforest::mondrian {

// Trees by the index of their measure. An empty tree has no measure and is in none of the lists.
using TreesOfMeasures = std::vector<std::vector<std::size_t>>;

// Throws std::invalid_argument that names the first array, value and bound found wrong. The nodes of trees are not
// checked here: TreeBuilder checks them while it builds a tree.
TreesOfMeasures check_state(const ForestState& state);

}  // namespace onlineforest::mondrian
