// Access to coordinates of points that are stored row by row or feature by feature. Must not know trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "mondrian/points/box.hpp"
#include "mondrian/points/point_store.hpp"

namespace onlineforest::mondrian {

// A view. Layout: coordinate d of a point is data[slot * point_step + d * feature_step].
struct Coordinates {
  const float* data;
  std::size_t point_step, feature_step;

  static Coordinates of(const PointStore& points) { return {points.rows().data(), points.n_features(), 1}; }

  // Calls f(value), where value(slot) returns coordinate d of a point. Compiled twice: with a point_step of 1 the
  // access needs no multiplication.
  template <class F>
  auto with_feature(std::size_t d, F f) const {
    const float* feature = data + d * feature_step;
    if (point_step == 1) return f([feature](Slot slot) { return feature[slot]; });
    return f([feature, step = point_step](Slot slot) { return feature[static_cast<std::size_t>(slot) * step]; });
  }

  struct Range {
    float lower, upper;

    Range with(float x) const { return {simd::min(lower, x), simd::max(upper, x)}; }
  };

  // The range of coordinate d over some points (at least one).
  [[nodiscard]] Range range(std::size_t d, std::span<const Slot> slots) const {
    return with_feature(d, [slots](auto value) {
      // Two independent chains: within one chain each step waits for the step before.
      Range a{value(slots.front()), value(slots.front())}, b{value(slots.back()), value(slots.back())};
      for (std::size_t i = 0; i + 1 < slots.size(); i += 2) {
        a = a.with(value(slots[i]));
        b = b.with(value(slots[i + 1]));
      }
      return Range{simd::min(a.lower, b.lower), simd::max(a.upper, b.upper)};
    });
  }

  // Partitions points: first those with coordinate d <= `location`, then the others, each in their old order. Returns
  // the number of the first. Has no branch, because a processor cannot predict the side of a point. `spare` is scratch.
  std::size_t partition(std::size_t d, float location, std::span<Slot> slots, std::vector<Slot>& spare) const {
    if (spare.size() < slots.size()) spare.resize(slots.size());
    return with_feature(d, [slots, location, others = spare.data()](auto value) {
      std::size_t n_left = 0;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const Slot slot = slots[i];
        slots[n_left] = slot;
        others[i - n_left] = slot;
        n_left += value(slot) <= location;
      }
      std::copy_n(others, slots.size() - n_left, slots.begin() + static_cast<std::ptrdiff_t>(n_left));
      return n_left;
    });
  }
};

// A copy of the first `n` points, stored feature by feature, and their box. Trees grow from it.
class Columns {
 public:
  // Calls on_scan(n) after copying n values.
  template <class OnScan = void (*)(std::size_t)>
  Columns(
      const PointStore& points, std::size_t n, OnScan on_scan = [](std::size_t) {})
      : n_(n), data_(n * points.n_features()), lower_(points.n_features()), upper_(points.n_features()) {
    const std::size_t n_features = points.n_features();
    constexpr std::size_t tile = 16;  // points at a time, so that the written cache lines stay in cache
    for (std::size_t begin = 0; begin < n; begin += tile) {
      const std::size_t end = std::min(begin + tile, n);
      for (std::size_t d = 0; d < n_features; ++d) {
        for (std::size_t i = begin; i < end; ++i) data_[d * n + i] = points.row(static_cast<Slot>(i))[d];
      }
      on_scan((end - begin) * n_features);
    }
    start_box(lower_.data(), upper_.data(), points.box(0), n_features);
    for (std::size_t i = 1; i < n; ++i) {
      include(lower_.data(), upper_.data(), points.box(static_cast<Slot>(i)), n_features);
      on_scan(n_features);
    }
  }

  std::size_t n_points() const { return n_; }
  std::size_t n_features() const { return lower_.size(); }
  Coordinates coordinates() const { return {data_.data(), 1, n_}; }
  BoxView box() const { return {lower_.data(), upper_.data()}; }

 private:
  std::size_t n_;
  std::vector<float> data_;
  std::vector<float> lower_, upper_;
};

}  // namespace onlineforest::mondrian
