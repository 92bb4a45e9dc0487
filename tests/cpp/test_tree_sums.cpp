#include "tree_sums.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "check.hpp"

using namespace onlineforest;

namespace {

// Whatever the order in which items are handed in, they are taken by their numbers.
void test_in_order() {
  std::array<std::size_t, 6> arrival{};
  std::iota(arrival.begin(), arrival.end(), std::size_t{0});
  do {
    InOrder<std::vector<int>> in_order;
    std::vector<int> taken;
    for (const std::size_t number : arrival) {
      std::vector<int> item(1, static_cast<int>(number));
      in_order.hand_in(number, item, [&](std::size_t n, const std::vector<int>& its) {
        CHECK(its.size() == 1 && its.front() == static_cast<int>(n));
        taken.push_back(its.front());
      });
    }
    CHECK(taken.size() == arrival.size() && std::ranges::is_sorted(taken));
  } while (std::ranges::next_permutation(arrival).found);
}

// Every tree is added once to every row, and the sums are the same for any number of threads.
void test_sums() {
  for (const std::size_t n_trees : {1, 3, 4, 9, 50}) {
    for (const std::size_t n_rows : {0, 1, 2, 65, 20'000}) {
      std::vector<double> first;
      for (const std::size_t n_threads : {1, 2, 5}) {
        StopSignal signal({});
        const std::vector<double> sums = sum_over_trees(
            {n_rows, n_trees, 2}, n_threads, signal, [] { return 0; },
            [](std::size_t begin, std::size_t end, Piece piece, int, double* to, StopProbe&) {
              for (std::size_t t = begin; t < end; ++t) {
                for (std::size_t i = 0; i < piece.size(); ++i) {
                  to[2 * i] += 1.0;
                  to[2 * i + 1] += 1.0 / static_cast<double>((t + 1) * (piece.begin + i + 1));
                }
              }
            });
        CHECK(sums.size() == 2 * n_rows);
        for (std::size_t i = 0; i < n_rows; ++i) CHECK(sums[2 * i] == static_cast<double>(n_trees));
        if (n_threads == 1) first = sums;
        CHECK(sums == first);
      }
    }
  }
}

}  // namespace

int main() {
  test_in_order();
  test_sums();
  return testing::finish();
}
