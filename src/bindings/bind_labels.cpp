// Binds the forest over labels.
#include <algorithm>
#include <span>

#include "bind_common.hpp"
#include "bindings.hpp"
#include "labels/label_forest.hpp"
#include "one_row.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

// A namespace of its own: a unity build joins this file with others that have functions of the same names.
namespace labels {

namespace {

void init(LabelForest* self, std::size_t n_trees, std::size_t n_features, double lifetime, double discount,
          std::int32_t min_samples_split, const std::string& weight_rule,
          const std::optional<InArray<double, 1>>& weights, std::uint64_t seed, std::optional<double> leaf_discount,
          std::size_t window, std::size_t reservoir, double half_life, const HeldTrees& held) {
  new (self) LabelForest({common_options(n_trees, n_features, lifetime, discount, min_samples_split, weight_rule,
                                         weights, seed, window, reservoir, half_life, held),
                          leaf_discount.value_or(0.0), !leaf_discount});
}

void learn(LabelForest& self, const InArray<float, 2>& rows, const InArray<Label, 1>& labels, std::int32_t n_classes,
           std::size_t n_threads, bool one_by_one, const std::optional<InArray<Weight, 1>>& weights) {
  require_width(self, rows);
  const std::span<const Weight> of_rows = weights ? span_of(*weights) : std::span<const Weight>();
  run(n_threads,
      [&](const Call& call) { self.learn(span_of(rows), span_of(labels), n_classes, call, one_by_one, of_rows); });
}

OutArray<double, 2> predict(const LabelForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  auto result = run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), call); });
  const std::size_t n_classes = rows.shape(0) == 0 ? LabelForest::kWidthWithoutRows : result.size() / rows.shape(0);
  return to_array(std::move(result), {rows.shape(0), n_classes});
}

void learn_one(LabelForest& self, nb::handle x, Label label, std::int32_t n_classes, Weight weight) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  run(1,
      [&](const Call& call) { self.learn(row, std::span(&label, 1), n_classes, call, false, std::span(&weight, 1)); });
}

// Puts the probabilities into `out`; false if its length is not the number of classes.
bool predict_one(const LabelForest& self, nb::handle x, const InOutArray<double, 1>& out) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  const auto probabilities = run(1, [&](const Call& call) { return self.predict(row, call); });
  if (probabilities.size() != out.size()) return false;
  std::ranges::copy(probabilities, out.data());
  return true;
}

nb::dict tree(const LabelForest& self, std::size_t index) {
  LabelTreeArrays arrays = run([&] { return tree_arrays(self, index); });
  nb::dict dict = common_arrays(arrays, self.options().n_features);
  dict["count"] = to_array(std::move(arrays.count), {arrays.n_nodes, arrays.n_classes});
  dict["labels"] = to_array(std::move(arrays.labels), {arrays.n_nodes, arrays.n_classes});
  return dict;
}

}  // namespace

}  // namespace labels

void bind_labels(nb::module_& module) {
  bind_common<LabelForest>(module, "LabelForest", "A Mondrian forest over labels 0, 1, ... Rows are float32.")
      .def("__init__", &labels::init, "n_trees"_a, "n_features"_a, nb::kw_only(), "lifetime"_a, "discount"_a,
           "min_samples_split"_a, "weight_rule"_a, "weights"_a.noconvert() = nb::none(), "seed"_a,
           "leaf_discount"_a.none() = 0.0, "window"_a = 0, "reservoir"_a = 0, "half_life"_a = kInfinity,
           "held"_a = nb::none())
      .def("learn", &labels::learn, "rows"_a.noconvert(), "labels"_a.noconvert(), "n_classes"_a, "n_threads"_a = 1,
           "one_by_one"_a = false, "weights"_a.noconvert() = nb::none())
      .def("predict", &labels::predict, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("learn_one", &labels::learn_one, "row"_a, "label"_a, "n_classes"_a, "weight"_a = kOne)
      .def("predict_one", &labels::predict_one, "row"_a, "out"_a.noconvert())
      .def("tree", &labels::tree, "index"_a)
      .def_prop_ro("n_classes", [](const LabelForest& self) { return run([&] { return self.n_classes(); }); })
      .def_prop_ro("leaf_discount",
                   [](const LabelForest& self) { return run([&] { return self.measure().prior.leaf_discount; }); });
}

}  // namespace onlineforest::bindings
