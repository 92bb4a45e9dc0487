// Samples with weights as a core forest learns them: in whole units, without those that do not count. Must not know
// forests.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "points/weight.hpp"

namespace onlineforest::capi {

// Throws Failure unless all weights are finite and at least 0.
inline void check_sample_weights(std::span<const double> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0.0) {
      throw Failure(OF_INVALID_ARGUMENT, "the weight of row " + std::to_string(i) + " is " +
                                             std::to_string(weights[i]) + ", but must be finite and at least 0");
    }
  }
}

template <class Value>
class Lesson {
 public:
  // The rows and values must outlive this. Throws Failure if a weight, or their sum, is out of range.
  Lesson(std::span<const float> rows, std::span<const Value> values, std::optional<std::span<const double>> weights)
      : rows_(rows), values_(values) {
    if (!weights) return;
    check_sample_weights(*weights);
    check_sum(*weights);
    bool all_count = true;
    for (const double weight : *weights) {
      // Half a unit is rounded to an even number of them, as in Python.
      units_.push_back(static_cast<Weight>(std::nearbyint(weight * static_cast<double>(kOne))));
      all_count = all_count && units_.back() > 0;
    }
    if (!all_count) leave_out();
  }
  Lesson(const Lesson&) = delete;
  Lesson& operator=(const Lesson&) = delete;

  [[nodiscard]] std::span<const float> rows() const { return rows_; }
  [[nodiscard]] std::span<const Value> values() const { return values_; }
  [[nodiscard]] std::span<const Weight> weights() const { return units_; }

 private:
  static void check_sum(std::span<const double> weights) {
    constexpr Weight kMost = kMostWeight / kOne;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (!(sum <= static_cast<double>(kMost))) {
      throw Failure(OF_INVALID_ARGUMENT,
                    "the sum of weights is " + std::to_string(sum) + ", but must be at most " + std::to_string(kMost));
    }
  }

  // Keeps only samples of positive weight.
  void leave_out() {
    const std::size_t width = rows_.size() / values_.size();
    std::vector<Weight> units;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (units_[i] == 0) continue;
      const auto row = rows_.subspan(i * width, width);
      kept_rows_.insert(kept_rows_.end(), row.begin(), row.end());
      kept_values_.push_back(values_[i]);
      units.push_back(units_[i]);
    }
    units_ = std::move(units);
    rows_ = kept_rows_;
    values_ = kept_values_;
  }

  std::span<const float> rows_;
  std::span<const Value> values_;
  std::vector<float> kept_rows_;
  std::vector<Value> kept_values_;
  std::vector<Weight> units_;
};

}  // namespace onlineforest::capi
