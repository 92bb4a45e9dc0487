// Binds what forests of all kinds have. Every call into the core releases the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bind_state.hpp"
#include "calls.hpp"
#include "forest/options.hpp"
#include "forest/summation.hpp"
#include "keeping.hpp"
#include "state/archive.hpp"
#include "state/invariants.hpp"
#include "state/tree_arrays.hpp"

namespace onlineforest::bindings {

using HeldTrees = std::optional<std::pair<std::size_t, std::size_t>>;  // first tree, end

inline WeightRule weight_rule_of(const std::string& name) {
  if (name == "unit") return WeightRule::kUnit;
  if (name == "fixed") return WeightRule::kFixed;
  if (name == "range") return WeightRule::kRange;
  if (name == "learned") return WeightRule::kLearned;
  throw std::invalid_argument("weight_rule must be 'unit', 'fixed', 'range' or 'learned', got '" + name + "'");
}

inline ForestOptions common_options(std::size_t n_trees, std::size_t n_features, double lifetime, double discount,
                                    std::int32_t min_samples_split, const std::string& weight_rule,
                                    const std::optional<InArray<double, 1>>& weights, std::uint64_t seed,
                                    std::size_t window, std::size_t reservoir, double half_life,
                                    const HeldTrees& held) {
  ForestOptions options;
  options.n_trees = n_trees;
  options.n_features = n_features;
  options.lifetime = lifetime;
  options.discount = discount;
  options.min_samples_split = min_samples_split;
  options.weight_rule = weight_rule_of(weight_rule);
  if (weights) options.weights = vector_of(*weights);
  options.seed = seed;
  options.keep = keep_of(window, reservoir, half_life);
  if (held) options.held = TreeRange{held->first, held->second};
  return options;
}

template <class Forest>
OutArray<NodeIndex, 2> apply(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.apply(span_of(rows), call); }),
                  {rows.shape(0), self.options().trees_held().size()});
}

template <class Forest>
OutArray<double, 1> novelty(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.novelty(span_of(rows), call); }));
}

// The terms of the trees held here, and how many of these trees are not empty.
template <class Forest>
nb::typed<nb::tuple, OutArray<double, 1>, std::size_t> terms(const Forest& self, Quantity quantity,
                                                             const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  Terms result = run(n_threads, [&](const Call& call) { return self.terms(quantity, span_of(rows), call); });
  return nb::make_tuple(to_array(std::move(result.numbers)), result.n_grown);
}

// One number per row as an array of one dimension, several as one of two.
template <class Forest>
nb::ndarray<nb::numpy, double> finish(const Forest& self, Quantity quantity, const InArray<float, 2>& rows,
                                      const InArray<double, 1>& sums, std::size_t n_grown) {
  require_width(self, rows);
  auto result =
      run(1, [&](const Call& call) { return self.finish(quantity, span_of(rows), {span_of(sums), n_grown}, call); });
  if (quantity == Quantity::kNovelty) return nb::ndarray<nb::numpy, double>(to_array(std::move(result)));
  const std::size_t width = rows.shape(0) == 0 ? Forest::kWidthWithoutRows : result.size() / rows.shape(0);
  return nb::ndarray<nb::numpy, double>(to_array(std::move(result), {rows.shape(0), width}));
}

template <class Forest>
std::unique_ptr<Forest> from_state(const nb::dict& dict, std::size_t n_threads, std::size_t max_bytes,
                                   std::size_t n_trees, std::size_t first_tree) {
  auto state = state_from_dict<Forest>(dict);
  if (n_trees > 0) {  // the state of a shard
    if (first_tree >= n_trees || state.trees.size() > n_trees - first_tree) {
      throw std::invalid_argument("not the state of a shard: it has " + std::to_string(state.trees.size()) +
                                  " trees from tree " + std::to_string(first_tree) + " on, but the forest has " +
                                  std::to_string(n_trees));
    }
    state.options.n_trees = n_trees;
    state.options.held = TreeRange{first_tree, first_tree + state.trees.size()};
  }
  return run(n_threads, [&](const Call& call) { return Archive<Forest>::restore(state, call, max_bytes); });
}

inline nb::dict common_arrays(TreeArrays& arrays, std::size_t n_features) {
  const std::size_t n = arrays.n_nodes;
  nb::dict dict;
  dict["parent"] = to_array(std::move(arrays.parent));
  dict["left"] = to_array(std::move(arrays.left));
  dict["right"] = to_array(std::move(arrays.right));
  dict["split_dimension"] = to_array(std::move(arrays.split_dimension));
  dict["split_location"] = to_array(std::move(arrays.split_location));
  dict["split_time"] = to_array(std::move(arrays.split_time));
  dict["lower"] = to_array(std::move(arrays.lower), {n, n_features});
  dict["upper"] = to_array(std::move(arrays.upper), {n, n_features});
  dict["n_points"] = to_array(std::move(arrays.n_points));
  return dict;
}

template <class Forest>
void bind_learned(nb::class_<Forest>& forest) {
  using namespace nb::literals;
  forest
      .def(
          "refresh",
          [](Forest& self, std::size_t n_threads) { run(n_threads, [&](auto& call) { self.refresh(call); }); },
          "n_threads"_a = 1)
      .def(
          "relevance",
          [](const Forest& self, std::size_t n_threads) {
            return to_array(run(n_threads, [&](auto& call) { return self.relevance(call); }));
          },
          "n_threads"_a = 1);
}

template <class Forest>
void bind_properties(nb::class_<Forest>& forest) {
  forest.def_prop_ro("n_trees", [](const Forest& self) { return self.options().trees_held().size(); })
      .def_prop_ro(
          "feature_weights", [](const Forest& self) { return to_array(run([&] { return self.measure().weights; })); },
          nb::rv_policy::move)
      .def_prop_ro("discount_rate",
                   [](const Forest& self) { return run([&] { return self.measure().discount_rate; }); });
}

template <class Forest>
nb::class_<Forest> bind_common(nb::module_& module, const char* name, const char* doc) {
  using namespace nb::literals;
  nb::class_<Forest> forest(module, name, doc);
  forest.def("apply", &apply<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("novelty", &novelty<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("terms", &terms<Forest>, "quantity"_a, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("finish", &finish<Forest>, "quantity"_a, "rows"_a.noconvert(), "sums"_a.noconvert(), "n_grown"_a)
      .def("check_invariants", [](const Forest& self) { run([&] { check_invariants(self); }); })
      .def("get_state",
           [](const Forest& self) {
             return state_to_dict(run(1, [&](const Call& call) { return Archive<Forest>::save(self, call); }));
           })
      .def_static("from_state", &from_state<Forest>, "state"_a, "n_threads"_a = 1,
                  "max_bytes"_a = std::numeric_limits<std::size_t>::max(), nb::kw_only(), "n_trees"_a = 0,
                  "first_tree"_a = 0);
  bind_keeping(forest);
  bind_learned(forest);
  bind_properties(forest);
  return forest;
}

}  // namespace onlineforest::bindings
