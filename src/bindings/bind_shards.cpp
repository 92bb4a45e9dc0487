// Binds functions that combine what the shards of a forest compute; see forest/sums.hpp, numbers/mixtures.hpp and
// guided/number_forest.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bind_mixtures.hpp"
#include "bindings.hpp"
#include "calls.hpp"
#include "forest/sums.hpp"
#include "guided/number_forest.hpp"
#include "moments.hpp"
#include "numbers/gaussian_forest.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace {

// The trees [begin, end) of a shard, and its terms.
using ShardTerms = std::tuple<std::size_t, std::size_t, InArray<double, 1>>;

// The sums over all trees of a forest, from the terms of its shards.
OutArray<double, 1> add_shard_terms(std::size_t n_trees, const std::vector<ShardTerms>& shards) {
  std::vector<Term> terms;
  std::vector<const double*> numbers;
  std::size_t n = 0, n_done = 0;  // numbers of a term, and trees
  for (const auto& [begin, end, array] : shards) {
    if (begin != n_done || begin >= end || end > n_trees) {
      throw std::invalid_argument("the shards are not in order: expected trees from " + std::to_string(n_done) +
                                  " on, of " + std::to_string(n_trees) + ", got [" + std::to_string(begin) + ", " +
                                  std::to_string(end) + ")");
    }
    const std::vector<Term> own = terms_of({begin, end}, n_trees);
    const std::size_t n_each = array.size() / own.size();
    if (n_each * own.size() != array.size() || (n_done > 0 && n_each != n)) {
      throw std::invalid_argument("the shards sent terms of different lengths: the shard with trees from " +
                                  std::to_string(begin) + " on has " + std::to_string(array.size()) + " numbers in " +
                                  std::to_string(own.size()) + " terms");
    }
    for (std::size_t i = 0; i < own.size(); ++i) numbers.push_back(array.data() + i * n_each);
    terms.insert(terms.end(), own.begin(), own.end());
    n = n_each;
    n_done = end;
  }
  if (shards.empty() || n_done != n_trees) {
    throw std::invalid_argument("a shard is missing: there are terms of " + std::to_string(n_done) + " trees of " +
                                std::to_string(n_trees));
  }
  return to_array(run([&] { return add_terms(terms, numbers, n); }));
}

// For each row, what its leaves say, given as (n_rows, n_trees, 2) in the order of trees, and how many leaves it has;
// NaN if it has none.
nb::typed<nb::tuple, OutArray<double, 2>, OutArray<std::int64_t, 1>> moments_of_leaves(
    const InArray<double, 3>& leaves) {
  if (leaves.shape(2) != 2) {
    throw std::invalid_argument("a leaf has 2 numbers, got " + std::to_string(leaves.shape(2)));
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<guided::TreeMoments> moments(leaves.shape(0), {kNone, kNone, kNone});
  std::vector<std::int64_t> n_leaves(leaves.shape(0), 0);
  run([&] {
    std::vector<guided::NumberLeaf> of_row;
    const double* next = leaves.data();
    for (std::size_t i = 0; i < moments.size(); ++i) {
      of_row.clear();
      for (std::size_t t = 0; t < leaves.shape(1); ++t, next += 2) of_row.push_back({next[0], next[1]});
      const auto own = guided::moments_of(of_row);
      if (own) moments[i] = *own;
      n_leaves[i] = static_cast<std::int64_t>(of_row.size());
    }
  });
  return nb::make_tuple(array_of_moments(moments), to_array(std::move(n_leaves)));
}

// Scale, noise and levels of the calibration that the left-out predictions of all trees give.
nb::typed<nb::tuple, double, double, OutArray<double, 1>> calibration_of(const nb::dict& left_out,
                                                                         std::size_t n_threads) {
  const LeftOut given{vector_in<double>(left_out, "residuals"), mixtures_in(left_out),
                      vector_in<Weight>(left_out, "weights")};
  Calibration calibration = run(n_threads, [&](const Call& call) { return calibration_from(given, call); });
  return nb::make_tuple(calibration.scale, calibration.noise, to_array(std::move(calibration.levels)));
}

}  // namespace

void bind_shards(nb::module_& module) {
  module.def("add_terms", &add_shard_terms, "n_trees"_a, "shards"_a.noconvert());
  module.def("moments_of_leaves", &moments_of_leaves, "leaves"_a.noconvert());
  module.def("calibration_from", &calibration_of, "left_out"_a, "n_threads"_a = 1);
}

}  // namespace onlineforest::bindings
