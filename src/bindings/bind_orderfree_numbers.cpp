// Binds the order-free forest of numbers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "calls.hpp"
#include "one_row.hpp"
#include "orderfree.hpp"
#include "orderfree/numbers/forest.hpp"
#include "samples/weight.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace of_orderfree {

namespace {

using orderfree::Line;
using orderfree::NumberForest;
using orderfree::NumberLeaf;
using orderfree::TreeMoments;

// Mean, variance within leaves and variance between trees.
OutArray<double, 2> array_of_moments(const std::vector<TreeMoments>& moments) {
  std::vector<double> numbers;
  numbers.reserve(3 * moments.size());
  for (const auto& [mean, within, between] : moments) numbers.insert(numbers.end(), {mean, within, between});
  return to_array(std::move(numbers), {moments.size(), 3});
}

// The lines of a tree, one row for each. Terms that a line does not have are of feature -1, with slope 0.
void add_lines(const std::vector<Line>& lines, nb::dict& dict) {
  const std::size_t n = lines.size();
  std::vector<std::int32_t> features;
  std::vector<float> lows, highs;
  std::vector<double> centres, slopes, bases, leasts, mosts;
  for (const Line& line : lines) {
    for (std::size_t k = 0; k < Line::kMostTerms; ++k) {
      const Line::Term& term = line.terms[k];
      features.push_back(k < line.n_terms ? term.cell : -1);
      lows.push_back(term.low);
      highs.push_back(term.high);
      centres.push_back(term.centre);
      slopes.push_back(term.slope);
    }
    bases.push_back(line.base);
    leasts.push_back(line.least);
    mosts.push_back(line.most);
  }
  dict["line_feature"] = to_array(std::move(features), {n, Line::kMostTerms});
  dict["line_low"] = to_array(std::move(lows), {n, Line::kMostTerms});
  dict["line_high"] = to_array(std::move(highs), {n, Line::kMostTerms});
  dict["line_centre"] = to_array(std::move(centres), {n, Line::kMostTerms});
  dict["line_slope"] = to_array(std::move(slopes), {n, Line::kMostTerms});
  dict["line_base"] = to_array(std::move(bases));
  dict["line_least"] = to_array(std::move(leasts));
  dict["line_most"] = to_array(std::move(mosts));
}

nb::dict number_tree(const NumberForest& self, std::size_t index) {
  auto table = run(1, [&](const Call& call) { return self.table(index, call); });
  std::vector<double> variances;
  for (std::size_t node = 0; node < table.weight.size(); ++node) {
    variances.push_back(table.columns.variance(node, table.weight[node]));
  }
  nb::dict dict = dict_of(table, self.options().layout);
  dict["mean"] = to_array(std::move(table.columns.mean));
  dict["variance"] = to_array(std::move(variances));
  dict["line"] = to_array(std::move(table.columns.line));
  dict["rest"] = to_array(std::move(table.columns.rest));
  add_lines(table.columns.lines, dict);
  return dict;
}

using Strengths = std::optional<InArray<double, 1>>;

orderfree::NumberFit fit_of(Weight stop_weight, double level_share, const Strengths& strengths) {
  return {stop_weight, level_share, strengths ? span_of(*strengths) : std::span<const double>()};
}

OutArray<double, 2> predict_numbers(const NumberForest& self, const InArray<float, 2>& rows, std::size_t n_threads,
                                    Weight stop_weight, double level_share, const Strengths& strengths) {
  require_width(self, rows);
  const orderfree::NumberFit fit = fit_of(stop_weight, level_share, strengths);
  return array_of_moments(run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), fit, call); }));
}

// Mean, variance within leaves and variance between trees.
nb::typed<nb::tuple, double, double, double> predict_number_of_one(const NumberForest& self, nb::handle x,
                                                                   Weight stop_weight, double level_share,
                                                                   const Strengths& strengths) {
  const std::vector<float> row = one_row(x, self.width());
  const orderfree::NumberFit fit = fit_of(stop_weight, level_share, strengths);
  const auto moments = run(1, [&](const Call& call) { return self.predict(row, fit, call); });
  return nb::make_tuple(moments[0].mean, moments[0].within, moments[0].between);
}

