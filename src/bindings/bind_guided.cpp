// Binds the order-free forest.
#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "calls.hpp"
#include "guided/forest.hpp"
#include "keeping.hpp"
#include "one_row.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace of_guided {

namespace {

using guided::Forest;
using guided::Label;
using guided::Word;

void init(Forest* self, std::size_t n_trees, std::size_t n_features, std::uint64_t seed, std::int64_t min_samples_split,
          double max_samples, double discount, std::size_t window, std::size_t reservoir, double half_life,
          int key_bits) {
  guided::Options options;
  options.n_trees = n_trees;
  options.n_features = n_features;
  options.seed = seed;
  options.min_samples_split = min_samples_split;
  options.max_samples = max_samples;
  options.discount = discount;
  options.keep = keep_of(window, reservoir, half_life);
  options.key_bits = key_bits;
  new (self) Forest(options);
}

void learn(Forest& self, const InArray<float, 2>& rows, const InArray<Label, 1>& labels, std::size_t n_threads) {
  require_width(self, rows);
  run(n_threads, [&](const Call& call) { self.learn(span_of(rows), span_of(labels), call); });
}

void learn_one(Forest& self, nb::handle x, Label label) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  run(1, [&](const Call& call) { self.learn(row, std::span(&label, 1), call); });
}

OutArray<double, 2> predict(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  auto result = run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), call); });
  const std::size_t n_labels =
      rows.shape(0) == 0 ? static_cast<std::size_t>(self.n_labels()) : result.size() / rows.shape(0);
  return to_array(std::move(result), {rows.shape(0), n_labels});
}

// Puts the probabilities into `out`; false if its length is not the number of labels.
bool predict_one(const Forest& self, nb::handle x, const InOutArray<double, 1>& out) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  const auto probabilities = run(1, [&](const Call& call) { return self.predict(row, call); });
  if (probabilities.size() != out.size()) return false;
  std::ranges::copy(probabilities, out.data());
  return true;
}

OutArray<NodeIndex, 2> apply(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.apply(span_of(rows), call); }),
                  {rows.shape(0), self.options().n_trees});
}

// Probabilities of each sample from the trees that have not learned it, and the number of these trees.
nb::typed<nb::tuple, OutArray<double, 2>, OutArray<std::int64_t, 1>> left_out(const Forest& self,
                                                                              std::size_t n_threads) {
  Forest::LeftOut result = run(n_threads, [&](const Call& call) { return self.predict_left_out(call); });
  const std::size_t n = result.n_trees.size();
  const std::size_t n_labels = n == 0 ? static_cast<std::size_t>(self.n_labels()) : result.probabilities.size() / n;
  return nb::make_tuple(to_array(std::move(result.probabilities), {n, n_labels}), to_array(std::move(result.n_trees)));
}

nb::dict get_state(const Forest& self) {
  guided::ForestState state = run([&] { return self.save(); });
  const guided::Options& options = state.options;
  const std::size_t n = state.labels.size();
  nb::dict dict;
  dict["options.counts"] = to_array(std::vector<std::uint64_t>{
      options.n_trees, options.n_features, options.seed, static_cast<std::uint64_t>(options.min_samples_split),
      static_cast<std::uint64_t>(options.keep.rule), options.keep.capacity,
      static_cast<std::uint64_t>(options.key_bits), state.n_seen});
  dict["options.numbers"] =
      to_array(std::vector<double>{options.max_samples, options.discount, options.keep.half_life, state.turned_away});
  dict["label_hashes"] = to_array(std::move(state.label_hashes));
  dict["are_declared"] = to_array(std::move(state.are_declared));
  dict["rows"] = to_array(std::move(state.rows), {n, options.n_features});
  dict["labels"] = to_array(std::move(state.labels));
  dict["sample_of"] = to_array(std::move(state.sample_of));
  dict["serials"] = to_array(std::move(state.serials));
  return dict;
}

template <class T, std::size_t Dims = 1>
std::vector<T> entry(const nb::dict& dict, const char* name) {
  InArray<T, Dims> array;
  if (!dict.contains(name) || !nb::try_cast(dict[name], array, false)) {
    throw std::invalid_argument(std::string("the state has no entry ") + name + " of the expected type");
  }
  return vector_of(array);
}

