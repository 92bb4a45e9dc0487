// Binds the order-free forest of labels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "calls.hpp"
#include "one_row.hpp"
#include "orderfree.hpp"
#include "orderfree/labels/forest.hpp"
#include "samples/weight.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace of_orderfree {

namespace {

using orderfree::Label;

using Hashes = ConstantArray<orderfree::Word, 1>;

// A forest that keeps an array of the hashes of its known labels. Creating an array takes longer than predicting a row
// with ten trees.
class LabelForest : public orderfree::LabelForest {
 public:
  using orderfree::LabelForest::LabelForest;

  // Returns an array of these hashes: the cached array if they have not changed.
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

nb::dict label_tree(const LabelForest& self, std::size_t index) {
  auto table = run(1, [&](const Call& call) { return self.table(index, call); });
  nb::dict dict = dict_of(table, self.options().layout);
  dict["counts_end"] = to_array(std::move(table.columns.counts_end));
  dict["label"] = to_array(std::move(table.columns.label));
  dict["count"] = multiplicities(table.columns.count);
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
                         double spread, Weight stop_weight, double level_power) {
  require_width(self, rows);
  const orderfree::LabelCalibration calibration{power, spread, stop_weight, level_power};
  return tuple_of(self,
                  run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), calibration, call); }),
                  rows.shape(0));
}

Answer<1> predict_labels_of_one(const LabelForest& self, nb::handle x, double power, double spread, Weight stop_weight,
                                double level_power) {
  const std::vector<float> row = one_row(x, self.width());
  const orderfree::LabelCalibration calibration{power, spread, stop_weight, level_power};
  auto answer = run(1, [&](const Call& call) { return self.predict(row, calibration, call); });
  return nb::make_tuple(self.array_of(std::move(answer.hashes)), small_array(answer.probabilities));
}

LeftOut left_out_labels(const LabelForest& self, std::size_t n_threads, Weight stop_weight) {
  LabelForest::LeftOut result =
      run(n_threads, [&](const Call& call) { return self.predict_left_out(stop_weight, call); });
  const std::size_t n = result.n_trees.size();
  const std::size_t n_known = n == 0 ? self.known_labels().size() : result.probabilities.size() / n;
  return nb::make_tuple(to_array(std::move(result.probabilities), {n, n_known}), to_array(std::move(result.n_trees)));
}

OutArray<std::uint64_t, 2> array_of_masses(const LabelForest& self, std::vector<std::uint64_t> sums, std::size_t n) {
  const std::size_t width = n == 0 ? static_cast<std::size_t>(self.n_labels()) + 1 : sums.size() / n;
  return to_array(std::move(sums), {n, width});
}

// LeftOutVotes as a tuple: the labels of the stored samples, for each calibrator the true label and the weight, the
// stop weights, and for each of them and each calibrator the masses of all labels and the rest, summed over the
// left-out voters and over the half voters; then the evidence of the levels of each calibrator for each label, with 0
// columns if there are no categorical features.
using Votes = nb::typed<nb::tuple, OutArray<Label, 1>, OutArray<Label, 1>, OutArray<Weight, 1>, OutArray<Weight, 1>,
                        OutArray<std::uint64_t, 3>, OutArray<std::uint64_t, 3>, OutArray<double, 2>>;

Votes tuple_of(const LabelForest& self, orderfree::LeftOutVotes votes) {
  const std::size_t n = votes.labels.size(), n_stops = votes.stop_weights.size(), width = votes.n_labels + 1;
  const std::size_t n_evidence = self.options().layout.n_categorical > 0 ? votes.n_labels : 0;
  return nb::make_tuple(
      to_array(std::move(votes.held)), to_array(std::move(votes.labels)), to_array(std::move(votes.weights)),
      to_array(std::move(votes.stop_weights)), to_array(std::move(votes.all), {n_stops, n, width}),
      to_array(std::move(votes.half), {n_stops, n, width}), to_array(std::move(votes.evidence), {n, n_evidence}));
}

Votes votes(const LabelForest& self, std::size_t n_threads, Weight least, Weight limit, std::size_t begin,
            std::size_t end) {
  return tuple_of(
      self, run(n_threads, [&](const Call& call) { return self.left_out_votes(begin, end, {least, limit}, call); }));
}

Votes votes_at(const LabelForest& self, std::size_t n_seen, std::size_t n_threads, Weight least, Weight limit) {
  return tuple_of(
      self, run(n_threads, [&](const Call& call) { return self.left_out_votes_at(n_seen, {least, limit}, call); }));
}

