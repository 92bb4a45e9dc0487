// Sums over the trees of a forest, on several threads, bit-identical for any number of threads and shards.
// Knows nothing of what is summed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "base/parallel.hpp"
#include "forest/options.hpp"

namespace onlineforest {

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
// bits of the result, so it must not depend on the number of threads or on which shard holds which trees.
inline std::size_t n_groups_of(std::size_t n_trees) {
  constexpr std::size_t most_groups = 8, fewest_trees = 4;
  return std::clamp<std::size_t>(n_trees / fewest_trees, 1, most_groups);
}

// One summand that a shard sends: the partial sum of a group if the shard holds the group's first trees, otherwise a
// single tree, which is added to the partial sum of the trees before it.
struct Term {
  TreeRange trees;
  std::size_t group;
};

inline std::vector<Term> terms_of(TreeRange held, std::size_t n_trees) {
  const std::size_t n_groups = n_groups_of(n_trees);
  std::vector<Term> terms;
  for (std::size_t group = 0; group < n_groups; ++group) {
    const TreeRange whole{group * n_trees / n_groups, (group + 1) * n_trees / n_groups};
    const TreeRange here{std::max(whole.begin, held.begin), std::min(whole.end, held.end)};
    if (here.begin == whole.begin && here.begin < here.end) {
      terms.push_back({here, group});
    } else {
      for (std::size_t tree = here.begin; tree < here.end; ++tree) terms.push_back({{tree, tree + 1}, group});
    }
  }
  return terms;
}

// For each piece of the rows and each term, with trees [begin, end), calls
// add_trees(begin, end, piece, state, sums, stop), which adds to `sums`, piece.size() x width; then
// take(task, term, piece, sums). Tasks are numbered piece by piece, term by term. Each thread has its own state.
//
// Rows of a large piece share the descent through a tree; a tree that only one thread visits stays in its cache.
template <class MakeState, class AddTrees, class Take>
void sum_terms(std::span<const Term> terms, std::size_t n_rows, std::size_t width, const Call& call,
               MakeState make_state, AddTrees add_trees, Take take) {
  constexpr std::size_t fewest_rows = 64, most_rows = 8192, tasks_per_thread = 4;
  const std::size_t n_terms = terms.size();
  const std::size_t n_wanted = std::max<std::size_t>(tasks_per_thread * call.n_threads() / n_terms, 1);
  const std::size_t piece_size = std::clamp((n_rows + n_wanted - 1) / n_wanted, fewest_rows, most_rows);
  const std::size_t n_pieces = (n_rows + piece_size - 1) / piece_size;
  call.parallel_for(n_pieces * n_terms, [&] {
    return [&, state = make_state(), sums = std::vector<double>()](std::size_t task, StopProbe& stop) mutable {
      const std::size_t begin = task / n_terms * piece_size, term = task % n_terms;
      const Piece piece{begin, std::min(begin + piece_size, n_rows)};
      sums.assign(piece.size() * width, 0.0);
      add_trees(terms[term].trees.begin, terms[term].trees.end, piece, state, sums.data(), stop);
      take(task, term, piece, sums);
    };
  });
}

// Returns the sums over all trees, n_rows x width.
template <class MakeState, class AddTrees>
std::vector<double> sum_over_trees(SumShape shape, const Call& call, MakeState make_state, AddTrees add_trees) {
  struct PieceSums {
    Piece piece;
    std::vector<double> sums;
  };
  std::vector<double> result(shape.n_rows * shape.width, 0.0);
  InOrder<PieceSums> groups;
  const std::vector<Term> terms = terms_of({0, shape.n_trees}, shape.n_trees);
  sum_terms(terms, shape.n_rows, shape.width, call, make_state, add_trees,
            [&](std::size_t task, std::size_t, Piece piece, std::vector<double>& sums) {
              PieceSums item{piece, std::move(sums)};
              groups.hand_in(task, item, [&](std::size_t, const PieceSums& next) {
                double* const to = result.data() + next.piece.begin * shape.width;
                for (std::size_t i = 0; i < next.sums.size(); ++i) to[i] += next.sums[i];
              });
              sums = std::move(item.sums);
            });
  return result;
}

// Returns one sum per term, n_terms x n_rows x width. add_terms() turns the terms of all shards into what
// sum_over_trees() returns for the whole forest.
template <class MakeState, class AddTrees>
std::vector<double> sum_by_term(std::span<const Term> terms, SumShape shape, const Call& call, MakeState make_state,
                                AddTrees add_trees) {
  std::vector<double> result(terms.size() * shape.n_rows * shape.width);
  sum_terms(terms, shape.n_rows, shape.width, call, make_state, add_trees,
            [&](std::size_t, std::size_t term, Piece piece, const std::vector<double>& sums) {
              const std::size_t place = (term * shape.n_rows + piece.begin) * shape.width;
              std::ranges::copy(sums, result.begin() + static_cast<std::ptrdiff_t>(place));
            });
  return result;
}

// Adds up the terms of all trees in the order of the trees; numbers[i] points to the `n` numbers of term i.
inline std::vector<double> add_terms(std::span<const Term> terms, std::span<const double* const> numbers,
                                     std::size_t n) {
  std::vector<double> result(n, 0.0), sum(n);
  for (std::size_t begin = 0, end; begin < terms.size(); begin = end) {
    std::ranges::fill(sum, 0.0);
    for (end = begin; end < terms.size() && terms[end].group == terms[begin].group; ++end) {
      for (std::size_t i = 0; i < n; ++i) sum[i] += numbers[end][i];
    }
    for (std::size_t i = 0; i < n; ++i) result[i] += sum[i];
  }
  return result;
}

}  // namespace onlineforest
