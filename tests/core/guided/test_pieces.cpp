#include "guided/pieces.hpp"

#include <set>

#include "testing.hpp"

using namespace onlineforest::guided;

namespace {

TEST_CASE("each row is in one piece, and each piece asks each tree once") {
  for (const std::size_t n_rows : {0u, 1u, 15u, 16u, 1000u, 10'007u}) {
    for (const std::size_t n_threads : {1u, 2u, 16u, 1000u}) {
      constexpr std::size_t n_trees = 7;
      const Pieces pieces(n_rows, n_threads % 3, n_trees, n_threads);
      CHECK(pieces.n_rows() == n_rows);
      std::size_t next = 0;
      for (std::size_t piece = 0; piece < pieces.n(); ++piece) {
        CHECK(pieces.begin(piece) == next);
        CHECK(pieces.size(piece) > 0);
        next += pieces.size(piece);
        std::set<std::size_t> trees;
        for (std::size_t k = 0; k < n_trees; ++k) trees.insert(pieces.tree(piece, k));
        CHECK(trees.size() == n_trees);
        CHECK(*trees.rbegin() < n_trees);
      }
      CHECK(next == n_rows);
    }
  }
}

TEST_CASE("there is a piece for each thread, and threads begin with different trees") {
  const Pieces pieces(1000, 8, 100, 16);
  CHECK(pieces.n() >= 16);
  std::set<std::size_t> trees;
  for (std::size_t piece = 0; piece < 16; ++piece) trees.insert(pieces.tree(piece, 0));
  CHECK(trees.size() == 16);
}

TEST_CASE("answers that take much memory come in small pieces") {
  constexpr std::size_t n_bytes = 80'000;
  const Pieces pieces(100'000, n_bytes, 100, 1);
  CHECK(pieces.size(0) * n_bytes <= std::size_t{1} << 24);
  CHECK(pieces.size(0) >= 16);
  CHECK(Pieces(100'000, 8, 100, 1).size(0) > pieces.size(0));
}

}  // namespace
