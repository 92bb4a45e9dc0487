// Binds the order-free forests.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
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
#include "one_row.hpp"
#include "orderfree/labels/forest.hpp"
#include "orderfree/numbers/forest.hpp"
#include "samples/weight.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace of_orderfree {

namespace {

using orderfree::Label;
using orderfree::NumberForest;
using orderfree::NumberLeaf;
using orderfree::TreeMoments;

using Hashes = ConstantArray<orderfree::Word, 1>;

// A forest that keeps the array of the hashes of its known labels: to make an array takes longer than to ask ten trees.
class LabelForest : public orderfree::LabelForest {
 public:
  using orderfree::LabelForest::LabelForest;

  // An array of these hashes, the same object while they do not change.
  nb::typed<nb::object, Hashes> array_of(std::vector<orderfree::Word> hashes) const {
    const nb::ft_lock_guard lock(mutex_);
    if (!array_ || hashes != hashes_) {
      array_ = nb::cast(to_constant_array(hashes));
      hashes_ = std::move(hashes);
    }
    return array_;
  }

 private:
  mutable nb::ft_mutex mutex_;
  mutable std::vector<orderfree::Word> hashes_;
  mutable nb::object array_;
};

// Mean, variance within leaves and variance between trees.
OutArray<double, 2> array_of_moments(const std::vector<TreeMoments>& moments) {
  std::vector<double> numbers;
  numbers.reserve(3 * moments.size());
  for (const auto& [mean, within, between] : moments) numbers.insert(numbers.end(), {mean, within, between});
  return to_array(std::move(numbers), {moments.size(), 3});
}

// How often samples of these weights count.
OutArray<double, 1> multiplicities(const std::vector<Weight>& weights) {
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
OutArray<NodeIndex, 2> apply(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.apply(span_of(rows), call); }),
                  {rows.shape(0), self.options().n_trees});
}

// If each sample counts once.
constexpr std::string_view kOptional[] = {"weights"};

template <class Forest>
nb::dict get_state(const Forest& self) {
  auto state = run([&] { return self.save(); });
  nb::dict dict;
  orderfree::write_state(std::move(state), [&](const char* name, auto numbers) {
    if (!numbers.empty() || !is_one_of(name, kOptional)) dict[name] = to_array(std::move(numbers));
  });
  return dict;
}

// Some trees of a forest, if n_trees is not 0: those from first_tree on.
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

nb::dict label_tree(const LabelForest& self, std::size_t index) {
  auto table = run(1, [&](const Call& call) { return self.table(index, call); });
  nb::dict dict = dict_of(table, self.options().layout);
  dict["counts_end"] = to_array(std::move(table.columns.counts_end));
  dict["label"] = to_array(std::move(table.columns.label));
  dict["count"] = multiplicities(table.columns.count);
  return dict;
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
  return dict;
}

// The hashes of the known labels in the order of codes, and the probabilities of these labels.
template <std::size_t Dims>
using Answer = nb::typed<nb::tuple, Hashes, OutArray<double, Dims>>;

Answer<2> tuple_of(const LabelForest& self, LabelForest::Answer answer, std::size_t n_rows) {
  const std::size_t n_known = answer.hashes.size();
  return nb::make_tuple(self.array_of(std::move(answer.hashes)),
                        to_array(std::move(answer.probabilities), {n_rows, n_known}));
}

Answer<2> predict_labels(const LabelForest& self, const InArray<float, 2>& rows, std::size_t n_threads, double power,
                         double spread) {
  require_width(self, rows);
  return tuple_of(self,
                  run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), {power, spread}, call); }),
                  rows.shape(0));
}

Answer<1> predict_labels_of_one(const LabelForest& self, nb::handle x, double power, double spread) {
  const std::vector<float> row = one_row(x, self.width());
  auto answer = run(1, [&](const Call& call) { return self.predict(row, {power, spread}, call); });
  return nb::make_tuple(self.array_of(std::move(answer.hashes)), small_array(answer.probabilities));
}

// Predictions of each sample from the trees that have not learned it, and the number of these trees.
using LeftOut = nb::typed<nb::tuple, OutArray<double, 2>, OutArray<std::int64_t, 1>>;

LeftOut left_out_labels(const LabelForest& self, std::size_t n_threads) {
  LabelForest::LeftOut result = run(n_threads, [&](const Call& call) { return self.predict_left_out(call); });
  const std::size_t n = result.n_trees.size();
  const std::size_t n_known = n == 0 ? self.known_labels().size() : result.probabilities.size() / n;
  return nb::make_tuple(to_array(std::move(result.probabilities), {n, n_known}), to_array(std::move(result.n_trees)));
}

