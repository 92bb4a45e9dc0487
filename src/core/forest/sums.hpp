// Sums over the trees of a forest, on several threads, and yet the same to the last bit for any number of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "forest/options.hpp"

namespace onlineforest {

struct SumShape {
  std::size_t n_rows, n_trees;
  std::size_t width;  // numbers per row
};

struct Piece {
  std::size_t begin, end;  // rows

  std::size_t size() const { return end - begin; }
};

// How the trees of a forest are added up: in groups, each tree by tree, and then the groups. They are part of the
// result, in its last bits: never let them depend on the threads, or on who holds which trees.
inline std::size_t n_groups_of(std::size_t n_trees) {
  constexpr std::size_t most_groups = 8, fewest_trees = 4;
  return std::clamp<std::size_t>(n_trees / fewest_trees, 1, most_groups);
}

// What is handed over as one of the numbers to be added up: the sum of the trees of a group that are held, if they are
// its first; else each of them, to be added to the sum of those before.
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

// Calls add_trees(begin, end, piece, state, sums, stop) for each term, whose trees are [begin, end), and each piece of
// the rows, which adds to `sums`, piece.size() x width; then take(task, term, piece, sums). Tasks are numbered piece by
// piece, term by term. Each worker has a state of its own.
//
// Large pieces share the way down a tree; trees that no other thread looks at share the cache.
template <class MakeState, class AddTrees, class Take>
void sum_terms(std::span<const Term> terms, std::size_t n_rows, std::size_t width, std::size_t n_threads,
               StopSignal& signal, MakeState make_state, AddTrees add_trees, Take take) {
  constexpr std::size_t fewest_rows = 64, most_rows = 8192, tasks_per_thread = 4;
  const std::size_t n_terms = terms.size();
  const std::size_t n_parts = std::max<std::size_t>(tasks_per_thread * n_threads / n_terms, 1);
  const std::size_t n_together = std::clamp((n_rows + n_parts - 1) / n_parts, fewest_rows, most_rows);
  const std::size_t n_pieces = (n_rows + n_together - 1) / n_together;
  parallel_for(n_pieces * n_terms, n_threads, signal, [&] {
    return [&, state = make_state(), sums = std::vector<double>()](std::size_t task, StopProbe& stop) mutable {
      const std::size_t begin = task / n_terms * n_together, term = task % n_terms;
      const Piece piece{begin, std::min(begin + n_together, n_rows)};
      sums.assign(piece.size() * width, 0.0);
      add_trees(terms[term].trees.begin, terms[term].trees.end, piece, state, sums.data(), stop);
      take(task, term, piece, sums);
    };
  });
}

// Returns n_rows x width sums over all trees.
template <class MakeState, class AddTrees>
std::vector<double> sum_over_trees(SumShape shape, std::size_t n_threads, StopSignal& signal, MakeState make_state,
                                   AddTrees add_trees) {
  struct OfPiece {
    Piece piece;
    std::vector<double> sums;
  };
  std::vector<double> result(shape.n_rows * shape.width, 0.0);
  InOrder<OfPiece> groups;
  const std::vector<Term> terms = terms_of({0, shape.n_trees}, shape.n_trees);
  sum_terms(terms, shape.n_rows, shape.width, n_threads, signal, make_state, add_trees,
            [&](std::size_t task, std::size_t, Piece piece, std::vector<double>& sums) {
              OfPiece item{piece, std::move(sums)};
              groups.hand_in(task, item, [&](std::size_t, const OfPiece& of) {
                double* const to = result.data() + of.piece.begin * shape.width;
                for (std::size_t i = 0; i < of.sums.size(); ++i) to[i] += of.sums[i];
              });
              sums = std::move(item.sums);
            });
  return result;
}

// Returns n_terms x n_rows x width sums, one for each term: add_terms() makes of all those of a forest what
// sum_over_trees() would.
template <class MakeState, class AddTrees>
std::vector<double> sum_by_term(std::span<const Term> terms, SumShape shape, std::size_t n_threads, StopSignal& signal,
                                MakeState make_state, AddTrees add_trees) {
  std::vector<double> result(terms.size() * shape.n_rows * shape.width);
  sum_terms(terms, shape.n_rows, shape.width, n_threads, signal, make_state, add_trees,
            [&](std::size_t, std::size_t term, Piece piece, const std::vector<double>& sums) {
              const std::size_t place = (term * shape.n_rows + piece.begin) * shape.width;
              std::ranges::copy(sums, result.begin() + static_cast<std::ptrdiff_t>(place));
            });
  return result;
}

// Adds up the terms of all trees, in the order of the trees; numbers[i] are those of term i.
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
