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

nb::dict tree_to_dict(TreeState tree) {
  nb::dict dict;
  dict["rng"] = to_array(std::vector<std::uint64_t>(tree.rng.begin(), tree.rng.end()));
  dict["weights"] = to_array(std::move(tree.weights));
  dict["discount_rate"] = tree.discount_rate;
  dict["leaf_discount"] = tree.leaf_discount;
  dict["left"] = to_array(std::move(tree.left));
  dict["right"] = to_array(std::move(tree.right));
  dict["split_dimension"] = to_array(std::move(tree.split_dimension));
  dict["split_location"] = to_array(std::move(tree.split_location));
  dict["split_time"] = to_array(std::move(tree.split_time));
  dict["next_point"] = to_array(std::move(tree.next_point));
  return dict;
}

TreeState tree_from_dict(const nb::dict& dict) {
  TreeState tree;
  const auto rng = vector_entry<std::uint64_t>(dict, "rng");
  if (rng.size() != tree.rng.size()) throw std::invalid_argument("not the state of a forest: 'rng' needs four words");
  std::ranges::copy(rng, tree.rng.begin());
  tree.weights = vector_entry<double>(dict, "weights");
  tree.discount_rate = entry<double>(dict, "discount_rate");
  tree.leaf_discount = entry<double>(dict, "leaf_discount");
  tree.left = vector_entry<NodeIndex>(dict, "left");
  tree.right = vector_entry<NodeIndex>(dict, "right");
  tree.split_dimension = vector_entry<std::int32_t>(dict, "split_dimension");
  tree.split_location = vector_entry<float>(dict, "split_location");
  tree.split_time = vector_entry<double>(dict, "split_time");
  tree.next_point = vector_entry<Slot>(dict, "next_point");
  return tree;
}

}  // namespace

nb::dict state_to_dict(ForestState state) {
  const ForestOptions& options = state.options;
  nb::dict dict;
  dict["n_features"] = options.n_features;
  dict["lifetime"] = options.lifetime;
  dict["discount"] = options.discount;
  dict["min_samples_split"] = options.min_samples_split;
  dict["weight_rule"] = static_cast<int>(options.weight_rule);
  dict["given_weights"] = to_array(std::vector<double>(options.weights));
  dict["seed"] = options.seed;
  dict["given_leaf_discount"] = options.leaf_discount;
  dict["learns_leaf_discount"] = options.learns_leaf_discount;
  dict["n_classes"] = state.n_classes;
  dict["rows"] = to_array(std::move(state.rows));
  dict["labels"] = to_array(std::move(state.labels));
  dict["weights"] = to_array(std::move(state.weights));
  dict["discount_rate"] = state.discount_rate;
  dict["leaf_discount"] = state.leaf_discount;
  dict["measure_computed_from"] = state.measure_computed_from;
  nb::list trees;
  for (TreeState& tree : state.trees) trees.append(tree_to_dict(std::move(tree)));
  dict["trees"] = trees;
  return dict;
}

ForestState state_from_dict(const nb::dict& dict) {
  ForestState state;
  ForestOptions& options = state.options;
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
  options.leaf_discount = entry<double>(dict, "given_leaf_discount");
  options.learns_leaf_discount = entry<bool>(dict, "learns_leaf_discount");
  state.n_classes = entry<std::int32_t>(dict, "n_classes");
  state.rows = vector_entry<float>(dict, "rows");
  state.labels = vector_entry<Label>(dict, "labels");
  state.weights = vector_entry<double>(dict, "weights");
  state.discount_rate = entry<double>(dict, "discount_rate");
  state.leaf_discount = entry<double>(dict, "leaf_discount");
  state.measure_computed_from = entry<std::uint64_t>(dict, "measure_computed_from");
  for (nb::handle tree : entry<nb::list>(dict, "trees")) {
    nb::dict tree_dict;
    if (!nb::try_cast<nb::dict>(tree, tree_dict, false)) {
      throw std::invalid_argument("not the state of a forest: 'trees' holds something else");
    }
    state.trees.push_back(tree_from_dict(tree_dict));
  }
  options.n_trees = state.trees.size();
  return state;
}

}  // namespace onlineforest::bindings
