// Puts values in the place of missing ones: those of points that are near in what is known. Knows nothing of trees.
//
// A row is compared with points drawn at random, feature by feature where both are known, each difference over the
// range of the drawn. What is put in its place is known of another point: never what was itself put there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "point_store.hpp"
#include "rng.hpp"

namespace onlineforest {

inline constexpr std::size_t kCandidates = 512;  // points drawn
inline constexpr std::size_t kCompletions = 8;   // ways in which a row to be predicted is completed

// Finds the points that rows take values from. Scratch memory, taken at once.
class Donors {
 public:
  explicit Donors(std::size_t n_features) : n_features_(n_features) {
    candidates_.reserve(kCandidates);
    distances_.reserve(kCandidates);
    n_compared_.reserve(kCandidates);
    order_.reserve(kCandidates);
  }

  // Draws candidates among the first `n` points, but not `except`.
  void draw(std::size_t n, Slot except, Rng& rng) {
    candidates_.clear();
    for (std::size_t i = 0; i < kCandidates && n > 0; ++i) {
      const auto slot = static_cast<Slot>(static_cast<std::size_t>(rng.uniform() * static_cast<double>(n)));
      if (slot != except) candidates_.push_back(slot);
    }
    start_ = candidates_.empty() ? 0 : static_cast<std::size_t>(candidates_.front());
  }

  // Sorts the candidates by their distance from a row, of which known(d) tells what is known.
  template <class Value, class Known>
  void sort(const float* row, Known known, const PointStore<Value>& points) {
    const std::size_t n = candidates_.size();
    distances_.assign(n, 0.0);
    n_compared_.assign(n, 0);
    for (std::size_t d = 0; d < n_features_; ++d) {
      if (known(d)) compare(row[d], d, points);
    }
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    for (std::size_t i = 0; i < n; ++i) {
      distances_[i] = n_compared_[i] > 0 ? distances_[i] / n_compared_[i] : std::numeric_limits<double>::infinity();
    }
    std::ranges::sort(order_, [this](std::uint32_t a, std::uint32_t b) {
      return distances_[a] != distances_[b] ? distances_[a] < distances_[b] : a < b;
    });
  }

  // Values of a feature known of the nearest candidates, as many as `values` has room for; if fewer know it, over and
  // over again, and if none does, one of some other point. Returns false, and 0, if no point does.
  template <class Value>
  bool find_values(std::size_t d, const PointStore<Value>& points, std::span<float> values) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < order_.size() && n < values.size(); ++i) {
      const Slot slot = candidates_[order_[i]];
      if (!points.is_missing(slot, d)) values[n++] = points.row(slot)[d];
    }
    if (n == 0) {
      const std::size_t some = points.missing().find_known(d, start_);
      std::ranges::fill(values, some == MissingCells::kNone ? 0.0f : points.row(static_cast<Slot>(some))[d]);
      return some != MissingCells::kNone;
    }
    for (std::size_t i = n; i < values.size(); ++i) values[i] = values[i - n];
    return true;
  }

 private:
  template <class Value>
  void compare(float x, std::size_t d, const PointStore<Value>& points) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const Slot slot : candidates_) {
      if (points.is_missing(slot, d)) continue;
      low = std::min(low, static_cast<double>(points.row(slot)[d]));
      high = std::max(high, static_cast<double>(points.row(slot)[d]));
    }
    const double unit = high > low ? 1.0 / (high - low) : 0.0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (points.is_missing(candidates_[i], d)) continue;
      distances_[i] += unit * std::abs(static_cast<double>(x) - static_cast<double>(points.row(candidates_[i])[d]));
      ++n_compared_[i];
    }
  }

  std::size_t n_features_;
  std::size_t start_ = 0;
  std::vector<Slot> candidates_;
  std::vector<double> distances_;
  std::vector<std::uint32_t> n_compared_;
  std::vector<std::uint32_t> order_;
};

// Complete rows, and beside them the same as they were given, with NaN where a value was missing.
struct Queries {
  Queries(const float* complete, std::size_t n_rows) : rows(complete), given(complete), n(n_rows) {}
  Queries(const float* complete, const float* as_given, std::size_t n_rows)
      : rows(complete), given(as_given), n(n_rows) {}

  bool are_plain() const { return rows == given; }  // nothing was missing

  const float *rows, *given;
  std::size_t n;
};

// Rows that may have missing values, and the same without: a row of which something is missing that can be told from
// other points is there in several completions.
class Completed {
 public:
  // `rows` must outlive this. `candidates` draws the candidates: the same for all rows, so that what is predicted for
  // one does not depend on the others.
  template <class Value>
  Completed(std::span<const float> rows, const PointStore<Value>& points, Rng candidates)
      : n_features_(points.n_features()), n_rows_(rows.size() / n_features_), rows_(rows), given_(rows) {
    if (!has_missing(rows)) return;
    Donors donors(n_features_);
    donors.draw(points.size(), kNoSlot, candidates);
    std::vector<float> values(kCompletions * n_features_);
    for (std::size_t i = 0; i < n_rows_; ++i) {
      add(rows.subspan(i * n_features_, n_features_), points, donors, values);
      ends_.push_back(filled_.size() / n_features_);
    }
    rows_ = filled_;
    given_ = repeated_;
  }
  Completed(const Completed&) = delete;
  Completed& operator=(const Completed&) = delete;

  std::size_t n_rows() const { return n_rows_; }
  bool is_plain() const { return ends_.empty(); }                  // nothing is missing
  std::size_t size() const { return rows_.size() / n_features_; }  // completions of all rows
  const float* row(std::size_t i) const { return rows_.data() + i * n_features_; }
  Queries queries(std::size_t begin, std::size_t end) const {
    return {row(begin), given_.data() + begin * n_features_, end - begin};
  }

  // The completions of a row.
  std::size_t begin(std::size_t row) const { return is_plain() || row == 0 ? row : ends_[row - 1]; }
  std::size_t end(std::size_t row) const { return is_plain() ? row + 1 : ends_[row]; }

 private:
  template <class Value>
  void add(std::span<const float> row, const PointStore<Value>& points, Donors& donors, std::vector<float>& values) {
    bool is_sorted = false, is_told = false;
    for (std::size_t d = 0; d < n_features_; ++d) {
      if (!std::isnan(row[d])) continue;
      if (!is_sorted) donors.sort(row.data(), [&](std::size_t other) { return !std::isnan(row[other]); }, points);
      is_sorted = true;
      is_told |= donors.find_values(d, points, std::span(values).subspan(d * kCompletions, kCompletions));
    }
    for (std::size_t k = 0; k < (is_told ? kCompletions : 1); ++k) {
      repeated_.insert(repeated_.end(), row.begin(), row.end());
      for (std::size_t d = 0; d < n_features_; ++d) {
        filled_.push_back(std::isnan(row[d]) ? values[d * kCompletions + k] : row[d]);
      }
    }
  }

  std::size_t n_features_, n_rows_;
  std::span<const float> rows_, given_;
  std::vector<float> filled_, repeated_;
  std::vector<std::size_t> ends_;
};

}  // namespace onlineforest
