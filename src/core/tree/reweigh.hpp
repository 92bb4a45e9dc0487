// Following changes of the weights of points. Must not know boxes or cuts: they depend on the set of points alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tree/paths.hpp"
#include "tree/tree.hpp"

namespace onlineforest {

template <TreeTarget Target>
void Tree<Target>::reweigh(std::span<const Reweighed> changes, const Points& points, Workspace& work, StopProbe& stop) {
  try {
    if constexpr (Target::kFromChildren) {
      reweigh_leaves(changes, points, work, stop);
    } else {
      for (const auto& [slot, by] : changes) {
        work.path.clear();
        find_path(nodes_, kRoot, points.row(slot), work.path);
        const NodeIndex leaf = work.path.back();
        target_.add_weight(leaf, nodes_[leaf].n_points, points.value(slot), by);
        if (target_.is_from_children()) set_passed(work.path.size() - 1, points.value(slot), work);
        stop.tick(n_features() * kUsualDepth);
      }
    }
  } catch (...) {
    clear();
    throw;
  }
}

// Computes each leaf once, however many of its points have changed.
template <TreeTarget Target>
void Tree<Target>::reweigh_leaves(std::span<const Reweighed> changes, const Points& points, Workspace& work,
                                  StopProbe& stop) {
  struct OfLeaf {
    NodeIndex leaf;
    Slot slot;
    Weight by;
  };
  std::vector<OfLeaf> all;
  all.reserve(changes.size());
  for (const auto& [slot, by] : changes) {
    all.push_back({find_leaf(nodes_, points.row(slot)), slot, by});
    stop.tick(kUsualDepth);
  }
  std::ranges::sort(all, {}, &OfLeaf::leaf);
  for (std::size_t i = 0; i < all.size();) {
    const NodeIndex leaf = all[i].leaf;  // no structured binding: Clang before 16 cannot capture one
    const Slot slot = all[i].slot;
    Weight by = 0;
    for (; i < all.size() && all[i].leaf == leaf; ++i) by += all[i].by;
    target_.reweigh_leaf(leaf, points, by, [&] {
      find_points(leaf, work.spare);
      stop.tick(8 * work.spare.size());
      return std::span<const Slot>(work.spare);
    });
    work.path.clear();
    find_path(nodes_, kRoot, points.row(slot), work.path);
    set_passed(work.path.size() - 1, points.value(slot), work);
    stop.tick(n_features() * kUsualDepth);
  }
}

}  // namespace onlineforest
