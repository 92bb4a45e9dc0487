// Scratch memory for growing, extending and restricting trees. Must not know targets.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/types.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/process/bounds.hpp"
#include "mondrian/process/rates.hpp"
#include "mondrian/tree/paths.hpp"

namespace onlineforest::mondrian {

// Belongs to one worker, which reuses it for tree after tree.
struct Workspace {
  // Extend `node` by the points order[begin, end). `birth_time` is the split time of its parent. `clock` is exponential
  // of rate 1; the nodes above have already run it down by their rates times durations.
  struct Task {
    NodeIndex node;
    std::size_t begin, end;
    double birth_time, clock;
  };
  // Sample `node` from the points order[begin, end). Its bounds are those at `mark`, and `range` in `dimension`.
  struct Block {
    NodeIndex node;
    std::size_t begin, end;
    double birth_time;
    Bounds::Mark mark;
    std::size_t dimension;
    Coordinates::Range range;
  };
  std::vector<Slot> order, spare;
  std::vector<NodeIndex> unset;  // new internal nodes without box and contents; parents before children
  std::vector<Task> tasks;
  std::vector<Block> blocks;
  Path path;
  std::array<Path, kSideBySide> paths;
  std::vector<double> rates;  // per node of `path`
  NestedSeparation separation;
  BoxBuffer inner, outer;
  std::vector<Bound> moved_bounds;
  Bounds bounds;
  std::size_t n_nodes_expected = 0;  // by the next tree of a forest: slightly more than the last tree has
  bool may_stop = false;             // whether the current work may be abandoned half done
};

}  // namespace onlineforest::mondrian
