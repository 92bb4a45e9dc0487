// Binds the forest over numbers.
#include <span>

#include "bind_common.hpp"
#include "bind_mixtures.hpp"
#include "bindings.hpp"
#include "numbers/gaussian_forest.hpp"
#include "one_row.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

// A namespace of its own: a unity build joins this file with others that have functions of the same names.
namespace numbers {

namespace {

void init(GaussianForest* self, std::size_t n_trees, std::size_t n_features, double lifetime,
          std::optional<double> discount, std::int32_t min_samples_split, const std::string& weight_rule,
          const std::optional<InArray<double, 1>>& weights, std::uint64_t seed, std::optional<double> noise, bool trend,
          bool calibrate, std::size_t window, std::size_t reservoir, double half_life, const HeldTrees& held) {
  GaussianOptions options{common_options(n_trees, n_features, lifetime, discount.value_or(0.0), min_samples_split,
                                         weight_rule, weights, seed, window, reservoir, half_life, held)};
  options.learns_discount = !discount;
  options.noise = noise.value_or(options.noise);
  options.learns_noise = !noise;
  options.has_trend = trend;
  options.calibrates = calibrate;
  new (self) GaussianForest(std::move(options));
}

void learn(GaussianForest& self, const InArray<float, 2>& rows, const InArray<double, 1>& values, std::size_t n_threads,
           bool one_by_one, const std::optional<InArray<Weight, 1>>& weights) {
  require_width(self, rows);
  const std::span<const Weight> of_rows = weights ? span_of(*weights) : std::span<const Weight>();
  run(n_threads, [&](const Call& call) { self.learn(span_of(rows), span_of(values), call, one_by_one, of_rows); });
}

OutArray<double, 2> predict(const GaussianForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_array(run(n_threads, [&](const Call& call) { return self.predict(span_of(rows), call); }),
                  {rows.shape(0), 2});
}

void learn_one(GaussianForest& self, nb::handle x, double value, Weight weight) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  run(1, [&](const Call& call) { self.learn(row, std::span(&value, 1), call, false, std::span(&weight, 1)); });
}

nb::typed<nb::tuple, double, double> predict_one(const GaussianForest& self, nb::handle x) {
  const std::vector<float> row = one_row(x, self.options().n_features);
  const auto moments = run(1, [&](const Call& call) { return self.predict(row, call); });
  return nb::make_tuple(moments[0], moments[1]);
}

OutArray<double, 2> quantiles(const GaussianForest& self, const InArray<float, 2>& rows,
                              const InArray<double, 1>& levels, std::size_t n_threads,
                              const std::optional<nb::dict>& mixtures) {
  require_width(self, rows);
  const std::optional<Mixtures> given = mixtures_in(mixtures);
  return to_array(run(n_threads,
                      [&](const Call& call) {
                        return self.quantiles(span_of(rows), span_of(levels), call, given ? &*given : nullptr);
                      }),
                  {rows.shape(0), levels.shape(0)});
}

OutArray<double, 1> log_density(const GaussianForest& self, const InArray<float, 2>& rows,
                                const InArray<double, 1>& values, std::size_t n_threads,
                                const std::optional<nb::dict>& mixtures) {
  require_width(self, rows);
  const std::optional<Mixtures> given = mixtures_in(mixtures);
  return to_array(run(n_threads, [&](const Call& call) {
    return self.log_density(span_of(rows), span_of(values), call, given ? &*given : nullptr);
  }));
}

nb::dict mixtures(const GaussianForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_dict(run(n_threads, [&](const Call& call) { return self.mixtures(span_of(rows), call); }));
}

// The value of the trend at each row.
OutArray<double, 1> trend(const GaussianForest& self, const InArray<float, 2>& rows) {
  require_width(self, rows);
  const Trend trend = run([&] { return self.measure().prior.trend; });
  std::vector<double> result;
  for (std::size_t i = 0; i < rows.shape(0); ++i) result.push_back(trend.at(rows.data() + i * rows.shape(1)));
  return to_array(std::move(result));
}

OutArray<double, 2> predict_left_out(const GaussianForest& self, const InArray<Slot, 1>& slots, std::size_t n_threads) {
  return to_array(run(n_threads, [&](const Call& call) { return self.predict_left_out(span_of(slots), call); }),
                  {slots.shape(0), 2});
}

nb::object take_left_out(GaussianForest& self) {
  std::optional<LeftOut> left_out = run([&] { return self.take_left_out(); });
  if (!left_out) return nb::none();
  nb::dict dict = to_dict(std::move(left_out->mixtures));
  dict["residuals"] = to_array(std::move(left_out->residuals));
  dict["weights"] = to_array(std::move(left_out->weights));
  return dict;
}

void set_calibration(GaussianForest& self, double scale, double noise, const InArray<double, 1>& levels) {
  Calibration calibration{scale, noise, vector_of(levels)};
  run([&] { self.set_calibration(std::move(calibration)); });
}

nb::dict tree(const GaussianForest& self, std::size_t index) {
  GaussianTreeArrays arrays = run([&] { return tree_arrays(self, index); });
  nb::dict dict = common_arrays(arrays, self.options().n_features);
  dict["mean"] = to_array(std::move(arrays.mean));
  dict["variance"] = to_array(std::move(arrays.variance));
  return dict;
}

}  // namespace

}  // namespace numbers

void bind_numbers(nb::module_& module) {
  bind_common<GaussianForest>(module, "GaussianForest", "A Mondrian forest over numbers. Rows are float32.")
      .def("__init__", &numbers::init, "n_trees"_a, "n_features"_a, nb::kw_only(), "lifetime"_a, "discount"_a.none(),
           "min_samples_split"_a, "weight_rule"_a, "weights"_a.noconvert() = nb::none(), "seed"_a, "noise"_a.none(),
           "trend"_a, "calibrate"_a, "window"_a = 0, "reservoir"_a = 0, "half_life"_a = kInfinity,
           "held"_a = nb::none())
      .def("learn", &numbers::learn, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1,
           "one_by_one"_a = false, "weights"_a.noconvert() = nb::none())
      .def("predict", &numbers::predict, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("learn_one", &numbers::learn_one, "row"_a, "value"_a, "weight"_a = kOne)
      .def("predict_one", &numbers::predict_one, "row"_a)
      .def("quantiles", &numbers::quantiles, "rows"_a.noconvert(), "levels"_a.noconvert(), "n_threads"_a = 1,
           "mixtures"_a = nb::none())
      .def("log_density", &numbers::log_density, "rows"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1,
           "mixtures"_a = nb::none())
      .def("mixtures", &numbers::mixtures, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("predict_left_out", &numbers::predict_left_out, "slots"_a.noconvert(), "n_threads"_a = 1)
      .def("take_left_out", &numbers::take_left_out)
      .def("set_calibration", &numbers::set_calibration, "scale"_a, "noise"_a, "levels"_a.noconvert())
      .def("tree", &numbers::tree, "index"_a)
      .def("trend", &numbers::trend, "rows"_a.noconvert())
      .def_prop_ro("noise", [](const GaussianForest& self) { return run([&] { return self.measure().prior.noise; }); })
      .def_prop_ro("scale", [](const GaussianForest& self) { return run([&] { return self.measure().prior.scale; }); })
      .def_prop_ro("calibration_scale",
                   [](const GaussianForest& self) { return run([&] { return self.calibration().scale; }); });
}

}  // namespace onlineforest::bindings
