// The state of an order-free forest: options and samples, as named arrays. Trees are not part of it, because they can
// be grown again. Must not know where arrays are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "base/types.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/tree/options.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

template <class Target>
struct ForestState {
  Options options;
  typename Target::Ledger::State ledger;
  // One entry for each distinct sample.
  std::vector<float> rows;
  std::vector<typename Target::Value> values;
  // One entry for each arrival.
  std::vector<Slot> sample_of;  // index of the sample in `rows` and `values`
  std::vector<Serial> serials;
  std::vector<Weight> weights;  // empty if all weights are 1
  std::uint64_t n_seen = 0;
  double turned_away = -kInfinity;
};

// The earlier state of a forest that keeps all samples, after its first `n_seen` samples.
template <class Target>
[[nodiscard]] ForestState<Target> state_at(const ForestState<Target>& state, std::uint64_t n_seen) {
  ForestState<Target> past;
  past.options = state.options;
  past.options.keep = {};
  past.ledger = state.ledger;
  past.n_seen = n_seen;
  const std::size_t width = state.options.layout.width();
  std::vector<Slot> number(state.values.size(), kNoSlot);
  for (std::size_t arrival = 0; arrival < state.serials.size(); ++arrival) {
    if (static_cast<std::uint64_t>(state.serials[arrival]) >= n_seen) continue;
    const auto sample = static_cast<std::size_t>(state.sample_of[arrival]);
    if (number[sample] == kNoSlot) {
      number[sample] = static_cast<Slot>(past.values.size());
      const auto row = state.rows.begin() + static_cast<std::ptrdiff_t>(sample * width);
      past.rows.insert(past.rows.end(), row, row + static_cast<std::ptrdiff_t>(width));
      past.values.push_back(state.values[sample]);
    }
    past.sample_of.push_back(number[sample]);
    past.serials.push_back(state.serials[arrival]);
    if (!state.weights.empty()) past.weights.push_back(state.weights[arrival]);
  }
  return past;
}

// Calls visit(name, field) for each field, in the order of the arrays in a file. This is the only list of the fields.
template <class State, class Visit>
void for_each_field(State& state, Visit visit) {
  auto& options = state.options;
  visit("options.n_trees", options.n_trees);
  visit("options.first_tree", options.first_tree);
  visit("options.n_features", options.layout.n_features);
  visit("options.n_categorical", options.layout.n_categorical);
  visit("options.seed", options.seed);
  visit("options.min_samples_split", options.min_samples_split);
  visit("options.max_samples", options.max_samples);
  visit("options.calibrates", options.calibrates);
  visit("options.discount", options.discount);
  visit("options.keep_rule", options.keep.rule);
  visit("options.capacity", options.keep.capacity);
  visit("options.half_life", options.keep.half_life);
  visit("options.key_bits", options.key_bits);
  state.ledger.for_each_field(visit);
  visit("rows", state.rows);
  visit("values", state.values);
  visit("sample_of", state.sample_of);
  visit("serials", state.serials);
  visit("weights", state.weights);
  visit("n_seen", state.n_seen);
  visit("turned_away", state.turned_away);
}

// The type of an array element that holds a number of type T.
template <class T>
using Stored = std::conditional_t<
    std::is_enum_v<T>, std::int32_t,
    std::conditional_t<std::is_same_v<T, bool>, std::uint8_t,
                       std::conditional_t<std::is_unsigned_v<T> && sizeof(T) == 8, std::uint64_t, T>>>;

// Passes all arrays of a state to sink(name, std::vector). A single number becomes an array of one entry.
template <class Target, class Sink>
void write_state(ForestState<Target> state, Sink sink) {
  for_each_field(state, [&sink]<class T>(const char* name, T& field) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      sink(name, std::vector<Stored<T>>{static_cast<Stored<T>>(field)});
    } else {
      sink(name, std::move(field));
    }
  });
}

// Reads the arrays of write_state(). source.template get<T>(name) returns an array of T with begin, end and size.
// Throws std::invalid_argument if an array for a single number has another length.
template <class Target, class Source>
ForestState<Target> read_state(Source& source) {
  ForestState<Target> state;
  for_each_field(state, [&source]<class T>(const char* name, T& field) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      const auto array = source.template get<Stored<T>>(name);
      require(array.size() == 1, [&] {
        return "'" + std::string(name) + "' has " + std::to_string(array.size()) + " entries instead of 1";
      });
      field = static_cast<T>(*array.begin());
    } else {
      const auto array = source.template get<typename T::value_type>(name);
      field.assign(array.begin(), array.end());
    }
  });
  return state;
}

}  // namespace onlineforest::orderfree
