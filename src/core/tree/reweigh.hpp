// Following changes of the weights of points. Must not know boxes or cuts: they depend on the set of points alone.
#pragma once

#include <cstddef>
#include <span>

#include "tree/paths.hpp"
#include "tree/tree.hpp"

namespace onlineforest {

template <TreeTarget Target>
void Tree<Target>::reweigh(std::span<const Reweighed> changes, const Points& points, Workspace& work, StopProbe& stop) {
  try {
    for (const auto& [slot, by] : changes) {
      work.path.clear();
      find_path(nodes_, kRoot, points.row(slot), work.path);
      const NodeIndex leaf = work.path.back();
      if constexpr (Target::kFromChildren) {
        find_points(leaf, work.spare);
        target_.set_leaf(leaf, points, work.spare);
        stop.tick(8 * work.spare.size());
      } else {
        target_.add_weight(leaf, nodes_[leaf].n_points, points.value(slot), by);
      }
      if (target_.is_from_children()) set_passed(work.path.size() - 1, points.value(slot), work);
      stop.tick(n_features() * kUsualDepth);
    }
  } catch (...) {
    clear();
    throw;
  }
}

}  // namespace onlineforest
