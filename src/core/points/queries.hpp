// Rows to predict, with their missing values filled in, in one or several completions. Knows nothing of trees.
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

inline constexpr std::size_t kCompletions = 8;  // completions of a row with missing values

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
  static constexpr std::size_t kMostRows = 1024;  // of which one is to be made: it takes several times their memory

  // `rows` must outlive this. `candidates` draws the donors: the same for all rows, so that what is predicted for one
  // does not depend on the others.
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
    bool is_compared = false, is_told = false;
    for (std::size_t d = 0; d < n_features_; ++d) {
      if (!std::isnan(row[d])) continue;
      if (!points.missing().is_ever_known(d)) {
        std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(d * kCompletions), kCompletions, 0.0f);
        continue;
      }
      if (!is_compared) donors.compare(row);
      is_compared = true;
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
