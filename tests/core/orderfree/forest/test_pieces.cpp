#include "orderfree/forest/pieces.hpp"

#include <set>
#include <utility>

#include "testing.hpp"

using namespace onlineforest::orderfree;

namespace {

TEST_CASE("each row meets each tree once") {
  for (const std::size_t n_rows : {0u, 1u, 15u, 16u, 1000u, 10'007u}) {
    for (const std::size_t n_threads : {1u, 2u, 16u, 1000u}) {
      for (const std::size_t least_trees : {1u, 3u, 7u}) {
        constexpr std::size_t n_trees = 7;
        const Pieces pieces(n_rows, n_threads % 3, n_trees, n_threads, least_trees);
        CHECK(pieces.n_rows() == n_rows);
        std::size_t n_met = 0;
        std::set<std::pair<std::size_t, std::size_t>> met;  // first rows of pieces, and trees
        for (std::size_t task = 0; task < pieces.n_tasks(); ++task) {
          CHECK(pieces.size(task) > 0);
          CHECK(pieces.begin(task) + pieces.size(task) <= n_rows);
          CHECK(pieces.begin(task) == pieces.piece(task) * pieces.size(0));
          CHECK(pieces.piece(task) < pieces.n());
          CHECK(pieces.n_trees(task) >= least_trees);
          for (std::size_t k = 0; k < pieces.n_trees(task); ++k) {
            CHECK(pieces.tree(task, k) < n_trees);
            CHECK(met.emplace(pieces.begin(task), pieces.tree(task, k)).second);
          }
          n_met += pieces.size(task) * pieces.n_trees(task);
        }
        CHECK(n_met == n_rows * n_trees);
        CHECK(pieces.are_whole() == (pieces.n_tasks() == pieces.n()));
      }
    }
  }
}

TEST_CASE("there is work for each thread, and threads begin with different trees") {
  for (const std::size_t least_trees : {1u, 4u, 100u}) {
    const Pieces pieces(1000, 8, 100, 16, least_trees);
    CHECK(pieces.n_tasks() >= 16);
    std::set<std::size_t> trees;
    for (std::size_t task = 0; task < 16; ++task) trees.insert(pieces.tree(task, 0));
    CHECK(trees.size() == 16);
  }
}

TEST_CASE("few rows and many threads share pieces, others do not") {
  CHECK(!Pieces(5000, 208, 100, 16, 4).are_whole());
  CHECK(Pieces(5000, 208, 100, 16, 4).n_tasks() % 16 == 0);
  CHECK(Pieces(5000, 208, 100, 1, 4).are_whole());
  CHECK(Pieces(5000, 208, 100, 16, 100).are_whole());
  CHECK(Pieces(1'000'000, 208, 100, 16, 4).are_whole());
  CHECK(Pieces(1, 208, 100, 16, 4).are_whole());
}

TEST_CASE("answers that take much memory come in small pieces") {
  constexpr std::size_t n_bytes = 80'000;
  const Pieces pieces(100'000, n_bytes, 100, 1, 100);
  CHECK(pieces.size(0) * n_bytes <= std::size_t{1} << 24);
  CHECK(pieces.size(0) >= 16);
  CHECK(Pieces(100'000, 8, 100, 1, 100).size(0) > pieces.size(0));
}

}  // namespace
