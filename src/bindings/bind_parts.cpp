// Binds what parts of a forest are asked, and what is made of their answers; see tree_sums.hpp and laws.hpp.
#include "bind_parts.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "calls.hpp"

namespace onlineforest::bindings {

using namespace nb::literals;

namespace {

// What the trees of a part say, and how many of them are not empty.
nb::tuple to_tuple(Terms terms) { return nb::make_tuple(to_array(std::move(terms.numbers)), terms.n_grown); }

template <class Forest>
nb::tuple novelty_terms(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_tuple(without_gil([&] { return self.novelty_terms(span_of(rows), n_threads, signal_arrived); }));
}

template <class Forest>
OutArray<double, 1> novelty_from(const Forest& self, const InArray<float, 2>& rows, const InArray<double, 1>& sums,
                                 std::size_t n_grown) {
  require_width(self, rows);
  return to_array(
      without_gil([&] { return self.novelty_from(span_of(rows), {span_of(sums), n_grown}, signal_arrived); }));
}

template <class Forest>
nb::tuple predict_terms(const Forest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_tuple(without_gil([&] { return self.predict_terms(span_of(rows), n_threads, signal_arrived); }));
}

template <class Forest>
OutArray<double, 2> predict_from(const Forest& self, const InArray<float, 2>& rows, const InArray<double, 1>& sums,
                                 std::size_t n_grown) {
  require_width(self, rows);
  auto result = without_gil([&] { return self.predict_from(span_of(rows), {span_of(sums), n_grown}, signal_arrived); });
  constexpr std::size_t width_of_none = std::is_same_v<Forest, GaussianForest> ? 2 : 0;  // as predict has it
  const std::size_t width = rows.shape(0) == 0 ? width_of_none : result.size() / rows.shape(0);
  return to_array(std::move(result), {rows.shape(0), width});
}

// The trees that a part holds, by the first and the one behind the last, and its terms.
using Part = std::tuple<std::size_t, std::size_t, InArray<double, 1>>;

// The sums over all trees of a forest of the terms of its parts.
OutArray<double, 1> add_terms_of_parts(std::size_t n_trees, const std::vector<Part>& parts) {
  std::vector<Term> terms;
  std::vector<const double*> numbers;
  std::size_t n = 0, n_done = 0;  // numbers of a term, and trees
  for (const auto& [begin, end, array] : parts) {
    if (begin != n_done || begin >= end || end > n_trees) {
      throw std::invalid_argument("the parts do not follow one another: wanted one of the trees from " +
                                  std::to_string(n_done) + " on, of " + std::to_string(n_trees) + ", got [" +
                                  std::to_string(begin) + ", " + std::to_string(end) + ")");
    }
    const std::vector<Term> own = terms_of({begin, end}, n_trees);
    const std::size_t n_each = array.size() / own.size();
    if (n_each * own.size() != array.size() || (n_done > 0 && n_each != n)) {
      throw std::invalid_argument("the parts were not asked the same: that of the trees from " + std::to_string(begin) +
                                  " on has " + std::to_string(array.size()) + " numbers");
    }
    for (std::size_t i = 0; i < own.size(); ++i) numbers.push_back(array.data() + i * n_each);
    terms.insert(terms.end(), own.begin(), own.end());
    n = n_each;
    n_done = end;
  }
  if (parts.empty() || n_done != n_trees) {
    throw std::invalid_argument("a part is missing: there are terms of " + std::to_string(n_done) + " trees of " +
                                std::to_string(n_trees));
  }
  return to_array(without_gil([&] { return add_terms(terms, numbers, n); }));
}

nb::dict to_dict(Laws laws) {
  nb::dict dict;
  dict["ends"] = to_array(std::move(laws.ends));
  dict["completion_of"] = to_array(std::move(laws.completion_of));
  dict["masses"] = to_array(std::move(laws.masses));
  dict["means"] = to_array(std::move(laws.means));
  dict["variances"] = to_array(std::move(laws.variances));
  return dict;
}

template <class T>
std::vector<T> vector_in(const nb::dict& dict, const char* name) {
  InArray<T, 1> array;
  if (!dict.contains(name) || !nb::try_cast(dict[name], array, /*convert=*/false)) {
    throw std::invalid_argument(std::string("'") + name + "' is missing or of another type");
  }
  return vector_of(array);
}

Laws laws_in(const nb::dict& dict) {
  return {vector_in<std::uint64_t>(dict, "ends"), vector_in<std::int32_t>(dict, "completion_of"),
          vector_in<double>(dict, "masses"), vector_in<double>(dict, "means"), vector_in<double>(dict, "variances")};
}

nb::dict laws(const GaussianForest& self, const InArray<float, 2>& rows, std::size_t n_threads) {
  require_width(self, rows);
  return to_dict(without_gil([&] { return self.laws(span_of(rows), n_threads, signal_arrived); }));
}

OutArray<double, 2> quantiles_from(const GaussianForest& self, const InArray<float, 2>& rows,
                                   const InArray<double, 1>& levels, const nb::dict& laws, std::size_t n_threads) {
  require_width(self, rows);
  const Laws given = laws_in(laws);
  return to_array(without_gil([&] {
                    return self.quantiles_from(span_of(rows), span_of(levels), given, n_threads, signal_arrived);
                  }),
                  {rows.shape(0), levels.shape(0)});
}

OutArray<double, 1> log_density_from(const GaussianForest& self, const InArray<float, 2>& rows,
                                     const InArray<double, 1>& values, const nb::dict& laws, std::size_t n_threads) {
  require_width(self, rows);
  const Laws given = laws_in(laws);
  return to_array(without_gil(
      [&] { return self.log_density_from(span_of(rows), span_of(values), given, n_threads, signal_arrived); }));
}

nb::object take_left_out(GaussianForest& self) {
  std::optional<LeftOut> left_out = without_gil([&] { return self.take_left_out(); });
  if (!left_out) return nb::none();
  nb::dict dict = to_dict(std::move(left_out->laws));
  dict["residuals"] = to_array(std::move(left_out->residuals));
  return dict;
}

// Scale, noise and levels of the calibration that points left out of all trees make.
nb::tuple calibration_of(const nb::dict& left_out, std::size_t n_threads) {
  const LeftOut given{vector_in<double>(left_out, "residuals"), laws_in(left_out)};
  Calibration calibration = without_gil([&] {
    StopSignal signal(signal_arrived);
    return calibration_from(given, n_threads, signal);
  });
  return nb::make_tuple(calibration.scale, calibration.noise, to_array(std::move(calibration.levels)));
}

void set_calibration(GaussianForest& self, double scale, double noise, const InArray<double, 1>& levels) {
  Calibration calibration{scale, noise, vector_of(levels)};
  without_gil([&] { self.set_calibration(std::move(calibration)); });
}

// What parts of all kinds have.
template <class Forest>
void bind_sums(nb::class_<Forest>& forest) {
  forest.def("novelty_terms", &novelty_terms<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("novelty_from", &novelty_from<Forest>, "rows"_a.noconvert(), "sums"_a.noconvert(), "n_grown"_a)
      .def("predict_terms", &predict_terms<Forest>, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("predict_from", &predict_from<Forest>, "rows"_a.noconvert(), "sums"_a.noconvert(), "n_grown"_a);
}

}  // namespace

void bind_parts(nb::module_& module, nb::class_<LabelForest>& of_labels, nb::class_<GaussianForest>& of_numbers) {
  bind_sums(of_labels);
  bind_sums(of_numbers);
  of_numbers.def("laws", &laws, "rows"_a.noconvert(), "n_threads"_a = 1)
      .def("quantiles_from", &quantiles_from, "rows"_a.noconvert(), "levels"_a.noconvert(), "laws"_a, "n_threads"_a = 1)
      .def("log_density_from", &log_density_from, "rows"_a.noconvert(), "values"_a.noconvert(), "laws"_a,
           "n_threads"_a = 1)
      .def("take_left_out", &take_left_out)
      .def("set_calibration", &set_calibration, "scale"_a, "noise"_a, "levels"_a.noconvert());
  module.def("add_terms", &add_terms_of_parts, "n_trees"_a, "parts"_a.noconvert());
  module.def("calibration_of", &calibration_of, "left_out"_a, "n_threads"_a = 1);
}

}  // namespace onlineforest::bindings
