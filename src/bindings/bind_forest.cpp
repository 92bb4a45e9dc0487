// Binds the forests. The GIL is released around every call into the core; a call that is stopped by a signal raises
// what the signal's Python handler raised.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bind_parts.hpp"
#include "bind_state.hpp"
#include "calls.hpp"
#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"
#include "one_row.hpp"
#include "state/archive.hpp"
#include "state/invariants.hpp"
#include "state/tree_arrays.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace {

WeightRule weight_rule_of(const std::string& name) {
  if (name == "unit") return WeightRule::kUnit;
  if (name == "fixed") return WeightRule::kFixed;
  if (name == "range") return WeightRule::kRange;
  if (name == "learned") return WeightRule::kLearned;
  throw std::invalid_argument("weight_rule must be 'unit', 'fixed', 'range' or 'learned', got '" + name + "'");
}

std::optional<TreeRange> range_of(const std::optional<std::pair<std::size_t, std::size_t>>& held) {
  if (!held) return std::nullopt;
  return TreeRange{held->first, held->second};
}

KeepOptions keep_of(std::size_t window, std::size_t reservoir, double half_life) {
  if (window > 0 && reservoir > 0) throw std::invalid_argument("window and reservoir exclude each other");
  if (window > 0) return {KeepRule::kLatest, window, kInfinity};
  if (reservoir > 0) return {KeepRule::kSample, reservoir, half_life};
  return {};
}

void init_label_forest(LabelForest* self, std::size_t n_trees, std::size_t n_features, double lifetime, double discount,
                       std::int32_t min_samples_split, const std::string& weight_rule,
                       const std::optional<InArray<double, 1>>& weights, std::uint64_t seed,
                       std::optional<double> leaf_discount, std::size_t window, std::size_t reservoir, double half_life,
                       const std::optional<std::pair<std::size_t, std::size_t>>& held) {
  new (self) LabelForest({{n_trees, n_features, lifetime, discount, min_samples_split, weight_rule_of(weight_rule),
                           weights ? vector_of(*weights) : std::vector<double>(), seed,
                           keep_of(window, reservoir, half_life), range_of(held)},
                          leaf_discount.value_or(0.0),
                          !leaf_discount});
}

void init_gaussian_forest(GaussianForest* self, std::size_t n_trees, std::size_t n_features, double lifetime,
                          std::optional<double> discount, std::int32_t min_samples_split,
                          const std::string& weight_rule, const std::optional<InArray<double, 1>>& weights,
                          std::uint64_t seed, std::optional<double> noise, bool trend, bool calibrate,
                          std::size_t window, std::size_t reservoir, double half_life,
                          const std::optional<std::pair<std::size_t, std::size_t>>& held) {
  GaussianOptions options{{n_trees, n_features, lifetime, 0.0, min_samples_split, weight_rule_of(weight_rule),
                           weights ? vector_of(*weights) : std::vector<double>(), seed,
                           keep_of(window, reservoir, half_life), range_of(held)}};
  options.discount = discount.value_or(options.discount);
  options.learns_discount = !discount;
  options.noise = noise.value_or(options.noise);
  options.learns_noise = !noise;
  options.has_trend = trend;
  options.calibrates = calibrate;
  new (self) GaussianForest(std::move(options));
}

void learn_labels(LabelForest& self, const InArray<float, 2>& rows, const InArray<Label, 1>& labels,
                  std::int32_t n_classes, std::size_t n_threads, bool one_by_one) {
  require_width(self, rows);
  without_gil([&] { self.learn(span_of(rows), span_of(labels), n_classes, n_threads, signal_arrived, one_by_one); });
}

OutArray<double, 2> predict_labels(const LabelForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  std::size_t n_classes = 0;
  auto result = without_gil([&] {
    auto probabilities = self.predict(span_of(rows), n_threads, signal_arrived);
    n_classes = rows.shape(0) == 0 ? 0 : probabilities.size() / rows.shape(0);
    return probabilities;
  });
  return to_array(std::move(result), {rows.shape(0), n_classes});
}

