// The container of a model file: a safetensors file with a digest, as named arrays and strings. Must not know forests,
// nor where the bytes are kept.
//
// 8 bytes with the length of the header, the header (JSON, padded with spaces), the bytes of the arrays one after the
// other. The header begins with the digest and the format, each at a fixed place. The digest is the SHA-256 of the
// whole file, with zeros in place of its own 64 digits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/allowance.hpp"
#include "failure.hpp"

namespace onlineforest::capi {

static_assert(std::endian::native == std::endian::little, "model files are little-endian, and are read as they are");

inline constexpr int kFormatVersion = 3;

using Bytes = std::span<const std::uint8_t>;

// The name of a type of numbers in a file.
template <class T>
[[nodiscard]] constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, double>) return "F64";
  if constexpr (std::is_same_v<T, std::int64_t>) return "I64";
  if constexpr (std::is_same_v<T, std::uint64_t>) return "U64";
  if constexpr (std::is_same_v<T, float>) return "F32";
  if constexpr (std::is_same_v<T, std::int32_t>) return "I32";
  if constexpr (std::is_same_v<T, std::uint8_t>) return "U8";
}

// A view of an array. Its bytes belong to somebody else.
struct Array {
  std::string name;
  std::string_view type;
  std::size_t item_bytes = 0;
  std::vector<std::uint64_t> shape;
  Bytes bytes;

  template <class T>
  static Array of(std::string name, std::span<const T> numbers) {
    return {std::move(name),
            type_name<T>(),
            sizeof(T),
            {numbers.size()},
            {reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size_bytes()}};
  }

  // A copy of the numbers, which may be unaligned in the file.
  template <class T>
  [[nodiscard]] std::vector<T> numbers() const {
    if (type != type_name<T>()) {
      refuse("its array '" + name + "' has type " + std::string(type) + " instead of " + std::string(type_name<T>()));
    }
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
    return result;
  }
};

// Strings with names, in the order of the file.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Contents {
  Metadata metadata;  // without those of the container itself
  std::vector<Array> arrays;
};

// The contents of a whole file, after all checks. The arrays are views of `file`.
[[nodiscard]] Contents read_container(Bytes file, Allowance& memory);

// The bytes before the arrays, with the digest. Sorts the arrays into the order of the file: large items first.
[[nodiscard]] std::vector<std::uint8_t> beginning_of(const Metadata& metadata, std::vector<Array>& arrays);

}  // namespace onlineforest::capi
