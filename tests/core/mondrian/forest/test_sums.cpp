#include "mondrian/forest/sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

TEST_CASE("items are taken in the order of their numbers, whatever the order of arrival") {
  std::array<std::size_t, 6> arrival{};
  std::iota(arrival.begin(), arrival.end(), std::size_t{0});
  do {
    InOrder<std::vector<int>> in_order;
    std::vector<int> taken;
    for (const std::size_t number : arrival) {
      std::vector<int> item(1, static_cast<int>(number));
      in_order.hand_in(number, item, [&](std::size_t n, const std::vector<int>& its) {
        REQUIRE(its.size() == 1);
        CHECK(its.front() == static_cast<int>(n));
        taken.push_back(its.front());
      });
    }
    CHECK(taken.size() == arrival.size());
    CHECK(std::ranges::is_sorted(taken));
  } while (std::ranges::next_permutation(arrival).found);
}

TEST_CASE("every tree is added once to every row, with any number of threads") {
  for (const std::size_t n_trees : {1, 3, 4, 9, 50}) {
    for (const std::size_t n_rows : {0, 1, 2, 65, 20'000}) {
      std::vector<double> first;
      for (const std::size_t n_threads : {1, 2, 5}) {
        const std::vector<double> sums = sum_over_trees(
            {n_rows, n_trees, 2}, Call(n_threads), [] { return 0; },
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

// Numbers of very different sizes, so that the order of addition matters.
double number_of(std::size_t tree, std::size_t i) {
  return std::pow(10.0, static_cast<double>((tree * 7 + i * 3) % 11) - 5.0) / static_cast<double>(tree + i + 3);
}

TEST_CASE("trees are added up in eight groups at most, each of four trees at least, to the bit") {
  constexpr std::size_t width = 2;
  std::size_t n_plain_differ = 0;
  for (const std::size_t n_rows : {0, 1, 150}) {
    for (const std::size_t n_trees : {1, 3, 4, 9, 37, 60}) {
      const std::vector<double> sums = sum_over_trees(
          {n_rows, n_trees, width}, Call(2), [] { return 0; },
          [](std::size_t begin, std::size_t end, Piece piece, int, double* to, StopProbe&) {
            for (std::size_t t = begin; t < end; ++t) {
              for (std::size_t i = 0; i < width * piece.size(); ++i) to[i] += number_of(t, width * piece.begin + i);
            }
          });
      const std::size_t n_groups = n_trees < 8 ? 1 : n_trees < 32 ? n_trees / 4 : 8;
      std::vector<double> expected(n_rows * width), plain(n_rows * width);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        for (std::size_t group = 0; group < n_groups; ++group) {
          double sum = 0.0;
          for (std::size_t t = group * n_trees / n_groups; t < (group + 1) * n_trees / n_groups; ++t) {
            sum += number_of(t, i);
            plain[i] += number_of(t, i);
          }
          expected[i] += sum;
        }
      }
      CHECK(sums == expected);
      n_plain_differ += plain != sums;
    }
  }
  CHECK(n_plain_differ > 0);
}

}  // namespace