void learn_one_label(LabelForest& self, nb::handle x, Label label, std::int32_t n_classes) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  without_gil([&] { self.learn(row, std::span(&label, 1), n_classes, 1, signal_arrived); });
}

// Puts the probabilities into `out`; false if it is not as long as there are classes.
bool predict_one_label(const LabelForest& self, nb::handle x, const InOutArray<double, 1>& out) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  const auto probabilities = without_gil([&] { return self.predict(row, 1, signal_arrived); });
  if (probabilities.size() != out.size()) return false;
  std::ranges::copy(probabilities, out.data());
  return true;
}

void learn_values(GaussianForest& self, const InArray<float, 2>& rows, const InArray<double, 1>& values,
                  std::size_t n_threads, bool one_by_one) {
  require_width(self, rows);
  without_gil([&] { self.learn(span_of(rows), span_of(values), n_threads, signal_arrived, one_by_one); });
}

OutArray<double, 2> predict_values(const GaussianForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(without_gil([&] { return self.predict(span_of(rows), n_threads, signal_arrived); }),
                  {rows.shape(0), 2});
}

void learn_one_value(GaussianForest& self, nb::handle x, double value) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  without_gil([&] { self.learn(row, std::span(&value, 1), 1, signal_arrived); });
}

nb::tuple predict_one_value(const GaussianForest& self, nb::handle x) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  const auto moments = without_gil([&] { return self.predict(row, 1, signal_arrived); });
  return nb::make_tuple(moments[0], moments[1]);
}

OutArray<double, 2> quantiles(const GaussianForest& self, const InArray<float, 2>& rows,
                              const InArray<double, 1>& levels, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(
      without_gil([&] { return self.quantiles(span_of(rows), span_of(levels), n_threads, signal_arrived); }),
      {rows.shape(0), levels.shape(0)});
}

OutArray<double, 1> log_density(const GaussianForest& self, const InArray<float, 2>& rows,
                                const InArray<double, 1>& values, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(
      without_gil([&] { return self.log_density(span_of(rows), span_of(values), n_threads, signal_arrived); }));
}

// What is expected at rows before looking at the points near them.
OutArray<double, 1> trend(const GaussianForest& self, const InArray<float, 2>& rows) {
  require_width(self, rows);
  const Trend trend = without_gil([&] { return self.measure().prior.trend; });
  std::vector<double> result;
  for (std::size_t i = 0; i < rows.shape(0); ++i) result.push_back(trend.at(rows.data() + i * rows.shape(1)));
  return to_array(std::move(result));
}

OutArray<double, 2> predict_left_out(const GaussianForest& self, const InArray<Slot, 1>& slots, std::size_t n_threads) {
  return to_array(without_gil([&] { return self.predict_left_out(span_of(slots), n_threads, signal_arrived); }),
                  {slots.shape(0), 2});
}

template <class Forest>
OutArray<NodeIndex, 2> apply(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(without_gil([&] { return self.apply(span_of(rows), n_threads, signal_arrived); }),
                  {rows.shape(0), self.options().trees_held().size()});
}

template <class Forest>
OutArray<double, 1> novelty(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(without_gil([&] { return self.novelty(span_of(rows), n_threads, signal_arrived); }));
}

template <class Forest>
std::unique_ptr<Forest> from_state(const nb::dict& dict, std::size_t n_threads, std::size_t max_bytes,
                                   std::size_t n_trees, std::size_t first_tree) {
  auto state = state_from_dict<Forest>(dict);
  if (n_trees > 0) {  // it is that of a part
    if (first_tree >= n_trees || state.trees.size() > n_trees - first_tree) {
      throw std::invalid_argument("not the state of a forest: it has trees beyond those of the whole");
    }
    state.options.n_trees = n_trees;
    state.options.held = TreeRange{first_tree, first_tree + state.trees.size()};
  }
  const RestoreOptions options{n_threads, max_bytes, signal_arrived};
  return without_gil([&] { return Archive<Forest>::restore(state, options); });
}

template <class Forest>
void refresh(Forest& self, std::size_t n_threads) {
  without_gil([&] { self.refresh(n_threads, signal_arrived); });
}

