// Rows in pieces, which threads predict side by side. Must not know trees.
#pragma once

#include <algorithm>
#include <cstddef>

namespace onlineforest::guided {

// Answers do not depend on the pieces. They are large, so that a tree that was loaded serves many rows, unless many
// threads need more of them or the answers take much memory.
class Pieces {
 public:
  // `n_bytes` is the memory that a thread needs for the answers of a row.
  Pieces(std::size_t n_rows, std::size_t n_bytes, std::size_t n_trees, std::size_t n_threads)
      : n_rows_(n_rows),
        n_trees_(n_trees),
        size_(std::min(kMost, std::max(kMostBytes / std::max<std::size_t>(n_bytes, 1), kLeast))),
        n_trees_apart_(std::max<std::size_t>(n_trees / std::max<std::size_t>(n_threads, 1), 1)) {
    if (n_threads > 1) size_ = std::min(size_, std::max(n_rows / (kPerThread * n_threads), kLeast));
  }

  [[nodiscard]] std::size_t n_rows() const { return n_rows_; }
  [[nodiscard]] std::size_t n() const { return (n_rows_ + size_ - 1) / size_; }
  [[nodiscard]] std::size_t begin(std::size_t piece) const { return piece * size_; }
  [[nodiscard]] std::size_t size(std::size_t piece) const { return std::min(size_, n_rows_ - begin(piece)); }

  // The k-th tree that a piece asks. Threads are far apart, so that they do not wait for the same tree.
  [[nodiscard]] std::size_t tree(std::size_t piece, std::size_t k) const {
    return (piece * n_trees_apart_ + k) % n_trees_;
  }

 private:
  static constexpr std::size_t kLeast = 16, kMost = 4096, kMostBytes = std::size_t{1} << 23;
  static constexpr std::size_t kPerThread = 2;  // pieces, so that all threads end at about the same time

  std::size_t n_rows_, n_trees_, size_, n_trees_apart_;
};

}  // namespace onlineforest::guided
