// Random numbers: one small engine and the few draws a Mondrian process needs. Knows nothing of trees.
//
// Engine and draws are our own, because the standard library's distributions differ between compilers and a
// seed must travel. An Rng is always passed by reference: a copy would repeat the same draws.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace onlineforest {

// xoshiro256++ (Blackman and Vigna), seeded by hashing (seed, stream).
class Rng {
 public:
  using State = std::array<std::uint64_t, 4>;

  Rng(std::uint64_t seed, std::uint64_t stream) {
    // Hashed twice, so that neighbouring streams do not share words of their states.
    std::uint64_t key = scramble(seed ^ scramble(stream + kGolden));
    for (std::uint64_t& word : state_) word = scramble(key += kGolden);
  }

  explicit Rng(const State& state) : state_(state) {}

  const State& state() const { return state_; }

  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform on [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // Exponential of rate 1. 1 - u is exact, and its logarithm quicker than log1p(-u), which is the same.
  double exponential() { return -std::log(1.0 - uniform()); }

  // Exponential of the given rate; infinite for rate 0. Always uses one draw.
  double exponential(double rate) {
    const double standard = exponential();
    return rate > 0.0 ? standard / rate : kInfinity;
  }

  struct Choice {
    std::size_t index;
    double rest;  // uniform on [0, weight of the index), but for rounding
  };

  // Index i in [0, n) with probability weight(i) / total, where total is the sum of all weights, none negative.
  // `sum(begin, end)` adds the weights of one of the stretches [0, stretch), [stretch, 2 stretch), …: whole stretches
  // are skipped by it. If rounding carries the draw past the end, the last positive weight is taken.
  template <std::size_t stretch, class Sum, class Weight>
  Choice choose(double total, std::size_t n, Sum sum, Weight weight) {
    double rest = uniform() * total;
    std::size_t last = 0;  // the last stretch of positive weight
    for (std::size_t begin = 0; begin < n; begin += stretch) {
      const double s = sum(begin, std::min(begin + stretch, n));
      if (!(s > 0.0)) continue;
      last = begin;
      if (rest < s) break;
      rest -= s;
    }
    Choice choice{last, 0.0};
    for (std::size_t i = last; i < std::min(last + stretch, n); ++i) {
      const double w = weight(i);
      if (!(w > 0.0)) continue;
      choice = {i, std::max(rest, 0.0)};
      if (rest < w) break;
      rest -= w;
    }
    return choice;
  }

  // Uniform on [low, high); low < high. Exact: may lie between two neighbouring floats.
  double between(float low, float high) {
    return low + uniform() * (static_cast<double>(high) - static_cast<double>(low));
  }

  // Uniform on [low, high) in the stored precision; low < high.
  float location(float low, float high) { return stored_location(between(low, high), low, high); }

  // A location in [low, high) as it is stored. The step below `high` is taken after the cast: a location rounded up
  // to `high` would leave nothing on its right.
  // Differs from the paper: its interval is closed.
  static float stored_location(double exact, float low, float high) {
    const float stored = static_cast<float>(exact);
    return stored < high ? stored : std::nextafter(high, low);
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  // The finaliser of SplitMix64.
  static std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  State state_{};
};

}  // namespace onlineforest
