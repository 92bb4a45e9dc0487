// Binds LabelForest. The GIL is released around every call into the core; a call that is stopped by a signal raises
// what the signal's Python handler raised.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "archive.hpp"
#include "arrays.hpp"
#include "bind_state.hpp"
#include "forest.hpp"
#include "invariants.hpp"
#include "one_row.hpp"
#include "tree_arrays.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace {

bool signal_arrived() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

// Runs work without the GIL.
template <class Work>
auto without_gil(Work work) {
  try {
    const nb::gil_scoped_release release;
    return work();
  } catch (const Interrupted&) {
    throw nb::python_error();  // set by signal_arrived
  }
}

void require_width(const LabelForest& forest, const InArray<float, 2>& rows) {
  if (rows.shape(1) != forest.options().n_features) {
    throw std::invalid_argument("X has " + std::to_string(rows.shape(1)) + " features, but this forest has " +
                                std::to_string(forest.options().n_features));
  }
}

void init_forest(LabelForest* self, std::size_t n_trees, std::size_t n_features, double lifetime, double discount,
                 std::int32_t min_samples_split, const std::string& weight_rule,
                 const std::optional<InArray<double, 1>>& weights, std::uint64_t seed,
                 std::optional<double> leaf_discount) {
  ForestOptions options{n_trees,
                        n_features,
                        lifetime,
                        discount,
                        min_samples_split,
                        WeightRule::kUnit,
                        {},
                        seed,
                        leaf_discount.value_or(0.0),
                        !leaf_discount};
  if (weight_rule == "range") {
    options.weight_rule = WeightRule::kRange;
  } else if (weight_rule == "learned") {
    options.weight_rule = WeightRule::kLearned;
  } else if (weight_rule == "fixed") {
    options.weight_rule = WeightRule::kFixed;
    if (weights) options.weights = vector_of(*weights);
  } else if (weight_rule != "unit") {
    throw std::invalid_argument("weight_rule must be 'unit', 'fixed', 'range' or 'learned', got '" + weight_rule + "'");
  }
  new (self) LabelForest(std::move(options));
}

void learn(LabelForest& self, const InArray<float, 2>& rows, const InArray<Label, 1>& labels, std::int32_t n_classes,
           std::size_t n_threads, bool one_by_one) {
  require_width(self, rows);
  without_gil([&] { self.learn(span_of(rows), span_of(labels), n_classes, n_threads, signal_arrived, one_by_one); });
}

OutArray<double, 2> predict(const LabelForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  std::size_t n_classes = 0;
  auto result = without_gil([&] {
    auto probabilities = self.predict(span_of(rows), n_threads, signal_arrived);
    n_classes = rows.shape(0) == 0 ? 0 : probabilities.size() / rows.shape(0);
    return probabilities;
  });
  return to_array(std::move(result), {rows.shape(0), n_classes});
}

void learn_one(LabelForest& self, nb::handle x, Label label, std::int32_t n_classes) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  without_gil([&] { self.learn(row, std::span(&label, 1), n_classes, 1, signal_arrived); });
}

// Puts the probabilities into `out`; false if it is not as long as there are classes.
bool predict_one(const LabelForest& self, nb::handle x, const InOutArray<double, 1>& out) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  const auto probabilities = without_gil([&] { return self.predict(row, 1, signal_arrived); });
  if (probabilities.size() != out.size()) return false;
  std::ranges::copy(probabilities, out.data());
  return true;
}

OutArray<NodeIndex, 2> apply(const LabelForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(without_gil([&] { return self.apply(span_of(rows), n_threads, signal_arrived); }),
                  {rows.shape(0), self.options().n_trees});
}

void refresh(LabelForest& self, std::size_t n_threads) {
  without_gil([&] { self.refresh(n_threads, signal_arrived); });
}

OutArray<double, 1> relevance(const LabelForest& self, std::size_t n_threads) {
  return to_array(without_gil([&] { return self.relevance(n_threads, signal_arrived); }));
}

