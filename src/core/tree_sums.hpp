// Sums over the trees of a forest, on several threads, and yet the same to the last bit for any number of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "parallel.hpp"

namespace onlineforest {

struct SumShape {
  std::size_t n_rows, n_trees;
  std::size_t width;  // numbers per row
};

struct Piece {
  std::size_t begin, end;  // rows

  std::size_t size() const { return end - begin; }
};

// Takes items by number, in the order of the numbers, whichever is ready first.
template <class Item>
class InOrder {
 public:
  // Calls take(number, item) for this item and those that waited for it, or keeps it until it is its turn. The item is
  // left for another use.
  template <class Take>
  void hand_in(std::size_t number, Item& item, Take take) {
    const std::lock_guard lock(mutex_);
    if (number != next_) {
      waiting_.emplace(number, std::exchange(item, Item()));
      return;
    }
    take(next_++, item);
    for (; !waiting_.empty() && waiting_.begin()->first == next_; waiting_.erase(waiting_.begin())) {
      take(next_++, waiting_.begin()->second);
    }
  }

 private:
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::map<std::size_t, Item> waiting_;
};

// Returns n_rows x width sums of what add_trees(begin, end, piece, state, sums, stop) adds to `sums`, piece.size() x
// width, for the trees [begin, end).
// Each worker has a state of its own.
//
// The trees are added up in groups, and then the groups. What a thread does at a time is one group of trees on a piece
// of the rows. Large pieces share the way down a tree; trees that no other thread looks at share the cache.
template <class MakeState, class AddTrees>
std::vector<double> sum_over_trees(SumShape shape, std::size_t n_threads, StopSignal& signal, MakeState make_state,
                                   AddTrees add_trees) {
  // The groups are part of the result, in its last bits: never let them depend on the threads.
  constexpr std::size_t most_groups = 8, fewest_trees = 4;
  constexpr std::size_t fewest_rows = 64, most_rows = 8192, tasks_per_thread = 4;
  const std::size_t n_groups = std::clamp<std::size_t>(shape.n_trees / fewest_trees, 1, most_groups);
  const std::size_t n_parts = std::max<std::size_t>(tasks_per_thread * n_threads / n_groups, 1);
  const std::size_t n_together = std::clamp((shape.n_rows + n_parts - 1) / n_parts, fewest_rows, most_rows);
  const std::size_t n_pieces = (shape.n_rows + n_together - 1) / n_together;
  const auto piece_of = [&](std::size_t task) {
    const std::size_t begin = task / n_groups * n_together;
    return Piece{begin, std::min(begin + n_together, shape.n_rows)};
  };

  std::vector<double> result(shape.n_rows * shape.width, 0.0);
  InOrder<std::vector<double>> groups;
  parallel_for(n_pieces * n_groups, n_threads, signal, [&] {
    return [&, state = make_state(), sums = std::vector<double>()](std::size_t task, StopProbe& stop) mutable {
      const Piece piece = piece_of(task);
      const std::size_t group = task % n_groups;
      sums.assign(piece.size() * shape.width, 0.0);
      add_trees(group * shape.n_trees / n_groups, (group + 1) * shape.n_trees / n_groups, piece, state, sums.data(),
                stop);
      groups.hand_in(task, sums, [&](std::size_t of_task, const std::vector<double>& more) {
        double* to = result.data() + piece_of(of_task).begin * shape.width;
        for (std::size_t i = 0; i < more.size(); ++i) to[i] += more[i];
      });
    };
  });
  return result;
}

}  // namespace onlineforest
