// The arrays of a model file as the state of a core forest, and back. Must not know paths, nor how forests are used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "container.hpp"
#include "guided/forest_state.hpp"
#include "ids.hpp"
#include "metadata.hpp"

namespace onlineforest::capi {

// Options follow from the metadata and are not in a file.
[[nodiscard]] inline bool is_option(std::string_view name) { return name.starts_with("options."); }

// Hands out the arrays of a file by name.
class ArraySource {
 public:
  explicit ArraySource(const std::vector<Array>& arrays) : arrays_(arrays) {}

  // Nothing if there is none.
  [[nodiscard]] const Array* find(std::string_view name) const {
    const auto found = std::ranges::find(arrays_, name, &Array::name);
    return found == arrays_.end() ? nullptr : &*found;
  }

  template <class T>
  [[nodiscard]] std::vector<T> numbers(const std::string& name) const {
    const Array* array = find(name);
    if (array == nullptr) refuse("array '" + name + "' is missing");
    if (array->shape.size() != 1) refuse("its array '" + name + "' does not have one dimension");
    return array->numbers<T>();
  }

  // Throws Failure if there are others: they would be lost.
  void check_only(const std::vector<std::string>& expected) const {
    for (const Array& array : arrays_) {
      if (std::ranges::find(expected, array.name) == expected.end())
        refuse("unexpected array " + in_quotes(array.name));
    }
  }

 private:
  const std::vector<Array>& arrays_;
};

// The state and the ids in the arrays of a file, of a core forest with these options.
template <class Target>
[[nodiscard]] std::pair<guided::ForestState<Target>, Ids> state_in(const std::vector<Array>& arrays,
                                                                   const guided::Options& options) {
  guided::ForestState<Target> state;
  const ArraySource source(arrays);
  std::vector<std::string> names{"ids.text", "ids.ends", "ids.serials"};
  guided::for_each_field(state, [&]<class T>(const char* name, T& field) {
    const std::string_view view = name;
    if (is_option(view)) return;
    names.emplace_back(view);
    if constexpr (std::is_arithmetic_v<T>) {
      const std::vector<guided::Stored<T>> numbers = source.numbers<guided::Stored<T>>(name);
      if (numbers.size() != 1) {
        refuse("its array '" + names.back() + "' has " + std::to_string(numbers.size()) + " entries instead of 1");
      }
      field = numbers[0];
    } else if constexpr (!std::is_enum_v<T>) {
      if (view == "rows") {
        const Array* rows = source.find(view);
        if (rows == nullptr) refuse("array 'rows' is missing");
        if (rows->shape.size() != 2 || rows->shape[1] != options.layout.width()) {
          refuse("its array 'rows' does not have " + std::to_string(options.layout.width()) + " columns");
        }
        field = rows->numbers<typename T::value_type>();
      } else if (view != "weights" || source.find(view) != nullptr) {  // without weights, each sample counts once
        field = source.numbers<typename T::value_type>(name);
      }
    }
  });
  state.options = options;
  Ids ids{source.numbers<std::uint8_t>("ids.text"), source.numbers<std::uint64_t>("ids.ends"),
          source.numbers<std::int64_t>("ids.serials")};
  source.check_only(names);
  ids.check();
  return {std::move(state), std::move(ids)};
}

template <class Target>
[[nodiscard]] Counts counts_of(const guided::ForestState<Target>& state, const Ids& ids) {
  return {state.n_seen, state.serials.size(), ids.serials.size(), state.values.size()};
}

// The arrays of a file: views of the state and of the ids.
template <class Target>
[[nodiscard]] std::vector<Array> arrays_of(guided::ForestState<Target>& state, const Ids& ids) {
  std::vector<Array> arrays;
  guided::for_each_field(state, [&]<class T>(const char* name, T& field) {
    if (is_option(name)) return;
    if constexpr (std::is_same_v<guided::Stored<T>, T> && std::is_arithmetic_v<T>) {
      arrays.push_back(Array::of(name, std::span<const T>(&field, 1)));
    } else if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T>) {
      if (field.empty() && std::string_view(name) == "weights") return;
      arrays.push_back(Array::of(name, std::span<const typename T::value_type>(field)));
      if (std::string_view(name) == "rows") {
        const std::size_t width = state.options.layout.width();
        arrays.back().shape = {field.size() / width, width};
      }
    }
  });
  arrays.push_back(Array::of("ids.text", std::span<const std::uint8_t>(ids.text)));
  arrays.push_back(Array::of("ids.ends", std::span<const std::uint64_t>(ids.ends)));
  arrays.push_back(Array::of("ids.serials", std::span<const std::int64_t>(ids.serials)));
  return arrays;
}

}  // namespace onlineforest::capi
