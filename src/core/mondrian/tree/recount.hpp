// Following changes of how often points count. Must not know boxes or cuts: they depend on the set of points alone.
#pragma once

#include <span>

#include "mondrian/tree/paths.hpp"
#include "mondrian/tree/tree.hpp"

namespace onlineforest::mondrian {

template <TreeTarget Target>
void Tree<Target>::recount(std::span<const Recounted> changes, const PointStore& points, StopProbe& stop) {
  try {
    for (const auto& [slot, by] : changes) {
      const NodeIndex leaf = find_leaf(nodes_, points.row(slot));
      target_.add_count(leaf, nodes_[leaf].n_points, points.label(slot), by);
      stop.tick(n_features() * kUsualDepth);
    }
  } catch (...) {
    clear();
    throw;
  }
}

}  // namespace onlineforest::mondrian
