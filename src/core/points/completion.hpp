// Fills in missing values of a row with values of near points, its donors. Must not know trees.
//
// Candidates are drawn at random from the stored points. Their distance from a row is the mean difference over the
// features that both know, each in units of the candidates' range. Only known values of a donor are used, never values
// that were filled in.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "points/point_store.hpp"

namespace onlineforest {

inline constexpr std::size_t kCandidates = 512;  // number of points drawn

// Candidates, copied into contiguous memory. Scratch memory of one worker.
class Donors {
 public:
  explicit Donors(std::size_t n_features) : n_features_(n_features) {}

  // Draws candidates among the first `n` points. If these are few, draws all of them in random order: of candidates at
  // equal distance the first one is the donor.
  template <class Value>
  void draw(const PointStore<Value>& points, std::size_t n, Rng& rng) {
    const auto below = [&rng](std::size_t m) {
      return static_cast<std::size_t>(rng.uniform() * static_cast<double>(m));
    };
    drawn_.resize(std::min(n, kCandidates));
    std::iota(drawn_.begin(), drawn_.end(), std::size_t{0});
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      if (n > kCandidates) {
        drawn_[i] = below(n);
      } else {
        std::swap(drawn_[i], drawn_[i + below(n - i)]);
      }
    }
    n_points_ = n;
    values_.resize(drawn_.size() * n_features_);
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      points.copy_given(static_cast<Slot>(drawn_[i]), std::span(values_).subspan(i * n_features_, n_features_));
    }
    distances_.resize(drawn_.size());
    order_.resize(drawn_.size());
    set_units();
  }

  // Sorts the candidates by their distance from a row. NaN in the row is missing.
  void compare(std::span<const float> row) {
    for (std::size_t i = 0; i < order_.size(); ++i) distances_[i] = distance(row, i);
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    n_sorted_ = 0;
    sort_to(kUsuallyEnough);
  }

  // Sets `values` to the values of feature d of the nearest candidates that know it, repeated if there are too few. If
  // no candidate knows it, uses one of the first `n` points that does. If none does, sets 0 and returns false.
  template <class Value>
  bool find_values(std::size_t d, const PointStore<Value>& points, std::span<float> values) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < order_.size() && n < values.size(); ++i) {
      if (i == n_sorted_) sort_to(order_.size());
      const float value = values_[order_[i] * n_features_ + d];
      if (!std::isnan(value)) values[n++] = value;
    }
    if (n == 0) {
      const std::size_t some = points.missing().find_known(d, drawn_.empty() ? 0 : drawn_.front(), n_points_);
      std::ranges::fill(values, some == MissingCells::kNone ? 0.0f : points.row(static_cast<Slot>(some))[d]);
      return some != MissingCells::kNone;
    }
    for (std::size_t i = n; i < values.size(); ++i) values[i] = values[i - n];
    return true;
  }

 private:
  static constexpr std::size_t kUsuallyEnough = 32;  // candidates to sort at first
  static constexpr std::size_t kLanes = 4;           // sums that run in parallel

  void set_units() {
    std::vector<double> low(n_features_, std::numeric_limits<double>::infinity()), high(n_features_, -low.front());
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      for (std::size_t d = 0; d < n_features_; ++d) {
        const double x = values_[i * n_features_ + d];
        if (x < low[d]) low[d] = x;  // false for NaN
        if (x > high[d]) high[d] = x;
      }
    }
    units_.assign(n_features_, 0.0);
    for (std::size_t d = 0; d < n_features_; ++d) {
      if (high[d] > low[d]) units_[d] = 1.0 / (high[d] - low[d]);
    }
  }

  // Mean difference over the features that both know; infinite if there are none.
  double distance(std::span<const float> row, std::size_t i) const {
    const float* const other = values_.data() + i * n_features_;
    std::array<double, kLanes> sums{}, counts{};
    const auto add = [&](std::size_t d, std::size_t lane) {
      const double apart = units_[d] * std::abs(static_cast<double>(row[d]) - static_cast<double>(other[d]));
      const bool are_known = apart == apart;
      sums[lane] += are_known ? apart : 0.0;
      counts[lane] += are_known ? 1.0 : 0.0;
    };
    std::size_t d = 0;
    for (; d + kLanes <= n_features_; d += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) add(d + lane, lane);
    }
    for (; d < n_features_; ++d) add(d, 0);
    const double count = counts[0] + counts[1] + counts[2] + counts[3];
    const double sum = sums[0] + sums[1] + sums[2] + sums[3];
    return count > 0.0 ? sum / count : std::numeric_limits<double>::infinity();
  }

  void sort_to(std::size_t n) {
    n_sorted_ = std::min(n, order_.size());
    std::ranges::partial_sort(order_, order_.begin() + static_cast<std::ptrdiff_t>(n_sorted_),
                              [this](std::uint32_t a, std::uint32_t b) {
                                return distances_[a] != distances_[b] ? distances_[a] < distances_[b] : a < b;
                              });
  }

  std::size_t n_features_;
  std::size_t n_points_ = 0, n_sorted_ = 0;
  std::vector<std::size_t> drawn_;
  std::vector<float> values_;  // rows of the candidates; NaN where a value is missing
  std::vector<double> units_;  // per feature: 1 / range over the candidates, 0 for a constant feature
  std::vector<double> distances_;
  std::vector<std::uint32_t> order_;
};

}  // namespace onlineforest