LeftOut left_out_numbers(const NumberForest& self, std::size_t n_threads, Weight stop_weight) {
  NumberForest::LeftOut result =
      run(n_threads, [&](const Call& call) { return self.predict_left_out(stop_weight, call); });
  return nb::make_tuple(array_of_moments(result.moments), to_array(std::move(result.n_trees)));
}

OutArray<double, 3> array_of_leaves(const std::vector<NumberLeaf>& leaves, std::size_t n_trees) {
  std::vector<double> numbers;
  numbers.reserve(2 * leaves.size());
  for (const auto& [mean, variance] : leaves) numbers.insert(numbers.end(), {mean, variance});
  return to_array(std::move(numbers), {leaves.size() / n_trees, n_trees, 2});
}

// For each row and tree of a shard, the mean and variance in the leaf; a negative variance if the tree is empty.
OutArray<double, 3> leaves(const NumberForest& self, const InArray<float, 2>& rows, std::size_t n_threads,
                           Weight stop_weight) {
  require_width(self, rows);
  return array_of_leaves(
      run(n_threads, [&](const Call& call) { return self.leaves(span_of(rows), stop_weight, call); }),
      self.options().n_trees);
}

// For the samples [begin, end) in the order of serials, without those that every tree has learned: the index of each,
// and for each tree of a shard the mean and variance in its leaf; a negative variance if the tree has learned the
// sample.
nb::typed<nb::tuple, OutArray<std::int64_t, 1>, OutArray<double, 3>> left_out_leaves(const NumberForest& self,
                                                                                     std::size_t begin, std::size_t end,
                                                                                     std::size_t n_threads,
                                                                                     Weight stop_weight) {
  auto result = run(n_threads, [&](const Call& call) { return self.left_out_leaves(begin, end, stop_weight, call); });
  return nb::make_tuple(to_array(std::move(result.places)), array_of_leaves(result.leaves, self.options().n_trees));
}

// NumberVotes as a tuple: the number and the weight of each calibrator, the stop weights, and for each of them, each
// calibrator and each tree of a shard that leaves calibrators out, the mean and variance in its leaf; a negative
// variance if the tree is empty; then how far the levels of each calibrator deviate, and the strengths of features.
using NumberVotesTuple = nb::typed<nb::tuple, OutArray<double, 1>, OutArray<Weight, 1>, OutArray<Weight, 1>,
                                   OutArray<double, 4>, OutArray<double, 1>, OutArray<double, 1>>;

NumberVotesTuple tuple_of(orderfree::NumberVotes votes) {
  const std::size_t n = votes.values.size(), n_stops = votes.stop_weights.size();
  std::vector<double> numbers;
  numbers.reserve(2 * votes.leaves.size());
  for (const auto& [mean, variance] : votes.leaves) numbers.insert(numbers.end(), {mean, variance});
  return nb::make_tuple(to_array(std::move(votes.values)), to_array(std::move(votes.weights)),
                        to_array(std::move(votes.stop_weights)),
                        to_array(std::move(numbers), {n_stops, n, votes.n_trees, 2}),
                        to_array(std::move(votes.deviations)), to_array(std::move(votes.strengths)));
}

NumberVotesTuple number_votes(const NumberForest& self, std::size_t n_threads, Weight least, Weight limit,
                              std::size_t begin, std::size_t end) {
  return tuple_of(
      run(n_threads, [&](const Call& call) { return self.left_out_votes(begin, end, {least, limit}, call); }));
}

NumberVotesTuple number_votes_at(const NumberForest& self, std::size_t n_seen, std::size_t n_threads, Weight least,
                                 Weight limit) {
  return tuple_of(
      run(n_threads, [&](const Call& call) { return self.left_out_votes_at(n_seen, {least, limit}, call); }));
}

NumberVotesTuple number_votes_after(const NumberForest& self, const InArray<float, 2>& rows,
                                    const InArray<double, 1>& values, std::size_t n_threads,
                                    const std::optional<InArray<Weight, 1>>& weights, Weight least, Weight limit) {
  require_width(self, rows);
  const std::span<const Weight> of_rows = weights ? span_of(*weights) : std::span<const Weight>();
  return tuple_of(run(n_threads, [&](const Call& call) {
    return self.left_out_votes_after(span_of(rows), span_of(values), of_rows, {least, limit}, call);
  }));
}

