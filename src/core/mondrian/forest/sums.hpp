// Sums over the trees of a forest, on several threads, bit-identical for any number of threads. Knows nothing of what
// is summed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "base/parallel.hpp"

namespace onlineforest::mondrian {

struct SumShape {
  std::size_t n_rows, n_trees;
  std::size_t width;  // numbers per row
};

// The rows [begin, end).
struct Piece {
  std::size_t begin, end;

  std::size_t size() const { return end - begin; }
};

// Trees are added up in groups: first tree by tree within each group, then the groups. The grouping decides the last
// bits of the result, so it must not depend on the number of threads.
inline std::size_t n_groups_of(std::size_t n_trees) {
  constexpr std::size_t most_groups = 8, fewest_trees = 4;
  return std::clamp<std::size_t>(n_trees / fewest_trees, 1, most_groups);
}

// Returns the sums over all trees, n_rows x width. For each piece of the rows and each group, with trees [begin, end),
// calls add_trees(begin, end, piece, state, sums, stop), which adds to `sums`, piece.size() x width. Each thread has
// its own state.
//
// Rows of a large piece share the descent through a tree; a tree that only one thread visits stays in its cache.
template <class MakeState, class AddTrees>
std::vector<double> sum_over_trees(SumShape shape, const Call& call, MakeState make_state, AddTrees add_trees) {
  struct PieceSums {
    Piece piece;
    std::vector<double> sums;
  };
  constexpr std::size_t fewest_rows = 64, most_rows = 8192, tasks_per_thread = 4;
  const std::size_t n_groups = n_groups_of(shape.n_trees);
  const std::size_t n_wanted = std::max<std::size_t>(tasks_per_thread * call.n_threads() / n_groups, 1);
  const std::size_t piece_size = std::clamp((shape.n_rows + n_wanted - 1) / n_wanted, fewest_rows, most_rows);
  const std::size_t n_pieces = (shape.n_rows + piece_size - 1) / piece_size;
  std::vector<double> result(shape.n_rows * shape.width, 0.0);
  InOrder<PieceSums> in_order;  // piece by piece, group by group
  call.parallel_for(n_pieces * n_groups, [&] {
    return [&, state = make_state(), sums = std::vector<double>()](std::size_t task, StopProbe& stop) mutable {
      const std::size_t first = task / n_groups * piece_size, group = task % n_groups;
      const Piece piece{first, std::min(first + piece_size, shape.n_rows)};
      sums.assign(piece.size() * shape.width, 0.0);
      add_trees(group * shape.n_trees / n_groups, (group + 1) * shape.n_trees / n_groups, piece, state, sums.data(),
                stop);
      PieceSums item{piece, std::move(sums)};
      in_order.hand_in(task, item, [&](std::size_t, const PieceSums& next) {
        double* const to = result.data() + next.piece.begin * shape.width;
        for (std::size_t i = 0; i < next.sums.size(); ++i) to[i] += next.sums[i];
      });
      sums = std::move(item.sums);
    };
  });
  return result;
}

}  // namespace onlineforest::mondrian