template <class Forest>
void forget(Forest& self, const InArray<Serial, 1>& serials, std::size_t n_threads) {
  without_gil([&] { self.forget(span_of(serials), n_threads, signal_arrived); });
}

// The places of rows that are not stored; if there are any, nothing was forgotten.
template <class Forest>
OutArray<std::int64_t, 1> forget_rows(Forest& self, const InArray<float, 2>& rows,
                                      const InArray<typename Forest::Value, 1>& values, std::size_t n_threads) {
  require_width(self, rows);
  const auto missing =
      without_gil([&] { return self.forget(span_of(rows), span_of(values), n_threads, signal_arrived); });
  return to_array(std::vector<std::int64_t>(missing.begin(), missing.end()));
}

template <class Forest>
OutArray<std::uint8_t, 1> are_stored(const Forest& self, const InArray<Serial, 1>& serials) {
  return to_array(without_gil([&] { return self.are_stored(span_of(serials)); }));
}

template <class Forest>
void keep_latest(Forest& self, std::size_t n, std::size_t n_threads) {
  without_gil([&] { self.keep_latest(n, n_threads, signal_arrived); });
}

template <class Forest>
OutArray<double, 1> relevance(const Forest& self, std::size_t n_threads) {
  return to_array(without_gil([&] { return self.relevance(n_threads, signal_arrived); }));
}