Votes votes_after(const LabelForest& self, const InArray<float, 2>& rows, const InArray<Label, 1>& labels,
                  std::size_t n_threads, const std::optional<InArray<Weight, 1>>& weights, Weight least, Weight limit) {
  require_width(self, rows);
  const std::span<const Weight> of_rows = weights ? span_of(*weights) : std::span<const Weight>();
  return tuple_of(self, run(n_threads, [&](const Call& call) {
                    return self.left_out_votes_after(span_of(rows), span_of(labels), of_rows, {least, limit}, call);
                  }));
}

// Converts the arrays of a Votes tuple, summed over all shards, to LeftOutVotes. Throws std::invalid_argument if they
// are invalid.
orderfree::LeftOutVotes votes_of(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                                 const InArray<Weight, 1>& weights, const InArray<Weight, 1>& stop_weights,
                                 const InArray<std::uint64_t, 3>& all, const InArray<std::uint64_t, 3>& half,
                                 const InArray<double, 2>& evidence) {
  const auto copied = []<class T>(std::span<const T> numbers) {
    return std::vector<T>(numbers.begin(), numbers.end());
  };
  require(all.shape(2) > 0, "the votes have 0 columns; at least 1 is needed, for the rest");
  orderfree::LeftOutVotes votes{all.shape(2) - 1,         copied(span_of(held)),         copied(span_of(labels)),
                                copied(span_of(weights)), copied(span_of(stop_weights)), copied(span_of(all)),
                                copied(span_of(half)),    copied(span_of(evidence))};
  check_votes(votes);
  return votes;
}

// Votes with one stop weight.
orderfree::LeftOutVotes votes_of_one(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                                     const InArray<Weight, 1>& weights, const InArray<Weight, 1>& stop_weights,
                                     const InArray<std::uint64_t, 3>& all, const InArray<std::uint64_t, 3>& half,
                                     const InArray<double, 2>& evidence) {
  require(stop_weights.size() == 1, [&] {
    return "the votes have " + std::to_string(stop_weights.size()) + " stop weights; exactly 1 is needed";
  });
  return votes_of(held, labels, weights, stop_weights, all, half, evidence);
}

// The loss of each stop weight.
OutArray<double, 1> losses_of_stops(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                                    const InArray<Weight, 1>& weights, const InArray<Weight, 1>& stop_weights,
                                    const InArray<std::uint64_t, 3>& all, const InArray<std::uint64_t, 3>& half,
                                    const InArray<double, 2>& evidence) {
  const orderfree::LeftOutVotes votes = votes_of(held, labels, weights, stop_weights, all, half, evidence);
  return to_array(run([&] { return orderfree::losses_of_stops(votes); }));
}

// The power for all trees of a forest, the power for its left-out voters, the share that is spread evenly, and the
// level power.
using Calibration = nb::typed<nb::tuple, double, double, double, double>;

// Fits the calibration of a forest of n_trees trees to votes.
Calibration calibration_by(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                           const InArray<Weight, 1>& weights, const InArray<Weight, 1>& stop_weights,
                           const InArray<std::uint64_t, 3>& all, const InArray<std::uint64_t, 3>& half,
                           const InArray<double, 2>& evidence, std::size_t n_trees) {
  const orderfree::LeftOutVotes votes = votes_of_one(held, labels, weights, stop_weights, all, half, evidence);
  const auto found = run([&] { return orderfree::find_calibration(votes, n_trees); });
  return nb::make_tuple(found.of_all.power, found.of_voters.power, found.of_all.spread, found.of_all.level_power);
}

// The calibrated probabilities of the calibrators, from votes.
OutArray<double, 2> probabilities_by(const InArray<Label, 1>& held, const InArray<Label, 1>& labels,
                                     const InArray<Weight, 1>& weights, const InArray<Weight, 1>& stop_weights,
                                     const InArray<std::uint64_t, 3>& all, const InArray<std::uint64_t, 3>& half,
                                     const InArray<double, 2>& evidence, double power, double spread,
                                     double level_power) {
  const orderfree::LeftOutVotes votes = votes_of_one(held, labels, weights, stop_weights, all, half, evidence);
  const orderfree::LabelCalibration calibration{power, spread, 0, level_power};
  orderfree::check_calibration(calibration);
  require(level_power == 0.0 || !votes.evidence.empty() || votes.labels.empty(),
          "a positive level power needs evidence, but the votes have none");
  auto result = run([&] { return orderfree::probabilities_by(votes, calibration); });
  return to_array(std::move(result), {labels.shape(0), all.shape(2) - 1});
}

