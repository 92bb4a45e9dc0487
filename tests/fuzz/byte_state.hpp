// Converts a state to bytes and back, in a layout for mutation: most changed bytes change one number. Knows nothing of
// files, nor which states are valid.
//
// Layout: one byte for the kind of forest, the lengths of all arrays in the order of state_arrays.hpp or
// forest_state.hpp (16 bits each), the numbers of all arrays in native byte order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "mondrian/state/state_arrays.hpp"
#include "orderfree/labels/forest.hpp"
#include "orderfree/numbers/forest.hpp"

namespace onlineforest::fuzz {

using Numbers = std::variant<std::vector<std::uint8_t>, std::vector<std::int32_t>, std::vector<std::int64_t>,
                             std::vector<std::uint64_t>, std::vector<float>, std::vector<double>>;

struct NamedArray {
  std::string name;
  Numbers numbers;
};

using Arrays = std::vector<NamedArray>;

// The state of a Mondrian or an order-free forest; argument-dependent lookup finds the right write_state.
template <class State>
Arrays to_arrays(State state) {
  Arrays arrays;
  write_state(std::move(state), [&arrays]<class T>(const std::string& name, std::vector<T> numbers) {
    arrays.push_back({name, std::move(numbers)});
  });
  return arrays;
}

class ArraySource {
 public:
  explicit ArraySource(const Arrays& arrays) : arrays_(arrays) {}

  template <class T>
  std::span<const T> get(const std::string& name) const {
    const auto found = std::ranges::find(arrays_, name, &NamedArray::name);
    if (found == arrays_.end()) throw std::out_of_range("unknown array " + name);
    return std::get<std::vector<T>>(found->numbers);
  }

 private:
  const Arrays& arrays_;
};

enum class Kind : std::uint8_t { kMondrian, kOrderFreeLabels, kOrderFreeNumbers };
inline constexpr int kKinds = 3;

template <class Forest>
inline constexpr Kind kKindOf = std::is_same_v<Forest, mondrian::Forest>         ? Kind::kMondrian
                                : std::is_same_v<Forest, orderfree::LabelForest> ? Kind::kOrderFreeLabels
                                                                                 : Kind::kOrderFreeNumbers;

template <class Forest>
concept OrderFree = std::is_same_v<Forest, orderfree::LabelForest> || std::is_same_v<Forest, orderfree::NumberForest>;

// All arrays of a state of this kind; those of an empty forest.
inline const Arrays& arrays_of(Kind kind) {
  static const Arrays of_mondrian = to_arrays(mondrian::ForestState());
  static const Arrays of_order_free_labels = to_arrays(orderfree::LabelForest::State());
  static const Arrays of_order_free_numbers = to_arrays(orderfree::NumberForest::State());
  switch (kind) {
    case Kind::kMondrian:
      return of_mondrian;
    case Kind::kOrderFreeLabels:
      return of_order_free_labels;
    default:
      return of_order_free_numbers;
  }
}

using Length = std::uint16_t;

struct ByteState {
  Kind kind;
  Arrays arrays;

  std::vector<std::uint8_t> encode() const {
    std::vector<std::uint8_t> bytes{static_cast<std::uint8_t>(kind)};
    const auto append = [&bytes](const void* data, std::size_t n) {
      const auto* first = static_cast<const std::uint8_t*>(data);
      bytes.insert(bytes.end(), first, first + n);
    };
    for (const NamedArray& array : arrays) {
      const Length n = length_of(array);
      append(&n, sizeof(n));
    }
    for (const NamedArray& array : arrays) {
      std::visit([&](const auto& numbers) { append(numbers.data(), length_of(array) * sizeof(numbers[0])); },
                 array.numbers);
    }
    return bytes;
  }

  // Bytes missing at the end are read as zero. Returns nothing if there are no bytes or if more than half of them are
  // missing, so a state takes memory in proportion to its bytes.
  static std::optional<ByteState> decode(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return {};
    const std::size_t most_bytes = 2 * bytes.size();
    const auto kind = static_cast<Kind>(bytes[0] % kKinds);
    bytes = bytes.subspan(1);
    ByteState state{kind, arrays_of(kind)};
    const auto take = [&bytes](void* to, std::size_t n) {
      n = std::min(n, bytes.size());
      if (n > 0) std::memcpy(to, bytes.data(), n);
      bytes = bytes.subspan(n);
    };
    std::vector<Length> lengths(state.arrays.size());
    take(lengths.data(), lengths.size() * sizeof(Length));
    std::size_t n_bytes = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      n_bytes += lengths[i] * std::visit([](auto& numbers) { return sizeof(numbers[0]); }, state.arrays[i].numbers);
    }
    if (n_bytes > most_bytes) return {};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::visit(
          [&](auto& numbers) {
            numbers.assign(lengths[i], 0);
            take(numbers.data(), numbers.size() * sizeof(numbers[0]));
          },
          state.arrays[i].numbers);
    }
    return state;
  }

 private:
  static Length length_of(const NamedArray& array) {
    const std::size_t n = std::visit([](const auto& numbers) { return numbers.size(); }, array.numbers);
    return static_cast<Length>(std::min<std::size_t>(n, std::numeric_limits<Length>::max()));
  }
};

}  // namespace onlineforest::fuzz