nb::dict common_arrays(TreeArrays& arrays, std::size_t n_features) {
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

nb::dict tree_of_labels(const LabelForest& self, std::size_t index) {
  LabelTreeArrays arrays = without_gil([&] { return tree_arrays(self, index); });
  nb::dict dict = common_arrays(arrays, self.options().n_features);
  dict["count"] = to_array(std::move(arrays.count), {arrays.n_nodes, arrays.n_classes});
  dict["labels"] = to_array(std::move(arrays.labels), {arrays.n_nodes, arrays.n_classes});
  return dict;
}

nb::dict tree_of_values(const GaussianForest& self, std::size_t index) {
  GaussianTreeArrays arrays = without_gil([&] { return tree_arrays(self, index); });
  nb::dict dict = common_arrays(arrays, self.options().n_features);
  dict["mean"] = to_array(std::move(arrays.mean));
  dict["variance"] = to_array(std::move(arrays.variance));
  return dict;
}

// What all forests have.
template <class Forest>
nb::class_<Forest> bind_common(nb::module_& module, const char* name, const char* doc) {
  nb::class_<Forest> forest(module, name, doc);
  forest.def("apply", &apply<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("novelty", &novelty<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("refresh", &refresh<Forest>, "n_threads"_a = 1)
      .def("forget", &forget<Forest>, "serials"_a.noconvert(), "n_threads"_a = 1)
      .def("forget_rows", &forget_rows<Forest>, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1)
      .def("are_stored", &are_stored<Forest>, "serials"_a.noconvert())
      .def("keep_latest", &keep_latest<Forest>, "n"_a, "n_threads"_a = 1)
      .def_prop_ro("n_seen", [](const Forest& self) { return without_gil([&] { return self.n_seen(); }); })
      .def_prop_ro(
          "serials", [](const Forest& self) { return to_array(without_gil([&] { return self.serials(); })); },
          nb::rv_policy::move)
      .def("relevance", &relevance<Forest>, "n_threads"_a = 1)
      .def("check_invariants", [](const Forest& self) { without_gil([&] { check_invariants(self); }); })
      .def("get_state",
           [](const Forest& self) {
             return state_to_dict(without_gil([&] { return Archive<Forest>::save(self, signal_arrived); }));
           })
      .def_static("from_state", &from_state<Forest>, "state"_a, "n_threads"_a = 1,
                  "max_bytes"_a = std::numeric_limits<std::size_t>::max(), nb::kw_only(), "n_trees"_a = 0,
                  "first_tree"_a = 0)
      .def_prop_ro("n_trees", [](const Forest& self) { return self.options().trees_held().size(); })
      .def_prop_ro("n_features", [](const Forest& self) { return self.options().n_features; })
      .def_prop_ro("n_points", [](const Forest& self) { return without_gil([&] { return self.n_points(); }); })
      .def_prop_ro("nbytes", [](const Forest& self) { return without_gil([&] { return self.nbytes(); }); })
      .def_prop_ro(
          "feature_weights",
          [](const Forest& self) { return to_array(without_gil([&] { return self.measure().weights; })); },
          nb::rv_policy::move)
      .def_prop_ro("discount_rate",
                   [](const Forest& self) { return without_gil([&] { return self.measure().discount_rate; }); });
  return forest;
}

}  // namespace

void bind_forests(nb::module_& module) {
  module.attr("LARGEST_WEIGHT") = kLargestWeight;
  module.attr("LARGEST_VALUE") = kLargestValue;
  nb::exception<TooLarge>(module, "TooLargeError", PyExc_ValueError);
  auto of_labels = bind_common<LabelForest>(module, "LabelForest",
                                            "A Mondrian forest over labels 0, 1, ... Rows are finite float32.");
  of_labels
      .def("__init__", &init_label_forest, "n_trees"_a, "n_features"_a, nb::kw_only(), "lifetime"_a, "discount"_a,
           "min_samples_split"_a, "weight_rule"_a, "weights"_a.noconvert() = nb::none(), "seed"_a,
           "leaf_discount"_a.none() = 0.0, "window"_a = 0, "reservoir"_a = 0, "half_life"_a = kInfinity,
           "held"_a = nb::none())
      .def("learn", &learn_labels, "rows"_a.noconvert(), "labels"_a.noconvert(), "n_classes"_a, "n_threads"_a = 1,
           "one_by_one"_a = false)
      .def("predict", &predict_labels, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("learn_one", &learn_one_label, "row"_a, "label"_a, "n_classes"_a)
      .def("predict_one", &predict_one_label, "row"_a, "out"_a.noconvert())
      .def("tree", &tree_of_labels, "index"_a)
      .def_prop_ro("n_classes", [](const LabelForest& self) { return without_gil([&] { return self.n_classes(); }); })
      .def_prop_ro("leaf_discount", [](const LabelForest& self) {
        return without_gil([&] { return self.measure().prior.leaf_discount; });
      });
  auto of_numbers =
      bind_common<GaussianForest>(module, "GaussianForest", "A Mondrian forest over numbers. Rows are finite float32.");
  of_numbers
      .def("__init__", &init_gaussian_forest, "n_trees"_a, "n_features"_a, nb::kw_only(), "lifetime"_a,
           "discount"_a.none(), "min_samples_split"_a, "weight_rule"_a, "weights"_a.noconvert() = nb::none(), "seed"_a,
           "noise"_a.none(), "trend"_a, "calibrate"_a, "window"_a = 0, "reservoir"_a = 0, "half_life"_a = kInfinity,
           "held"_a = nb::none())
      .def("learn", &learn_values, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1,
           "one_by_one"_a = false)
      .def("predict", &predict_values, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("learn_one", &learn_one_value, "row"_a, "value"_a)
      .def("predict_one", &predict_one_value, "row"_a)
      .def("quantiles", &quantiles, "rows"_a.noconvert(), "levels"_a.noconvert(), "n_threads"_a = 1)
      .def("log_density", &log_density, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1)
      .def("predict_left_out", &predict_left_out, "slots"_a.noconvert(), "n_threads"_a = 1)
      .def("tree", &tree_of_values, "index"_a)
      .def_prop_ro("noise",
                   [](const GaussianForest& self) { return without_gil([&] { return self.measure().prior.noise; }); })
      .def_prop_ro("scale",
                   [](const GaussianForest& self) { return without_gil([&] { return self.measure().prior.scale; }); })
      .def("trend", &trend, "rows"_a.noconvert())
      .def_prop_ro("calibration_scale",
                   [](const GaussianForest& self) { return without_gil([&] { return self.calibration().scale; }); });
  bind_parts(module, of_labels, of_numbers);
}

}  // namespace onlineforest::bindings