// Sums over the trees of a shard: for each row the masses of all labels and the rest.
OutArray<std::uint64_t, 2> masses(const LabelForest& self, const InArray<float, 2>& rows, std::size_t n_threads,
                                  Weight stop_weight) {
  require_width(self, rows);
  auto sums = run(n_threads, [&](const Call& call) { return self.masses(span_of(rows), stop_weight, call); });
  return array_of_masses(self, std::move(sums), rows.shape(0));
}

// For each of the samples [begin, end) in the order of serials: the masses of all labels and the rest, summed over the
// trees of a shard that have not learned it, and the number of these trees.
nb::typed<nb::tuple, OutArray<std::uint64_t, 2>, OutArray<std::int64_t, 1>> left_out_masses(
    const LabelForest& self, std::size_t begin, std::size_t end, std::size_t n_threads, Weight stop_weight) {
  auto result = run(n_threads, [&](const Call& call) { return self.left_out_masses(begin, end, stop_weight, call); });
  return nb::make_tuple(array_of_masses(self, std::move(result.masses), end - begin),
                        to_array(std::move(result.n_trees)));
}

// Turns the sums over all trees of a forest into probabilities.
Answer<2> finish(const LabelForest& self, const InArray<std::uint64_t, 2>& sums, double power, double spread,
                 double level_power, const std::optional<InArray<float, 2>>& rows) {
  if (rows) require_width(self, *rows);
  const std::span<const float> of_rows = rows ? span_of(*rows) : std::span<const float>();
  const orderfree::LabelCalibration calibration{power, spread, 0, level_power};
  return tuple_of(self, run([&] { return self.finish(span_of(sums), sums.shape(1), of_rows, calibration); }),
                  sums.shape(0));
}

}  // namespace

}  // namespace of_orderfree

void bind_orderfree_labels(nb::module_& module) {
  using of_orderfree::LabelForest;
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
           "spread"_a = 0.0, "stop_weight"_a = 0, "level_power"_a = 0.0)
      .def("predict_one", &of_orderfree::predict_labels_of_one, "row"_a, "power"_a = 1.0, "spread"_a = 0.0,
           "stop_weight"_a = 0, "level_power"_a = 0.0)
      .def("votes", &of_orderfree::votes, "n_threads"_a = 1, "least"_a = 0, "limit"_a = kMostWeight, "begin"_a = 0,
           "end"_a = std::numeric_limits<std::int64_t>::max())
      .def("votes_at", &of_orderfree::votes_at, "n_seen"_a, "n_threads"_a = 1, "least"_a = 0, "limit"_a = kMostWeight)
      .def("votes_after", &of_orderfree::votes_after, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1,
           "weights"_a.noconvert() = nb::none(), "least"_a = 0, "limit"_a = kMostWeight)
      .def("tree", &of_orderfree::label_tree, "index"_a)
      .def("left_out", &of_orderfree::left_out_labels, "n_threads"_a = 1, "stop_weight"_a = 0)
      .def("masses", &of_orderfree::masses, "rows"_a.noconvert(), "n_threads"_a = 1, "stop_weight"_a = 0)
      .def("left_out_masses", &of_orderfree::left_out_masses, "begin"_a, "end"_a, "n_threads"_a = 1,
           "stop_weight"_a = 0)
      .def("finish", &of_orderfree::finish, "sums"_a.noconvert(), "power"_a = 1.0, "spread"_a = 0.0,
           "level_power"_a = 0.0, "rows"_a.noconvert() = nb::none())
      .def_prop_ro("known_labels",
                   [](const LabelForest& self) { return self.array_of(run([&] { return self.known_labels(); })); });
  module.def("calibration_by", &of_orderfree::calibration_by, "held"_a.noconvert(), "labels"_a.noconvert(),
             "weights"_a.noconvert(), "stop_weights"_a.noconvert(), "votes"_a.noconvert(), "half"_a.noconvert(),
             "evidence"_a.noconvert(), "n_trees"_a);
  module.def("losses_of_stops", &of_orderfree::losses_of_stops, "held"_a.noconvert(), "labels"_a.noconvert(),
             "weights"_a.noconvert(), "stop_weights"_a.noconvert(), "votes"_a.noconvert(), "half"_a.noconvert(),
             "evidence"_a.noconvert());
  module.def("probabilities_by", &of_orderfree::probabilities_by, "held"_a.noconvert(), "labels"_a.noconvert(),
             "weights"_a.noconvert(), "stop_weights"_a.noconvert(), "votes"_a.noconvert(), "half"_a.noconvert(),
             "evidence"_a.noconvert(), "power"_a, "spread"_a, "level_power"_a);
}

}  // namespace onlineforest::bindings