OutArray<std::uint64_t, 2> array_of_masses(const LabelForest& self, std::vector<std::uint64_t> sums, std::size_t n) {
  const std::size_t width = n == 0 ? static_cast<std::size_t>(self.n_labels()) + 1 : sums.size() / n;
  return to_array(std::move(sums), {n, width});
}

// What the trees that leave out the samples that calibrate say about them: the labels that are held, the true labels,
// the weight of each sample, and for each sample the masses of all labels and the rest, summed over these trees and
// over half of them.
using Votes = nb::typed<nb::tuple, OutArray<Label, 1>, OutArray<Label, 1>, OutArray<Weight, 1>,
                        OutArray<std::uint64_t, 2>, OutArray<std::uint64_t, 2>>;

Votes tuple_of(orderfree::LeftOutVotes votes) {
  const std::size_t n = votes.labels.size(), width = votes.n_labels + 1;
  return nb::make_tuple(to_array(std::move(votes.held)), to_array(std::move(votes.labels)),
                        to_array(std::move(votes.weights)), to_array(std::move(votes.all), {n, width}),
                        to_array(std::move(votes.half), {n, width}));
}

Votes votes(const LabelForest& self, std::size_t n_threads, std::size_t begin, std::size_t end) {
  return tuple_of(run(n_threads, [&](const Call& call) { return self.left_out_votes(begin, end, call); }));
}

Votes votes_at(const LabelForest& self, std::size_t n_seen, std::size_t n_threads) {
  return tuple_of(run(n_threads, [&](const Call& call) { return self.left_out_votes_at(n_seen, call); }));
}

Votes votes_after(const LabelForest& self, const InArray<float, 2>& rows, const InArray<Label, 1>& labels,
                  std::size_t n_threads, const std::optional<InArray<Weight, 1>>& weights) {
  require_width(self, rows);
  const std::span<const Weight> of_rows = weights ? span_of(*weights) : std::span<const Weight>();
  return tuple_of(run(n_threads, [&](const Call& call) {
    return self.left_out_votes_after(span_of(rows), span_of(labels), of_rows, call);
  }));
}

// Such votes of all trees of a forest.
orderfree::LeftOutVotes votes_of(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                                 const InArray<Weight, 1>& weights, const InArray<std::uint64_t, 2>& all,
                                 const InArray<std::uint64_t, 2>& half) {
  const auto copied = []<class T>(std::span<const T> numbers) {
    return std::vector<T>(numbers.begin(), numbers.end());
  };
  require(all.shape(1) > 0, "the votes have no column for the rest");
  orderfree::LeftOutVotes votes{all.shape(1) - 1,         copied(span_of(held)), copied(span_of(labels)),
                                copied(span_of(weights)), copied(span_of(all)),  copied(span_of(half))};
  check_votes(votes);
  return votes;
}

// The powers for all trees of a forest and for those that vote, and the share that is spread evenly.
using Calibration = nb::typed<nb::tuple, double, double, double>;

// The calibration that votes give in a forest of n_trees.
Calibration calibration_by(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                           const InArray<Weight, 1>& weights, const InArray<std::uint64_t, 2>& all,
                           const InArray<std::uint64_t, 2>& half, std::size_t n_trees) {
  const orderfree::LeftOutVotes votes = votes_of(held, labels, weights, all, half);
  const auto found = run([&] { return orderfree::find_calibration(votes, n_trees); });
  return nb::make_tuple(found.of_all.power, found.of_voters.power, found.of_all.spread);
}

// The probabilities that votes give the samples that calibrate.
OutArray<double, 2> probabilities_by(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                                     const InArray<Weight, 1>& weights, const InArray<std::uint64_t, 2>& all,
                                     const InArray<std::uint64_t, 2>& half, double power, double spread) {
  const orderfree::LeftOutVotes votes = votes_of(held, labels, weights, all, half);
  orderfree::check_calibration({power, spread});
  auto result = run([&] { return orderfree::probabilities_by(votes, {power, spread}); });
  return to_array(std::move(result), {labels.shape(0), all.shape(1) - 1});
}

OutArray<double, 2> predict_numbers(const NumberForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return array_of_moments(run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), call); }));
}

// Mean, variance within leaves and variance between trees.
nb::typed<nb::tuple, double, double, double> predict_number_of_one(const NumberForest& self, nb::handle x) {
  const std::vector<float> row = one_row(x, self.width());
  const auto moments = run(1, [&](const Call& call) { return self.predict(row, call); });
  return nb::make_tuple(moments[0].mean, moments[0].within, moments[0].between);
}

