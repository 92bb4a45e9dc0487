// Divides rows into pieces, which threads predict in parallel. Must not know trees.
#pragma once

#include <algorithm>
#include <cstddef>

namespace onlineforest::orderfree {

// Answers do not depend on the pieces. A piece is large, so that many rows use a tree while it is in the cache, unless
// the answers need too much memory. If there are fewer pieces than the threads need, several tasks share a piece: each
// asks some of the trees, and the caller adds up their answers.
class Pieces {
 public:
  // `n_bytes` is the memory that a thread needs for the answers of a row. A task asks at least `least_trees` trees. If
  // that is all trees, tasks cannot share a piece, so the pieces are smaller instead.
  Pieces(std::size_t n_rows, std::size_t n_bytes, std::size_t n_trees, std::size_t n_threads, std::size_t least_trees)
      : n_rows_(n_rows),
        n_trees_(n_trees),
        size_(std::min(kMost, std::max(kMostBytes / std::max<std::size_t>(n_bytes, 1), kLeast))),
        n_trees_apart_(std::max<std::size_t>(n_trees / std::max<std::size_t>(n_threads, 1), 1)) {
    if (n_threads <= 1 || n_rows <= 1) return;
    const std::size_t size = std::max(n_rows / (kPerThread * n_threads), kLeast);
    if (least_trees >= n_trees || size >= size_) {
      size_ = std::min(size_, size);
      return;
    }
    const std::size_t n_pieces = parts_of(n_rows, size_);
    size_ = parts_of(n_rows, n_pieces);
    n_groups_ = n_trees / std::max<std::size_t>(least_trees, 1);
    for (std::size_t per_thread = kMostPerThread; per_thread > 0; --per_thread) {
      const std::size_t n_groups = parts_of(per_thread * n_threads, n_pieces);
      if (n_groups > n_groups_) continue;
      n_groups_ =
          n_groups;  // the number of tasks is near a multiple of n_threads, so all threads end at about the same time
      break;
    }
  }

  [[nodiscard]] std::size_t n_rows() const { return n_rows_; }
  [[nodiscard]] std::size_t n() const { return parts_of(n_rows_, size_); }
  [[nodiscard]] std::size_t n_tasks() const { return n() * n_groups_; }
  // Whether each piece has one task, which asks all trees.
  [[nodiscard]] bool are_whole() const { return n_groups_ == 1; }

  // The piece of a task, the rows [begin, begin + size) of this piece, and the number of trees that the task asks.
  [[nodiscard]] std::size_t piece(std::size_t task) const { return task / n_groups_; }
  [[nodiscard]] std::size_t begin(std::size_t task) const { return piece(task) * size_; }
  [[nodiscard]] std::size_t size(std::size_t task) const { return std::min(size_, n_rows_ - begin(task)); }
  [[nodiscard]] std::size_t n_trees(std::size_t task) const { return first_tree(task + 1) - first_tree(task); }
  // The k-th tree that a task asks. Tasks begin with different trees, so that threads do not wait for the same tree.
  [[nodiscard]] std::size_t tree(std::size_t task, std::size_t k) const {
    return are_whole() ? (task * n_trees_apart_ + k) % n_trees_ : (first_tree(task) + k) % n_trees_;
  }

 private:
  static constexpr std::size_t kLeast = 16, kMost = 4096, kMostBytes = std::size_t{1} << 23;
  static constexpr std::size_t kPerThread = 2, kMostPerThread = 6;  // pieces and tasks per thread

  [[nodiscard]] static std::size_t parts_of(std::size_t n, std::size_t size) { return (n + size - 1) / size; }
  // The tasks of one piece ask consecutive ranges of trees. The numbers go on from piece to piece: tree t of piece p
  // has the number p * n_trees + t.
  [[nodiscard]] std::size_t first_tree(std::size_t task) const {
    return task / n_groups_ * n_trees_ + task % n_groups_ * n_trees_ / n_groups_;
  }

  std::size_t n_rows_, n_trees_, size_, n_trees_apart_, n_groups_ = 1;
};

}  // namespace onlineforest::orderfree
