// Binds the Mondrian forest. Every call into the core releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "calls.hpp"
#include "dict_source.hpp"
#include "keeping.hpp"
#include "mondrian/forest/forest.hpp"
#include "mondrian/state/archive.hpp"
#include "mondrian/state/invariants.hpp"
#include "mondrian/state/state_arrays.hpp"
#include "mondrian/state/tree_arrays.hpp"
#include "one_row.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

// A namespace of its own: a unity build joins this file with others that have functions of the same names.
namespace of_mondrian {

using namespace mondrian;

namespace {

// Arrays that a state lacks if they are empty: `sample_of`, if each arrival is a point of its own.
constexpr std::array<std::string_view, 1> kOptionalOfState{"sample_of"};

WeightRule weight_rule_of(const std::string& name) {
  if (name == "unit") return WeightRule::kUnit;
  if (name == "fixed") return WeightRule::kFixed;
  if (name == "range") return WeightRule::kRange;
  if (name == "learned") return WeightRule::kLearned;
  throw std::invalid_argument("weight_rule must be 'unit', 'fixed', 'range' or 'learned', got '" + name + "'");
}

void init(Forest* self, std::size_t n_trees, std::size_t n_features, double lifetime, double discount,
          std::int32_t min_samples_split, const std::string& weight_rule,
          const std::optional<InArray<double, 1>>& weights, std::uint64_t seed, std::optional<double> leaf_discount,
          std::size_t window, std::size_t reservoir, double half_life) {
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
  options.leaf_discount = leaf_discount.value_or(0.0);
  options.learns_leaf_discount = !leaf_discount;
  new (self) Forest(std::move(options));
}

// Converts one row. Throws std::invalid_argument if a value is missing.
std::vector<float> complete_row(const Forest& self, nb::handle x) {
  std::vector<float> row = one_row(x, self.width());
  const auto missing = std::ranges::find_if(row, [](float value) { return std::isnan(value); });
  if (missing != row.end()) {
    throw std::invalid_argument("Input x contains NaN, at feature " + std::to_string(missing - row.begin()) +
                                ". MondrianForestClassifier learns complete rows only. OnlineForestClassifier learns "
                                "rows with missing values.");
  }
  return row;
}

void learn(Forest& self, const InArray<float, 2>& rows, const InArray<Label, 1>& labels, std::int32_t n_classes,
           std::size_t n_threads, bool one_by_one) {
  require_width(self, rows);
  run(n_threads, [&](const Call& call) { self.learn(span_of(rows), span_of(labels), n_classes, call, one_by_one); });
}

void learn_one(Forest& self, nb::handle x, Label label, std::int32_t n_classes) {
  const std::vector<float> row = complete_row(self, x);
  run(1, [&](const Call& call) { self.learn(row, std::span(&label, 1), n_classes, call); });
}

OutArray<double, 2> predict(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  auto result = run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), call); });
  const std::size_t n_classes = rows.shape(0) == 0 ? 0 : result.size() / rows.shape(0);
  return to_array(std::move(result), {rows.shape(0), n_classes});
}

nb::typed<nb::object, OutArray<double, 1>> predict_one(const Forest& self, nb::handle x) {
  const std::vector<float> row = complete_row(self, x);
  return small_array(run(1, [&](const Call& call) { return self.predict(row, call); }));
}

OutArray<NodeIndex, 2> apply(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.apply(span_of(rows), call); }),
                  {rows.shape(0), self.options().n_trees});
}

OutArray<double, 1> novelty(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.novelty(span_of(rows), call); }));
}

nb::dict get_state(const Forest& self) {
  nb::dict dict;
  write_state(run(1, [&](const Call& call) { return Archive::save(self, call); }),
              [&dict]<class T>(const std::string& name, std::vector<T> numbers) {
                heed_signals();
                if (numbers.empty() && is_one_of(name, kOptionalOfState)) return;
                dict[name.c_str()] = to_array(std::move(numbers));
              });
  return dict;
}

std::unique_ptr<Forest> from_state(const nb::dict& dict, std::size_t n_threads, std::size_t max_bytes) {
  DictSource source(dict, kOptionalOfState);
  const ForestState state = read_state(source);
  return run(n_threads, [&](const Call& call) { return Archive::restore(state, call, max_bytes); });
}

nb::dict tree(const Forest& self, std::size_t index) {
  TreeArrays arrays = run([&] { return tree_arrays(self, index); });
  const std::size_t n = arrays.n_nodes, n_features = self.n_features();
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
  dict["count"] = to_array(std::move(arrays.count), {n, arrays.n_classes});
  dict["labels"] = to_array(std::move(arrays.labels), {n, arrays.n_classes});
  return dict;
}

}  // namespace

}  // namespace of_mondrian

void bind_mondrian(nb::module_& module) {
  using mondrian::Forest;
  nb::class_<Forest> forest(module, "MondrianForest", "A Mondrian forest over labels 0, 1, ... Rows are float32.");
  forest
      .def("__init__", &of_mondrian::init, "n_trees"_a, "n_features"_a, nb::kw_only(), "lifetime"_a, "discount"_a,
           "min_samples_split"_a, "weight_rule"_a, "weights"_a.noconvert() = nb::none(), "seed"_a,
           "leaf_discount"_a.none() = 0.0, "window"_a = 0, "reservoir"_a = 0, "half_life"_a = kInfinity)
      .def("learn", &of_mondrian::learn, "rows"_a.noconvert(), "labels"_a.noconvert(), "n_classes"_a, "n_threads"_a = 1,
           "one_by_one"_a = false)
      .def("learn_one", &of_mondrian::learn_one, "row"_a, "label"_a, "n_classes"_a)
      .def("predict", &of_mondrian::predict, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("predict_one", &of_mondrian::predict_one, "row"_a)
      .def("apply", &of_mondrian::apply, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("novelty", &of_mondrian::novelty, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def(
          "refresh",
          [](Forest& self, std::size_t n_threads) { run(n_threads, [&](auto& call) { self.refresh(call); }); },
          "n_threads"_a = 1)
      .def(
          "relevance",
          [](const Forest& self, std::size_t n_threads) {
            return to_array(run(n_threads, [&](auto& call) { return self.relevance(call); }));
          },
          "n_threads"_a = 1)
      .def("tree", &of_mondrian::tree, "index"_a)
      .def("check_invariants", [](const Forest& self) { run([&] { check_invariants(self); }); })
      .def("get_state", &of_mondrian::get_state)
      .def_static("from_state", &of_mondrian::from_state, "state"_a, "n_threads"_a = 1,
                  "max_bytes"_a = std::numeric_limits<std::size_t>::max())
      .def_prop_ro(
          "feature_weights", [](const Forest& self) { return to_array(run([&] { return self.measure().weights; })); },
          nb::rv_policy::move)
      .def_prop_ro("discount_rate",
                   [](const Forest& self) { return run([&] { return self.measure().discount_rate; }); })
      .def_prop_ro("leaf_discount",
                   [](const Forest& self) { return run([&] { return self.measure().leaf_discount; }); });
  bind_keeping(forest);
}

}  // namespace onlineforest::bindings