LeftOut left_out_numbers(const NumberForest& self, std::size_t n_threads) {
  NumberForest::LeftOut result = run(n_threads, [&](const Call& call) { return self.predict_left_out(call); });
  return nb::make_tuple(array_of_moments(result.moments), to_array(std::move(result.n_trees)));
}

// Sums over the trees of a shard: for each row the masses of all labels and the rest.
OutArray<std::uint64_t, 2> masses(const LabelForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  auto sums = run(n_threads, [&](const Call& call) { return self.masses(span_of(rows), call); });
  return array_of_masses(self, std::move(sums), rows.shape(0));
}

// Of the samples [begin, end), in the order of serials: the same, and the number of trees that have not learned them.
nb::typed<nb::tuple, OutArray<std::uint64_t, 2>, OutArray<std::int64_t, 1>> left_out_masses(const LabelForest& self,
                                                                                            std::size_t begin,
                                                                                            std::size_t end,
                                                                                            std::size_t n_threads) {
  auto result = run(n_threads, [&](const Call& call) { return self.left_out_masses(begin, end, call); });
  return nb::make_tuple(array_of_masses(self, std::move(result.masses), end - begin),
                        to_array(std::move(result.n_trees)));
}

// The answer that the sums over all trees give.
Answer<2> finish(const LabelForest& self, const InArray<std::uint64_t, 2>& sums, double power, double spread) {
  return tuple_of(self, run([&] { return self.finish(span_of(sums), sums.shape(1), {power, spread}); }), sums.shape(0));
}

OutArray<double, 3> array_of_leaves(const std::vector<NumberLeaf>& leaves, std::size_t n_trees) {
  std::vector<double> numbers;
  numbers.reserve(2 * leaves.size());
  for (const auto& [mean, variance] : leaves) numbers.insert(numbers.end(), {mean, variance});
  return to_array(std::move(numbers), {leaves.size() / n_trees, n_trees, 2});
}

// For each row and tree of a shard, the mean and variance in the leaf; a negative variance if the tree is empty.
OutArray<double, 3> leaves(const NumberForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return array_of_leaves(run(n_threads, [&](const Call& call) { return self.leaves(span_of(rows), call); }),
                         self.options().n_trees);
}

// Of the samples [begin, end), in the order of serials: the places of those that a tree may have left out, and the same
// for them; a negative variance if the tree has learned the sample.
nb::typed<nb::tuple, OutArray<std::int64_t, 1>, OutArray<double, 3>> left_out_leaves(const NumberForest& self,
                                                                                     std::size_t begin, std::size_t end,
                                                                                     std::size_t n_threads) {
  auto result = run(n_threads, [&](const Call& call) { return self.left_out_leaves(begin, end, call); });
  return nb::make_tuple(to_array(std::move(result.places)), array_of_leaves(result.leaves, self.options().n_trees));
}

// For each row, what its leaves say, given as (n_rows, n_trees, 2) in the order of trees, and how many leaves it has;
// NaN if it has none.
nb::typed<nb::tuple, OutArray<double, 2>, OutArray<std::int64_t, 1>> moments_of_leaves(
    const InArray<double, 3>& leaves) {
  if (leaves.shape(2) != 2) {
    throw std::invalid_argument("a leaf has 2 numbers, got " + std::to_string(leaves.shape(2)));
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

// What both kinds have in common.
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
          "complete",
          [](Forest& self, std::size_t n_threads) { run(n_threads, [&](auto& call) { self.grow_all(call); }); },
          "n_threads"_a = 1)
      .def("apply", &apply<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def(
          "importances",
          [](const Forest& self, std::size_t n_threads) {
            return to_array(run(n_threads, [&](auto& call) { return self.importances(call); }),
                            {self.options().n_trees, self.options().layout.n_features});
          },
          "n_threads"_a = 1)
      .def(
          "count_as_seen", [](Forest& self, std::size_t n_seen) { run([&] { self.count_as_seen(n_seen); }); },
          "n_seen"_a)
      .def("get_state", &get_state<Forest>)
      .def_static("from_state", &from_state<Forest, Target>, "state"_a, "n_threads"_a = 1,
                  "max_bytes"_a = std::numeric_limits<std::size_t>::max(), nb::kw_only(), "n_trees"_a = 0,
                  "first_tree"_a = 0)
      .def_prop_ro(
          "n_levels", [](const Forest& self) { return to_array(run([&] { return self.n_levels(); })); },
          nb::rv_policy::move)
      .def(
          "levels",
          [](const Forest& self, std::size_t categorical) {
            return to_array(run([&] { return self.levels(categorical); }));
          },
          "categorical"_a)
      .def_prop_ro("n_trees", [](const Forest& self) { return self.options().n_trees; })
      .def_prop_ro("seed", [](const Forest& self) { return self.options().seed; })
      .def_prop_ro("version", [](const Forest& self) { return run([&] { return self.version(); }); })
      .def_prop_ro(
          "values", [](const Forest& self) { return to_array(run([&] { return self.values(); })); },
          nb::rv_policy::move)
      .def_prop_ro(
          "weights", [](const Forest& self) { return multiplicities(run([&] { return self.weights(); })); },
          nb::rv_policy::move)
      .def_prop_ro(
          "sample_numbers", [](const Forest& self) { return to_array(run([&] { return self.sample_numbers(); })); },
          nb::rv_policy::move);
}

}  // namespace

}  // namespace of_orderfree