std::unique_ptr<Forest> from_state(const nb::dict& dict, std::size_t n_threads) {
  guided::ForestState state;
  const auto counts = entry<std::uint64_t>(dict, "options.counts");
  const auto numbers = entry<double>(dict, "options.numbers");
  if (counts.size() != 8 || numbers.size() != 4) throw std::invalid_argument("the options of the state are not whole");
  state.options.n_trees = counts[0];
  state.options.n_features = counts[1];
  state.options.seed = counts[2];
  state.options.min_samples_split = static_cast<std::int64_t>(counts[3]);
  if (counts[4] > static_cast<std::uint64_t>(KeepRule::kSample)) {
    throw std::invalid_argument("the rule for keeping samples is unknown: " + std::to_string(counts[4]));
  }
  state.options.keep.rule = static_cast<KeepRule>(counts[4]);
  state.options.keep.capacity = counts[5];
  state.options.key_bits = static_cast<int>(std::min<std::uint64_t>(counts[6], 65));
  state.n_seen = counts[7];
  state.options.max_samples = numbers[0];
  state.options.discount = numbers[1];
  state.options.keep.half_life = numbers[2];
  state.turned_away = numbers[3];
  state.label_hashes = entry<std::uint64_t>(dict, "label_hashes");
  state.are_declared = entry<std::uint8_t>(dict, "are_declared");
  state.rows = entry<float, 2>(dict, "rows");
  state.labels = entry<Label>(dict, "labels");
  state.sample_of = entry<Slot>(dict, "sample_of");
  state.serials = entry<Serial>(dict, "serials");
  return run(n_threads, [&](const Call&) { return Forest::restore(state); });
}

nb::dict tree(const Forest& self, std::size_t index) {
  guided::TreeTable table = run(1, [&](const Call& call) { return self.table(index, call); });
  nb::dict dict;
  dict["parent"] = to_array(std::move(table.parent));
  dict["left"] = to_array(std::move(table.left));
  dict["right"] = to_array(std::move(table.right));
  dict["feature"] = to_array(std::move(table.feature));
  dict["threshold"] = to_array(std::move(table.threshold));
  dict["weight"] = to_array(std::move(table.weight));
  dict["counts_end"] = to_array(std::move(table.counts_end));
  dict["label"] = to_array(std::move(table.label));
  dict["count"] = to_array(std::move(table.count));
  return dict;
}

}  // namespace

}  // namespace of_guided

void bind_guided(nb::module_& module) {
  using of_guided::Forest;
  nb::class_<Forest> forest(module, "GuidedForest", "An order-free forest over labels 0, 1, ... Rows are float32.");
  bind_keeping(forest);
  forest
      .def("__init__", &of_guided::init, "n_trees"_a, "n_features"_a, nb::kw_only(), "seed"_a,
           "min_samples_split"_a = 2, "max_samples"_a = 1.0, "discount"_a = 0.2, "window"_a = 0, "reservoir"_a = 0,
           "half_life"_a = kInfinity, "key_bits"_a = 64)
      .def(
          "set_labels",
          [](Forest& self, const InArray<std::uint64_t, 1>& hashes, const InArray<std::uint8_t, 1>& are_declared) {
            run([&] { self.set_labels(span_of(hashes), span_of(are_declared)); });
          },
          "hashes"_a.noconvert(), "are_declared"_a.noconvert())
      .def("learn", &of_guided::learn, "rows"_a.noconvert(), "labels"_a.noconvert(), "n_threads"_a = 1)
      .def("learn_one", &of_guided::learn_one, "row"_a, "label"_a)
      .def("predict", &of_guided::predict, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("predict_one", &of_guided::predict_one, "row"_a, "out"_a.noconvert())
      .def(
          "complete",
          [](Forest& self, std::size_t n_threads) { run(n_threads, [&](auto& call) { self.complete(call); }); },
          "n_threads"_a = 1)
      .def("tree", &of_guided::tree, "index"_a)
      .def("apply", &of_guided::apply, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("left_out", &of_guided::left_out, "n_threads"_a = 1)
      .def(
          "importances",
          [](const Forest& self, std::size_t n_threads) {
            return to_array(run(n_threads, [&](auto& call) { return self.importances(call); }));
          },
          "n_threads"_a = 1)
      .def("get_state", &of_guided::get_state)
      .def_static("from_state", &of_guided::from_state, "state"_a, "n_threads"_a = 1)
      .def_prop_ro("n_trees", [](const Forest& self) { return self.options().n_trees; })
      .def_prop_ro("n_labels", [](const Forest& self) { return run([&] { return self.n_labels(); }); })
      .def_prop_ro("labels_version", [](const Forest& self) { return run([&] { return self.labels_version(); }); })
      .def_prop_ro(
          "label_weights", [](const Forest& self) { return to_array(run([&] { return self.label_weights(); })); },
          nb::rv_policy::move);
}

}  // namespace onlineforest::bindings
