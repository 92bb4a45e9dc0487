#include "forest/sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
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

// How so many trees may lie in so many parts: evenly, or most of them in the last, the first or a middle one.
std::vector<std::vector<TreeRange>> ways_to_part(std::size_t n_trees, std::size_t n_parts) {
  std::vector<std::vector<TreeRange>> ways(1);
  for (std::size_t i = 0; i < n_parts; ++i) {
    ways[0].push_back({i * n_trees / n_parts, (i + 1) * n_trees / n_parts});
  }
  for (const std::size_t large : {n_parts - 1, std::size_t{0}, n_parts / 2}) {
    std::vector<TreeRange> parts;
    for (std::size_t i = 0, begin = 0; i < n_parts; ++i) {
      const std::size_t end = begin + (i == large ? n_trees - (n_parts - 1) : 1);
      parts.push_back({begin, end});
      begin = end;
    }
    ways.push_back(parts);
  }
  return ways;
}

template <class Use>
void for_each_way_to_part(std::size_t n_trees, Use use) {
  for (std::size_t n_parts = 1; n_parts <= std::min<std::size_t>(n_trees, 7); ++n_parts) {
    for (const auto& parts : ways_to_part(n_trees, n_parts)) use(std::span<const TreeRange>(parts));
  }
}

// The terms of all parts are every tree once, in order; a term lies in one group, and so do all trees of its number.
void test_terms_cover_the_trees() {
  for (std::size_t n_trees = 1; n_trees <= 60; ++n_trees) {
    std::vector<std::size_t> group_of(n_trees);
    std::size_t next = 0;
    for (const Term& term : terms_of({0, n_trees}, n_trees)) {
      CHECK(term.trees.begin == next && term.trees.size() >= (n_trees < 4 ? n_trees : 4));
      for (; next < term.trees.end; ++next) group_of[next] = term.group;
    }
    CHECK(next == n_trees);
    for_each_way_to_part(n_trees, [&](std::span<const TreeRange> parts) {
      std::size_t tree = 0;
      for (const TreeRange& part : parts) {
        for (const Term& term : terms_of(part, n_trees)) {
          CHECK(term.trees.begin == tree && term.trees.begin < term.trees.end);
          for (; tree < term.trees.end; ++tree) CHECK(tree < n_trees && group_of[tree] == term.group);
        }
        CHECK(tree == part.end);
      }
      CHECK(tree == n_trees);
    });
  }
}

// Numbers of very different sizes: it matters in which order they are added.
double number_of(std::size_t tree, std::size_t i) {
  return std::pow(10.0, static_cast<double>((tree * 7 + i * 3) % 11) - 5.0) / static_cast<double>(tree + i + 3);
}

// However the trees lie in parts, the terms of all add up to the sums of the whole, to the bit.
void test_terms_add_up_to_the_sums() {
  constexpr std::size_t width = 2;
  const auto make_state = [] { return 0; };
  const auto add_trees = [](std::size_t begin, std::size_t end, Piece piece, int, double* to, StopProbe&) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t i = 0; i < width * piece.size(); ++i) to[i] += number_of(t, width * piece.begin + i);
    }
  };
  StopSignal signal({});
  std::size_t n_other_when_plain = 0, n_other_when_parts_are_added = 0;
  for (const std::size_t n_rows : {0, 1, 150}) {
    for (const std::size_t n_trees : {1, 3, 4, 9, 37, 60}) {
      const SumShape shape{n_rows, n_trees, width};
      const std::vector<double> whole = sum_over_trees(shape, 1, signal, make_state, add_trees);
      std::vector<double> plain(n_rows * width);
      for (std::size_t t = 0; t < n_trees; ++t) {
        for (std::size_t i = 0; i < plain.size(); ++i) plain[i] += number_of(t, i);
      }
      n_other_when_plain += plain != whole;
      for_each_way_to_part(n_trees, [&](std::span<const TreeRange> parts) {
        std::vector<Term> terms;
        std::vector<std::vector<double>> of_parts;
        std::vector<const double*> numbers;
        std::vector<double> sums_of_parts(n_rows * width);
        for (const TreeRange& part : parts) {
          const std::vector<Term> own = terms_of(part, n_trees);
          of_parts.push_back(sum_by_term(own, shape, parts.size() % 3 + 1, signal, make_state, add_trees));
          CHECK(of_parts.back().size() == own.size() * n_rows * width);
          for (std::size_t i = 0; i < own.size(); ++i) {
            numbers.push_back(of_parts.back().data() + i * n_rows * width);
            for (std::size_t k = 0; k < n_rows * width; ++k) sums_of_parts[k] += numbers.back()[k];
          }
          terms.insert(terms.end(), own.begin(), own.end());
        }
        CHECK(add_terms(terms, numbers, n_rows * width) == whole);
        n_other_when_parts_are_added += sums_of_parts != whole;
      });
    }
  }
  CHECK(n_other_when_plain > 0 && n_other_when_parts_are_added > 0);
}

}  // namespace

int main() {
  test_in_order();
  test_sums();
  test_terms_cover_the_trees();
  test_terms_add_up_to_the_sums();
  return testing::finish();
}
