// Bindings that both order-free forests share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "calls.hpp"
#include "dict_source.hpp"
#include "keeping.hpp"
#include "one_row.hpp"
#include "orderfree/forest/forest_state.hpp"
#include "orderfree/law/layout.hpp"
#include "orderfree/law/proposal.hpp"
#include "orderfree/tree/options.hpp"
#include "samples/weight.hpp"

namespace onlineforest::bindings::of_orderfree {

using namespace nb::literals;

// Converts stored weights to numbers of samples.
inline OutArray<double, 1> multiplicities(const std::vector<Weight>& weights) {
  std::vector<double> result;
  result.reserve(weights.size());
  for (const Weight weight : weights) result.push_back(multiplicity(weight));
  return to_array(std::move(result));
}

template <class Forest>
void init(Forest* self, std::size_t n_trees, std::size_t n_features, std::size_t n_categorical, std::uint64_t seed,
          std::int64_t min_samples_split, double max_samples, bool calibrates, double discount, std::size_t window,
          std::size_t reservoir, double half_life, std::size_t first_tree, int key_bits) {
  orderfree::Options options;
  options.n_trees = n_trees;
  options.first_tree = first_tree;
  options.layout = {n_features, n_categorical};
  options.seed = seed;
  options.min_samples_split = min_samples_split;
  options.max_samples = max_samples;
  options.calibrates = calibrates;
  options.discount = discount;
  options.keep = keep_of(window, reservoir, half_life);
  options.key_bits = key_bits;
  new (self) Forest(options);
}

template <class Forest>
void learn(Forest& self, const InArray<float, 2>& rows, const InArray<typename Forest::Value, 1>& values,
           std::size_t n_threads, const std::optional<InArray<Weight, 1>>& weights) {
  require_width(self, rows);
  const std::span<const Weight> of_rows = weights ? span_of(*weights) : std::span<const Weight>();
  run(n_threads, [&](const Call& call) { self.learn(span_of(rows), span_of(values), of_rows, call); });
}

template <class Forest>
void learn_one(Forest& self, nb::handle x, typename Forest::Value value, Weight weight) {
  const std::vector<float> row = one_row(x, self.width());
  run(1, [&](const Call& call) { self.learn(row, std::span(&value, 1), std::span(&weight, 1), call); });
}

template <class Forest>
OutArray<NodeIndex, 2> apply(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads,
                             Weight stop_weight) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.apply(span_of(rows), stop_weight, call); }),
                  {rows.shape(0), self.options().n_trees});
}

// Arrays that a state lacks if they are empty: `weights`, if all weights are 1.
inline constexpr std::string_view kOptional[] = {"weights"};

template <class Forest>
nb::dict get_state(const Forest& self) {
  auto state = run([&] { return self.save(); });
  nb::dict dict;
  orderfree::write_state(std::move(state), [&](const char* name, auto numbers) {
    if (!numbers.empty() || !is_one_of(name, kOptional)) dict[name] = to_array(std::move(numbers));
  });
  return dict;
}

// Restores a forest. If n_trees is not 0, restores only the trees [first_tree, first_tree + n_trees).
template <class Forest, class Target>
std::unique_ptr<Forest> from_state(const nb::dict& dict, std::size_t n_threads, std::size_t max_bytes,
                                   std::size_t n_trees, std::size_t first_tree) {
  DictSource source(dict, kOptional);
  orderfree::ForestState<Target> state = orderfree::read_state<Target>(source);
  if (n_trees != 0) {
    state.options.n_trees = n_trees;
    state.options.first_tree = first_tree;
  }
  return run(n_threads, [&](const Call&) { return std::make_unique<Forest>(state, max_bytes); });
}

template <class Table>
nb::dict dict_of(Table& table, const orderfree::Layout& layout) {
  const auto feature_of = [&](std::int32_t cell) {
    return cell < 0 ? cell : static_cast<std::int32_t>(layout.feature_of(static_cast<std::size_t>(cell)));
  };
  std::vector<std::int32_t> split_features;
  for (const std::int32_t cell : table.cell) split_features.push_back(feature_of(cell));
  nb::dict dict;
  dict["parent"] = to_array(std::move(table.parent));
  dict["left"] = to_array(std::move(table.left));
  dict["right"] = to_array(std::move(table.right));
  dict["feature"] = to_array(std::move(split_features));
  dict["threshold"] = to_array(std::move(table.threshold));
  dict["missing_left"] = to_array(std::move(table.missing_left));
  dict["weight"] = multiplicities(table.weight);
  std::vector<std::int32_t> features;
  std::vector<float> thresholds;
  std::vector<std::uint8_t> are_reversed;
  for (const orderfree::Surrogate& surrogate : table.surrogates) {
    features.push_back(feature_of(surrogate.cell));
    thresholds.push_back(surrogate.threshold);
    are_reversed.push_back(surrogate.is_reversed);
  }
  dict["surrogates_end"] = to_array(std::move(table.surrogates_end));
  dict["surrogate_feature"] = to_array(std::move(features));
  dict["surrogate_threshold"] = to_array(std::move(thresholds));
  dict["surrogate_reversed"] = to_array(std::move(are_reversed));
  return dict;
}

// The left-out prediction of each sample, and the number of trees that have not learned it.
using LeftOut = nb::typed<nb::tuple, OutArray<double, 2>, OutArray<std::int64_t, 1>>;

// Binds the functions that forests of labels and of numbers have in common.
template <class Forest, class Target>
void bind_common(nb::class_<Forest>& forest) {
  bind_keeping(forest);
  forest
      .def("__init__", &init<Forest>, "n_trees"_a, "n_features"_a, nb::kw_only(), "n_categorical"_a = 0, "seed"_a,
           "min_samples_split"_a = 2, "max_samples"_a = 1.0, "calibrates"_a = false, "discount"_a = 0.2, "window"_a = 0,
           "reservoir"_a = 0, "half_life"_a = kInfinity, "first_tree"_a = 0, "key_bits"_a = 64)
      .def("learn", &learn<Forest>, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1,
           "weights"_a.noconvert() = nb::none())
      .def("learn_one", &learn_one<Forest>, "row"_a, "value"_a, "weight"_a = kOne)
      .def(
          "grow_all",
          [](Forest& self, std::size_t n_threads, Weight stop_weight) {
            run(n_threads, [&](auto& call) { self.grow_all(stop_weight, call); });
          },
          "n_threads"_a = 1, "stop_weight"_a = 0)
      .def("apply", &apply<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1, "stop_weight"_a = 0)
      .def(
          "importances",
          [](const Forest& self, std::size_t n_threads, Weight stop_weight) {
            return to_array(run(n_threads, [&](auto& call) { return self.importances(stop_weight, call); }),
                            {self.options().n_trees, self.options().layout.n_features});
          },
          "n_threads"_a = 1, "stop_weight"_a = 0)
      .def(
          "count_as_seen", [](Forest& self, std::size_t n_seen) { run([&] { self.count_as_seen(n_seen); }); },
          "n_seen"_a)
      .def("get_state", &get_state<Forest>)
      .def_static("from_state", &from_state<Forest, Target>, "state"_a, "n_threads"_a = 1,
                  "max_bytes"_a = std::numeric_limits<std::size_t>::max(), nb::kw_only(), "n_trees"_a = 0,
                  "first_tree"_a = 0)
      .def(
          "levels",
          [](const Forest& self, std::size_t categorical) {
            return to_array(run([&] { return self.levels(categorical); }));
          },
          "categorical"_a)
      .def_prop_ro("seed", [](const Forest& self) { return self.options().seed; });
}

}  // namespace onlineforest::bindings::of_orderfree
