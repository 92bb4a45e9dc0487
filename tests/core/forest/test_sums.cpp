#include "forest/sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "testing.hpp"

using namespace onlineforest;

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

// Partitions of `n_trees` trees into `n_shards` shards: even, or with most trees in the last, the first or a middle
// one.
std::vector<std::vector<TreeRange>> partitions_of(std::size_t n_trees, std::size_t n_shards) {
  std::vector<std::vector<TreeRange>> partitions(1);
  for (std::size_t i = 0; i < n_shards; ++i) {
    partitions[0].push_back({i * n_trees / n_shards, (i + 1) * n_trees / n_shards});
  }
  for (const std::size_t large : {n_shards - 1, std::size_t{0}, n_shards / 2}) {
    std::vector<TreeRange> shards;
    for (std::size_t i = 0, begin = 0; i < n_shards; ++i) {
      const std::size_t end = begin + (i == large ? n_trees - (n_shards - 1) : 1);
      shards.push_back({begin, end});
      begin = end;
    }
    partitions.push_back(shards);
  }
  return partitions;
}

template <class Use>
void for_each_partition(std::size_t n_trees, Use use) {
  for (std::size_t n_shards = 1; n_shards <= std::min<std::size_t>(n_trees, 7); ++n_shards) {
    for (const auto& shards : partitions_of(n_trees, n_shards)) use(std::span<const TreeRange>(shards));
  }
}

// Each term lies in one group, and so do all trees of a group.
TEST_CASE("the terms of all shards cover every tree once, in order") {
  for (std::size_t n_trees = 1; n_trees <= 60; ++n_trees) {
    std::vector<std::size_t> group_of(n_trees);
    std::size_t next = 0;
    for (const Term& term : terms_of({0, n_trees}, n_trees)) {
      CHECK(term.trees.begin == next);
      CHECK(term.trees.size() >= (n_trees < 4 ? n_trees : 4));
      for (; next < term.trees.end; ++next) group_of[next] = term.group;
    }
    CHECK(next == n_trees);
    for_each_partition(n_trees, [&](std::span<const TreeRange> shards) {
      std::size_t tree = 0;
      for (const TreeRange& shard : shards) {
        for (const Term& term : terms_of(shard, n_trees)) {
          CHECK(term.trees.begin == tree);
          CHECK(term.trees.begin < term.trees.end);
          for (; tree < term.trees.end; ++tree) {
            REQUIRE(tree < n_trees);
            CHECK(group_of[tree] == term.group);
          }
        }
        CHECK(tree == shard.end);
      }
      CHECK(tree == n_trees);
    });
  }
}

// Numbers of very different sizes, so that the order of addition matters.
double number_of(std::size_t tree, std::size_t i) {
  return std::pow(10.0, static_cast<double>((tree * 7 + i * 3) % 11) - 5.0) / static_cast<double>(tree + i + 3);
}

TEST_CASE("the terms of all shards add up to the sums of the whole, to the bit") {
  constexpr std::size_t width = 2;
  const auto make_state = [] { return 0; };
  const auto add_trees = [](std::size_t begin, std::size_t end, Piece piece, int, double* to, StopProbe&) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t i = 0; i < width * piece.size(); ++i) to[i] += number_of(t, width * piece.begin + i);
    }
  };
  std::size_t n_plain_differ = 0, n_sums_of_shards_differ = 0;
  for (const std::size_t n_rows : {0, 1, 150}) {
    for (const std::size_t n_trees : {1, 3, 4, 9, 37, 60}) {
      const SumShape shape{n_rows, n_trees, width};
      const std::vector<double> whole = sum_over_trees(shape, Call(1), make_state, add_trees);
      std::vector<double> plain(n_rows * width);
      for (std::size_t t = 0; t < n_trees; ++t) {
        for (std::size_t i = 0; i < plain.size(); ++i) plain[i] += number_of(t, i);
      }
      n_plain_differ += plain != whole;
      for_each_partition(n_trees, [&](std::span<const TreeRange> shards) {
        std::vector<Term> terms;
        std::vector<std::vector<double>> of_shards;
        std::vector<const double*> numbers;
        std::vector<double> sums_of_shards(n_rows * width);
        for (const TreeRange& shard : shards) {
          const std::vector<Term> own = terms_of(shard, n_trees);
          of_shards.push_back(sum_by_term(own, shape, Call(shards.size() % 3 + 1), make_state, add_trees));
          CHECK(of_shards.back().size() == own.size() * n_rows * width);
          for (std::size_t i = 0; i < own.size(); ++i) {
            numbers.push_back(of_shards.back().data() + i * n_rows * width);
            for (std::size_t k = 0; k < n_rows * width; ++k) sums_of_shards[k] += numbers.back()[k];
          }
          terms.insert(terms.end(), own.begin(), own.end());
        }
        CHECK(add_terms(terms, numbers, n_rows * width) == whole);
        n_sums_of_shards_differ += sums_of_shards != whole;
      });
    }
  }
  CHECK(n_plain_differ > 0);
  CHECK(n_sums_of_shards_differ > 0);
}

}  // namespace
