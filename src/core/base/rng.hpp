// Random numbers: one small engine and the few draws that a Mondrian process needs. Must not know trees.
//
// Engine and draws are implemented here because the distributions of the standard library differ between compilers,
// but a seed must give the same forest everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/elementary.hpp"
#include "base/hash.hpp"
#include "base/types.hpp"

namespace onlineforest {

// xoshiro256++ (Blackman and Vigna), seeded by hashing (seed, stream).
//
// Not copyable: a copy made by accident, such as a parameter passed by value, would repeat the draws of the original.
// `copy()` makes one on purpose.
class Rng {
 public:
  using State = std::array<std::uint64_t, 4>;

  Rng(std::uint64_t seed, std::uint64_t stream) {
    // The stream is hashed twice, so that neighbouring streams share no words of their states.
    std::uint64_t key = scramble(seed ^ scramble(stream + kGolden));
    for (std::uint64_t& word : state_) word = scramble(key += kGolden);
  }

  explicit Rng(const State& state) : state_(state) {}

  Rng(const Rng&) = delete;
  Rng& operator=(const Rng&) = delete;
  Rng(Rng&&) = default;
  Rng& operator=(Rng&&) = default;

  // An engine that repeats all draws of this one from here on.
  [[nodiscard]] Rng copy() const { return Rng(state_); }

  [[nodiscard]] const State& state() const { return state_; }

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

  // Exponential of rate 1. 1 - u is exact, so log(1 - u) equals log1p(-u).
  double exponential() { return -natural_log(1.0 - uniform()); }

  // Exponential of the given rate; infinite for rate 0. Always uses one draw.
  double exponential(double rate) {
    const double standard = exponential();
    return rate > 0.0 ? standard / rate : kInfinity;
  }

  struct Choice {
    std::size_t index;
    double rest;  // uniform on [0, weight of the index), up to rounding
  };

  // Draws an index i in [0, n) with probability weight(i) / total. Weights are not negative; `total` is their sum.
  // `sum(begin, end)` returns the sum of the weights of one of the stretches [0, stretch), [stretch, 2 stretch), …; it
  // lets the search skip whole stretches. If rounding carries the draw past the end, the result is the last index of
  // positive weight.
  template <std::size_t stretch, class Sum, class Weight>
  Choice choose(double total, std::size_t n, Sum sum, Weight weight) {
    double rest = uniform() * total;
    std::size_t last = 0;  // begin of the last stretch of positive weight
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

  // Uniform on [low, high); low < high. In double precision: the result may lie between two neighbouring floats.
  double between(float low, float high) {
    return low + uniform() * (static_cast<double>(high) - static_cast<double>(low));
  }

  // Uniform on [low, high) in the stored precision; low < high.
  float location(float low, float high) { return stored_location(between(low, high), low, high); }

  // Rounds a location in [low, high) to the stored precision. If the cast rounds up to `high`, the result is the float
  // below `high`: a cut at `high` would leave no points on its right.
  // Differs from the paper: its interval is closed.
  static float stored_location(double exact, float low, float high) {
    const float stored = static_cast<float>(exact);
    return stored < high ? stored : std::nextafter(high, low);
  }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  State state_{};
};

}  // namespace onlineforest
