// Queries: rows to predict, with missing values filled in by one or several completions. Must not know trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "points/completion.hpp"
#include "points/missing_cells.hpp"
#include "points/point_store.hpp"

namespace onlineforest {

inline constexpr std::size_t kCompletions = 8;  // number of completions of a row with missing values

// A view of complete rows, and of the rows as they were given, with NaN where a value was missing.
struct Queries {
  Queries(const float* complete, std::size_t n_rows) : rows(complete), given(complete), n(n_rows) {}
  Queries(const float* complete, const float* as_given, std::size_t n_rows)
      : rows(complete), given(as_given), n(n_rows) {}

  [[nodiscard]] bool are_plain() const { return rows == given; }  // no value is missing

  const float *rows, *given;
  std::size_t n;
};

// The completions of rows. A row has kCompletions of them if donors know any of its missing values, otherwise one.
class Completed {
 public:
  static constexpr std::size_t kMostRows =
      1024;  // rows that callers should complete at a time: completions take several times their memory

  // `rows` must outlive this. `candidates` draws the candidates for donors, once for all rows: so the prediction of a
  // row does not depend on the other rows.
  template <class Value>
  Completed(std::span<const float> rows, const PointStore<Value>& points, Rng candidates)
      : n_features_(points.n_features()), n_rows_(rows.size() / n_features_), rows_(rows), given_(rows) {
    if (!has_missing(rows)) return;
    Donors donors(n_features_);
    donors.draw(points, points.size(), candidates);
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

  [[nodiscard]] std::size_t n_rows() const { return n_rows_; }
  [[nodiscard]] bool is_plain() const { return ends_.empty(); }                  // no value is missing
  [[nodiscard]] std::size_t size() const { return rows_.size() / n_features_; }  // number of completions of all rows
  [[nodiscard]] const float* row(std::size_t i) const { return rows_.data() + i * n_features_; }
  [[nodiscard]] Queries queries(std::size_t begin, std::size_t end) const {
    return {row(begin), given_.data() + begin * n_features_, end - begin};
  }

  // A row has the completions [begin(row), end(row)).
  [[nodiscard]] std::size_t begin(std::size_t row) const { return is_plain() || row == 0 ? row : ends_[row - 1]; }
  [[nodiscard]] std::size_t end(std::size_t row) const { return is_plain() ? row + 1 : ends_[row]; }

 private:
  template <class Value>
  void add(std::span<const float> row, const PointStore<Value>& points, Donors& donors, std::vector<float>& values) {
    bool is_compared = false, is_filled = false;
    for (std::size_t d = 0; d < n_features_; ++d) {
      if (!std::isnan(row[d])) continue;
      if (!points.missing().is_ever_known(d)) {
        std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(d * kCompletions), kCompletions, 0.0f);
        continue;
      }
      if (!is_compared) donors.compare(row);
      is_compared = true;
      is_filled |= donors.find_values(d, points, std::span(values).subspan(d * kCompletions, kCompletions));
    }
    for (std::size_t k = 0; k < (is_filled ? kCompletions : 1); ++k) {
      repeated_.insert(repeated_.end(), row.begin(), row.end());
      for (std::size_t d = 0; d < n_features_; ++d) {
        filled_.push_back(std::isnan(row[d]) ? values[d * kCompletions + k] : row[d]);
      }
    }
  }

  std::size_t n_features_, n_rows_;
  std::span<const float> rows_, given_;
  std::vector<float> filled_, repeated_;  // completions, and the given row once per completion
  std::vector<std::size_t> ends_;         // per row: end of its completions
};

}  // namespace onlineforest
