// A digest of numbers, to the last bit. Knows nothing of forests.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/hash.hpp"

namespace onlineforest::testing {

class Digest {
 public:
  void add(std::uint64_t word) { word_ = scramble(word_ + kGolden) ^ word; }
  void add(std::int64_t number) { add(static_cast<std::uint64_t>(number)); }
  void add(std::int32_t number) { add(static_cast<std::int64_t>(number)); }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number + 0.0)); }  // -0 is 0
  template <class T>
  void add(const std::vector<T>& values) {
    for (const T& value : values) add(value);
  }
  [[nodiscard]] std::uint64_t word() const { return scramble(word_); }

 private:
  std::uint64_t word_ = 0;
};

}  // namespace onlineforest::testing