nb::dict tree(const LabelForest& self, std::size_t index) {
  TreeArrays arrays = without_gil([&] { return tree_arrays(self, index); });
  const std::size_t n = arrays.n_nodes;
  const std::size_t n_features = self.options().n_features;
  const std::size_t n_classes = arrays.n_classes;
  nb::dict dict;
  dict["parent"] = to_array(std::move(arrays.parent));
  dict["left"] = to_array(std::move(arrays.left));
  dict["right"] = to_array(std::move(arrays.right));
  dict["split_dimension"] = to_array(std::move(arrays.split_dimension));
  dict["split_location"] = to_array(std::move(arrays.split_location));
  dict["split_time"] = to_array(std::move(arrays.split_time));
  dict["lower"] = to_array(std::move(arrays.lower), {n, n_features});
  dict["upper"] = to_array(std::move(arrays.upper), {n, n_features});
  dict["count"] = to_array(std::move(arrays.count), {n, n_classes});
  dict["labels"] = to_array(std::move(arrays.labels), {n, n_classes});
  return dict;
}

nb::dict get_state(const LabelForest& self) {
  return state_to_dict(without_gil([&] { return Archive::save(self); }));
}

std::unique_ptr<LabelForest> from_state(const nb::dict& dict) {
  const ForestState state = state_from_dict(dict);
  return without_gil([&] { return Archive::restore(state); });
}

}  // namespace

void bind_forest(nb::module_& module) {
  module.attr("LARGEST_WEIGHT") = kLargestWeight;
  nb::class_<LabelForest>(module, "LabelForest", "A Mondrian forest over labels 0, 1, ... Rows are finite float32.")
      .def("__init__", &init_forest, "n_trees"_a, "n_features"_a, nb::kw_only(), "lifetime"_a, "discount"_a,
           "min_samples_split"_a, "weight_rule"_a, "weights"_a.noconvert() = nb::none(), "seed"_a,
           "leaf_discount"_a.none() = 0.0)
      .def("learn", &learn, "rows"_a.noconvert(), "labels"_a.noconvert(), "n_classes"_a, "n_threads"_a = 1,
           "one_by_one"_a = false)
      .def("predict", &predict, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("learn_one", &learn_one, "row"_a, "label"_a, "n_classes"_a)
      .def("predict_one", &predict_one, "row"_a, "out"_a.noconvert())
      .def("apply", &apply, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("refresh", &refresh, "n_threads"_a = 1)
      .def("relevance", &relevance, "n_threads"_a = 1)
      .def("tree", &tree, "index"_a)
      .def("check_invariants", [](const LabelForest& self) { without_gil([&] { check_invariants(self); }); })
      .def("get_state", &get_state)
      .def_static("from_state", &from_state, "state"_a)
      .def_prop_ro("n_trees", [](const LabelForest& self) { return self.options().n_trees; })
      .def_prop_ro("n_features", [](const LabelForest& self) { return self.options().n_features; })
      .def_prop_ro("n_points", [](const LabelForest& self) { return without_gil([&] { return self.n_points(); }); })
      .def_prop_ro("nbytes", [](const LabelForest& self) { return without_gil([&] { return self.nbytes(); }); })
      .def_prop_ro("n_classes", [](const LabelForest& self) { return without_gil([&] { return self.n_classes(); }); })
      .def_prop_ro(
          "feature_weights",
          [](const LabelForest& self) { return to_array(without_gil([&] { return self.measure().weights; })); },
          nb::rv_policy::move)
      .def_prop_ro("discount_rate",
                   [](const LabelForest& self) { return without_gil([&] { return self.measure().discount_rate; }); })
      .def_prop_ro("leaf_discount",
                   [](const LabelForest& self) { return without_gil([&] { return self.measure().leaf_discount; }); });
}

}  // namespace onlineforest::bindings