void bind_orderfree(nb::module_& module) {
  using of_orderfree::LabelForest;
  using of_orderfree::NumberForest;
  nb::class_<LabelForest> labels(module, "OrderFreeLabelForest",
                                 "An order-free forest over labels 0, 1, ... Rows are float32.");
  of_orderfree::bind_common<LabelForest, orderfree::Labels>(labels);
  labels
      .def(
          "set_labels",
          [](LabelForest& self, const InArray<std::uint64_t, 1>& hashes, const InArray<std::uint8_t, 1>& are_declared) {
            run([&] { self.set_labels(span_of(hashes), span_of(are_declared)); });
          },
          "hashes"_a.noconvert(), "are_declared"_a.noconvert())
      .def("predict", &of_orderfree::predict_labels, "rows"_a.noconvert(), "n_threads"_a = 1, "power"_a = 1.0,
           "spread"_a = 0.0)
      .def("predict_one", &of_orderfree::predict_labels_of_one, "row"_a, "power"_a = 1.0, "spread"_a = 0.0)
      .def("votes", &of_orderfree::votes, "n_threads"_a = 1, "begin"_a = 0,
           "end"_a = std::numeric_limits<std::int64_t>::max())
      .def("votes_at", &of_orderfree::votes_at, "n_seen"_a, "n_threads"_a = 1)
      .def("votes_after", &of_orderfree::votes_after, "rows"_a.noconvert(), "labels"_a.noconvert(), "n_threads"_a = 1,
           "weights"_a.noconvert() = nb::none())
      .def("tree", &of_orderfree::label_tree, "index"_a)
      .def("left_out", &of_orderfree::left_out_labels, "n_threads"_a = 1)
      .def("masses", &of_orderfree::masses, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("left_out_masses", &of_orderfree::left_out_masses, "begin"_a, "end"_a, "n_threads"_a = 1)
      .def("finish", &of_orderfree::finish, "sums"_a.noconvert(), "power"_a = 1.0, "spread"_a = 0.0)
      .def_prop_ro("n_labels", [](const LabelForest& self) { return run([&] { return self.n_labels(); }); })
      .def_prop_ro("known_labels",
                   [](const LabelForest& self) { return self.array_of(run([&] { return self.known_labels(); })); })
      .def_prop_ro(
          "label_weights",
          [](const LabelForest& self) {
            return of_orderfree::multiplicities(run([&] { return self.label_weights(); }));
          },
          nb::rv_policy::move);
  module.def("calibration_by", &of_orderfree::calibration_by, "held"_a.noconvert(), "labels"_a.noconvert(),
             "weights"_a.noconvert(), "votes"_a.noconvert(), "half"_a.noconvert(), "n_trees"_a);
  module.def("probabilities_by", &of_orderfree::probabilities_by, "held"_a.noconvert(), "labels"_a.noconvert(),
             "weights"_a.noconvert(), "votes"_a.noconvert(), "half"_a.noconvert(), "power"_a, "spread"_a);
  nb::class_<NumberForest> numbers(module, "OrderFreeNumberForest",
                                   "An order-free forest over numbers. Rows are float32.");
  of_orderfree::bind_common<NumberForest, orderfree::Numbers>(numbers);
  numbers.def("predict", &of_orderfree::predict_numbers, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("predict_one", &of_orderfree::predict_number_of_one, "row"_a)
      .def("tree", &of_orderfree::number_tree, "index"_a)
      .def("left_out", &of_orderfree::left_out_numbers, "n_threads"_a = 1)
      .def("leaves", &of_orderfree::leaves, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("left_out_leaves", &of_orderfree::left_out_leaves, "begin"_a, "end"_a, "n_threads"_a = 1)
      .def(
          "of_all_samples",
          [](const NumberForest& self) {
            return of_orderfree::array_of_moments(std::vector{run([&] { return self.of_all_samples(); })});
          },
          "What is predicted where no tree has an answer.");
  module.def("moments_of_leaves", &of_orderfree::moments_of_leaves, "leaves"_a.noconvert());
}

}  // namespace onlineforest::bindings