// The moments of the leaves of each row, and the number of its leaves. `leaves` has the shape (n_rows, n_trees, 2),
// with trees in their order. Moments are NaN for a row without leaves.
nb::typed<nb::tuple, OutArray<double, 2>, OutArray<std::int64_t, 1>> moments_of_leaves(
    const InArray<double, 3>& leaves) {
  if (leaves.shape(2) != 2) {
    throw std::invalid_argument("leaves have " + std::to_string(leaves.shape(2)) +
                                " numbers each instead of 2, a mean and a variance");
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<TreeMoments> moments(leaves.shape(0), {kNone, kNone, kNone});
  std::vector<std::int64_t> n_leaves(leaves.shape(0), 0);
  run([&] {
    std::vector<NumberLeaf> of_row;
    const double* next = leaves.data();
    for (std::size_t i = 0; i < moments.size(); ++i) {
      of_row.clear();
      for (std::size_t t = 0; t < leaves.shape(1); ++t, next += 2) of_row.push_back({next[0], next[1]});
      const auto own = moments_of(of_row);
      if (own) moments[i] = *own;
      n_leaves[i] = static_cast<std::int64_t>(of_row.size());
    }
  });
  return nb::make_tuple(array_of_moments(moments), to_array(std::move(n_leaves)));
}

}  // namespace

}  // namespace of_orderfree

void bind_orderfree_numbers(nb::module_& module) {
  using of_orderfree::NumberForest;
  nb::class_<NumberForest> numbers(module, "OrderFreeNumberForest",
                                   "An order-free forest over numbers. Rows are float32.");
  of_orderfree::bind_common<NumberForest, orderfree::Numbers>(numbers);
  numbers
      .def("predict", &of_orderfree::predict_numbers, "rows"_a.noconvert(), "n_threads"_a = 1, "stop_weight"_a = 0,
           "level_share"_a = 0.0, "strengths"_a.noconvert() = nb::none())
      .def("predict_one", &of_orderfree::predict_number_of_one, "row"_a, "stop_weight"_a = 0, "level_share"_a = 0.0,
           "strengths"_a.noconvert() = nb::none())
      .def("votes", &of_orderfree::number_votes, "n_threads"_a = 1, "least"_a = 0, "limit"_a = kMostWeight,
           "begin"_a = 0, "end"_a = std::numeric_limits<std::int64_t>::max())
      .def("votes_at", &of_orderfree::number_votes_at, "n_seen"_a, "n_threads"_a = 1, "least"_a = 0,
           "limit"_a = kMostWeight)
      .def("votes_after", &of_orderfree::number_votes_after, "rows"_a.noconvert(), "values"_a.noconvert(),
           "n_threads"_a = 1, "weights"_a.noconvert() = nb::none(), "least"_a = 0, "limit"_a = kMostWeight)
      .def("tree", &of_orderfree::number_tree, "index"_a)
      .def("left_out", &of_orderfree::left_out_numbers, "n_threads"_a = 1, "stop_weight"_a = 0)
      .def(
          "level_deviations",
          [](const NumberForest& self, const InArray<float, 2>& rows, const InArray<double, 1>& strengths) {
            require_width(self, rows);
            return to_array(run([&] { return self.level_deviations(span_of(rows), span_of(strengths)); }));
          },
          "rows"_a.noconvert(), "strengths"_a.noconvert(),
          "How far the levels of each row lie above the mean of all numbers.")
      .def("leaves", &of_orderfree::leaves, "rows"_a.noconvert(), "n_threads"_a = 1, "stop_weight"_a = 0)
      .def("left_out_leaves", &of_orderfree::left_out_leaves, "begin"_a, "end"_a, "n_threads"_a = 1,
           "stop_weight"_a = 0)
      .def(
          "of_all_samples",
          [](const NumberForest& self) {
            return of_orderfree::array_of_moments(std::vector{run([&] { return self.of_all_samples(); })});
          },
          "Mean and variance of all samples, for rows that no tree answers.");
  module.def("moments_of_leaves", &of_orderfree::moments_of_leaves, "leaves"_a.noconvert());
}

}  // namespace onlineforest::bindings
