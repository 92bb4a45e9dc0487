#include "bind_state.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "arrays.hpp"

namespace onlineforest::bindings {

namespace {

template <class T>
T entry(const nb::dict& dict, const char* key) {
  if (dict.contains(key)) {
    nb::object value = dict[key];
    T result;
    if (nb::try_cast<T>(value, result, /*convert=*/false)) return result;
  }
  throw std::invalid_argument(std::string("not the state of a forest: '") + key + "' is missing or of another type");
}

template <class T>
std::vector<T> vector_entry(const nb::dict& dict, const char* key) {
  return vector_of(entry<InArray<T, 1>>(dict, key));
}

// Priors, options and extras of the kinds of forest.

void put(nb::dict& dict, const LabelPrior& prior) { dict["leaf_discount"] = prior.leaf_discount; }

void get(const nb::dict& dict, LabelPrior& prior) { prior.leaf_discount = entry<double>(dict, "leaf_discount"); }

void put(nb::dict& dict, const GaussianPrior& prior) {
  dict["noise"] = prior.noise;
  dict["scale"] = prior.scale;
  dict["intercept"] = prior.trend.intercept;
  dict["trend_variance"] = prior.trend_variance;
  dict["trend_ends"] = to_array(std::vector<std::int32_t>(prior.trend.ends));
  dict["trend_knots"] = to_array(std::vector<float>(prior.trend.knots));
  dict["trend_heights"] = to_array(std::vector<double>(prior.trend.heights));
}

void get(const nb::dict& dict, GaussianPrior& prior) {
  prior.noise = entry<double>(dict, "noise");
  prior.scale = entry<double>(dict, "scale");
  prior.trend.intercept = entry<double>(dict, "intercept");
  prior.trend_variance = entry<double>(dict, "trend_variance");
  prior.trend.ends = vector_entry<std::int32_t>(dict, "trend_ends");
  prior.trend.knots = vector_entry<float>(dict, "trend_knots");
  prior.trend.heights = vector_entry<double>(dict, "trend_heights");
}

void put_own(nb::dict& dict, const LabelOptions& options) {
  dict["given_leaf_discount"] = options.leaf_discount;
  dict["learns_leaf_discount"] = options.learns_leaf_discount;
}

void get_own(const nb::dict& dict, LabelOptions& options) {
  options.leaf_discount = entry<double>(dict, "given_leaf_discount");
  options.learns_leaf_discount = entry<bool>(dict, "learns_leaf_discount");
}

void put_own(nb::dict& dict, const GaussianOptions& options) {
  dict["given_noise"] = options.noise;
  dict["learns_noise"] = options.learns_noise;
  dict["learns_discount"] = options.learns_discount;
  dict["has_trend"] = options.has_trend;
  dict["calibrates"] = options.calibrates;
}

void get_own(const nb::dict& dict, GaussianOptions& options) {
  options.noise = entry<double>(dict, "given_noise");
  options.learns_noise = entry<bool>(dict, "learns_noise");
  options.learns_discount = entry<bool>(dict, "learns_discount");
  options.has_trend = entry<bool>(dict, "has_trend");
  options.calibrates = entry<bool>(dict, "calibrates");
}

void put(nb::dict& dict, const LabelForest::Extra& extra) { dict["n_classes"] = extra.n_classes; }

void get(const nb::dict& dict, LabelForest::Extra& extra) { extra.n_classes = entry<std::int32_t>(dict, "n_classes"); }

void put(nb::dict& dict, const GaussianForest::Extra& extra) {
  dict["calibration_scale"] = extra.calibration.scale;
  dict["calibration_noise"] = extra.calibration.noise;
  dict["calibration_levels"] = to_array(std::vector<double>(extra.calibration.levels));
  dict["n_calibrated"] = extra.n_calibrated;
}

void get(const nb::dict& dict, GaussianForest::Extra& extra) {
  extra.calibration.scale = entry<double>(dict, "calibration_scale");
  extra.calibration.noise = entry<double>(dict, "calibration_noise");
  extra.calibration.levels = vector_entry<double>(dict, "calibration_levels");
  extra.n_calibrated = entry<std::uint64_t>(dict, "n_calibrated");
}

// What all of them have.

void put_options(nb::dict& dict, const ForestOptions& options) {
  dict["n_features"] = options.n_features;
  dict["lifetime"] = options.lifetime;
  dict["discount"] = options.discount;
  dict["min_samples_split"] = options.min_samples_split;
  dict["weight_rule"] = static_cast<int>(options.weight_rule);
  dict["given_weights"] = to_array(std::vector<double>(options.weights));
  dict["seed"] = options.seed;
  dict["keep_rule"] = static_cast<int>(options.keep.rule);
  dict["capacity"] = options.keep.capacity;
  dict["half_life"] = options.keep.half_life;
}

void get_options(const nb::dict& dict, ForestOptions& options) {
  options.n_features = entry<std::size_t>(dict, "n_features");
  options.lifetime = entry<double>(dict, "lifetime");
  options.discount = entry<double>(dict, "discount");
  options.min_samples_split = entry<std::int32_t>(dict, "min_samples_split");
  options.weight_rule = static_cast<WeightRule>(entry<int>(dict, "weight_rule"));
  if (!is_known(options.weight_rule)) {
    throw std::invalid_argument("not the state of a forest: 'weight_rule' is unknown");
  }
  options.weights = vector_entry<double>(dict, "given_weights");
  options.seed = entry<std::uint64_t>(dict, "seed");
  options.keep.rule = static_cast<KeepRule>(entry<int>(dict, "keep_rule"));
  if (!is_known(options.keep.rule)) throw std::invalid_argument("not the state of a forest: 'keep_rule' is unknown");
  options.keep.capacity = entry<std::size_t>(dict, "capacity");
  options.keep.half_life = entry<double>(dict, "half_life");
}

template <class Prior>
void put_measure(nb::dict& dict, MeasureState<Prior> measure) {
  put(dict, measure.prior);
  dict["weights"] = to_array(std::move(measure.weights));
  dict["discount_rate"] = measure.discount_rate;
}

template <class Prior>
void get_measure(const nb::dict& dict, MeasureState<Prior>& measure) {
  measure.weights = vector_entry<double>(dict, "weights");
  measure.discount_rate = entry<double>(dict, "discount_rate");
  get(dict, measure.prior);
}

template <class Prior>
nb::dict tree_to_dict(TreeState<Prior> tree) {
  nb::dict dict;
  dict["rng"] = to_array(std::vector<std::uint64_t>(tree.rng.begin(), tree.rng.end()));
  put_measure(dict, std::move(tree.measure));
  dict["left"] = to_array(std::move(tree.left));
  dict["right"] = to_array(std::move(tree.right));
  dict["split_dimension"] = to_array(std::move(tree.split_dimension));
  dict["split_location"] = to_array(std::move(tree.split_location));
  dict["split_time"] = to_array(std::move(tree.split_time));
  dict["next_point"] = to_array(std::move(tree.next_point));
  return dict;
}

template <class Prior>
TreeState<Prior> tree_from_dict(const nb::dict& dict) {
  TreeState<Prior> tree;
  const auto rng = vector_entry<std::uint64_t>(dict, "rng");
  if (rng.size() != tree.rng.size()) throw std::invalid_argument("not the state of a forest: 'rng' needs four words");
  std::ranges::copy(rng, tree.rng.begin());
  get_measure(dict, tree.measure);
  tree.left = vector_entry<NodeIndex>(dict, "left");
  tree.right = vector_entry<NodeIndex>(dict, "right");
  tree.split_dimension = vector_entry<std::int32_t>(dict, "split_dimension");
  tree.split_location = vector_entry<float>(dict, "split_location");
  tree.split_time = vector_entry<double>(dict, "split_time");
  tree.next_point = vector_entry<Slot>(dict, "next_point");
  return tree;
}

}  // namespace

template <class Forest>
nb::dict state_to_dict(ForestState<Forest> state) {
  nb::dict dict;
  put_options(dict, state.options);
  put_own(dict, state.options);
  put(dict, state.extra);
  dict["rows"] = to_array(std::move(state.rows));
  dict["values"] = to_array(std::move(state.values));
  put_measure(dict, std::move(state.measure));
  dict["measure_computed_from"] = state.schedule.computed_from;
  dict["n_since_measure"] = state.schedule.n_since;
  dict["n_refreshes"] = state.schedule.n_refreshes;
  dict["serials"] = to_array(std::move(state.serials));
  dict["n_seen"] = state.n_seen;
  dict["turned_away"] = state.turned_away;
  nb::list trees;
  for (auto& tree : state.trees) trees.append(tree_to_dict(std::move(tree)));
  dict["trees"] = trees;
  return dict;
}

template <class Forest>
ForestState<Forest> state_from_dict(const nb::dict& dict) {
  ForestState<Forest> state;
  get_options(dict, state.options);
  get_own(dict, state.options);
  get(dict, state.extra);
  state.rows = vector_entry<float>(dict, "rows");
  state.values = vector_entry<typename Forest::Value>(dict, "values");
  get_measure(dict, state.measure);
  state.schedule.computed_from = entry<std::uint64_t>(dict, "measure_computed_from");
  state.schedule.n_since = entry<std::uint64_t>(dict, "n_since_measure");
  state.schedule.n_refreshes = entry<std::uint64_t>(dict, "n_refreshes");
  state.serials = vector_entry<Serial>(dict, "serials");
  state.n_seen = entry<std::uint64_t>(dict, "n_seen");
  state.turned_away = entry<double>(dict, "turned_away");
  for (nb::handle tree : entry<nb::list>(dict, "trees")) {
    nb::dict tree_dict;
    if (!nb::try_cast<nb::dict>(tree, tree_dict, false)) {
      throw std::invalid_argument("not the state of a forest: 'trees' holds something else");
    }
    state.trees.push_back(tree_from_dict<typename Forest::Prior>(tree_dict));
  }
  state.options.n_trees = state.trees.size();
  return state;
}

template nb::dict state_to_dict(ForestState<LabelForest>);
template nb::dict state_to_dict(ForestState<GaussianForest>);
template ForestState<LabelForest> state_from_dict(const nb::dict&);
template ForestState<GaussianForest> state_from_dict(const nb::dict&);

}  // namespace onlineforest::bindings
