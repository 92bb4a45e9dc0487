// Hashing of 64-bit words. Must not know what the words mean.
#pragma once

#include <cstdint>

namespace onlineforest {

// 2^64 divided by the golden ratio, made odd: its multiples spread evenly over all words.
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

// The finaliser of SplitMix64, a bijection: every bit of the result depends on every bit of `x`.
[[nodiscard]] constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace onlineforest
