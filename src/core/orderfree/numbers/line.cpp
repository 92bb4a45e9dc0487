#include "orderfree/numbers/line.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "samples/weight.hpp"

namespace onlineforest::orderfree {

Line LineFit::fit(const PanelRows& panel, std::span<const double> numbers) {
  n_ = panel.size();
  const auto [least, most] = std::ranges::minmax(numbers.first(n_));
  const double range = most - least;
  if (!(range > 0.0)) return {};
  total_ = 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < n_; ++i) {
    weights_[i] = multiplicity(panel.weight(i));
    total_ += weights_[i];
    sum += weights_[i] * (numbers[i] - least);
  }
  const double above = sum / total_;  // a mean of the numbers themselves could overflow
  for (std::size_t i = 0; i < n_; ++i) deviations_[i] = (numbers[i] - least - above) / range;
  describe_features(panel);
  choose_features();
  if (n_terms_ == 0) return {};
  fill_columns(panel);
  sum_products();
  factorise();
  if (!(loss_of_line() < loss_of_mean())) return {};
  Line line;
  line.n_terms = n_terms_;
  line.base = least + above;
  line.least = least;
  line.most = most;
  for (std::size_t k = 0; k < n_terms_; ++k) {
    const Feature& feature = features_[k];
    line.terms[k] = {feature.cell, feature.low, feature.high, centres_[k], slopes_[k] / feature.deviation * range};
  }
  return line;
}

// Finds the features that vary, with their covariance with the numbers. Reads kMost features of all samples at a time,
// so that compilers use vector instructions.
void LineFit::describe_features(const PanelRows& panel) {
  const std::size_t n_numeric = panel.layout().n_numeric();
  features_.clear();
  for (std::size_t begin = 0; begin < n_numeric; begin += kMost) {
    const std::size_t n = std::min(kMost, n_numeric - begin);
    std::array<std::array<float, kMost>, kMostDeciding> values;
    for (std::size_t i = 0; i < n_; ++i) {
      values[i].fill(0.0f);
      std::copy_n(panel.row(i) + begin, n, values[i].begin());
    }
    Row n_of{}, mean{}, squares{}, products{};
    std::array<float, kMost> low, high;
    low.fill(std::numeric_limits<float>::infinity());
    high.fill(-std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t d = 0; d < kMost; ++d) {
        const float x = values[i][d];
        n_of[d] += is_missing(x) ? 0.0 : weights_[i];
        mean[d] += is_missing(x) ? 0.0 : weights_[i] * static_cast<double>(x);
      }
      for (std::size_t d = 0; d < kMost; ++d) {
        low[d] = values[i][d] < low[d] ? values[i][d] : low[d];  // false for a missing value
        high[d] = values[i][d] > high[d] ? values[i][d] : high[d];
      }
    }
    for (std::size_t d = 0; d < kMost; ++d) mean[d] /= n_of[d];
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t d = 0; d < kMost; ++d) {
        const float x = values[i][d];
        const double deviation = is_missing(x) ? 0.0 : static_cast<double>(x) - mean[d];
        squares[d] += weights_[i] * (deviation * deviation);
        products[d] += weights_[i] * (deviation * deviations_[i]);
      }
    }
    for (std::size_t d = 0; d < n; ++d) {
      const double score = products[d] * products[d] / squares[d];
      if (!(low[d] < high[d]) || !(score > 0.0)) continue;
      const double deviation = std::sqrt(squares[d] / n_of[d]);
      const auto cell = static_cast<std::int32_t>(begin + d);
      features_.push_back({cell, score, n_of[d], mean[d], deviation, low[d], high[d]});
    }
  }
}

void LineFit::choose_features() {
  n_terms_ = std::min(features_.size(), kMost);
  const auto comes_first = [](const Feature& a, const Feature& b) {
    return a.score > b.score || (a.score == b.score && a.cell < b.cell);
  };
  std::ranges::partial_sort(features_, features_.begin() + static_cast<std::ptrdiff_t>(n_terms_), comes_first);
}

// Moves the values of the chosen features to within their bounds, and scales them. Their weighted sum is then 0.
void LineFit::fill_columns(const PanelRows& panel) {
  for (std::size_t k = 0; k < n_terms_; ++k) {
    Feature& feature = features_[k];
    const double most = kMostDeviations * feature.deviation;
    feature.low = static_cast<float>(std::max(static_cast<double>(feature.low), feature.mean - most));
    feature.high = static_cast<float>(std::min(static_cast<double>(feature.high), feature.mean + most));
    Column& column = columns_[k];
    double sum = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const float x = panel.row(i)[feature.cell];
      column[i] = static_cast<double>(x < feature.low ? feature.low : (x > feature.high ? feature.high : x));
      sum += is_missing(x) ? 0.0 : weights_[i] * column[i];
    }
    centres_[k] = sum / feature.n;
    for (std::size_t i = 0; i < n_; ++i) {
      column[i] = is_missing(column[i]) ? 0.0 : (column[i] - centres_[k]) / feature.deviation;
    }
  }
}

void LineFit::sum_products() {
  std::array<Row, kMostDeciding> rows{};
  for (std::size_t k = 0; k < n_terms_; ++k) {
    for (std::size_t i = 0; i < n_; ++i) rows[i][k] = columns_[k][i];
  }
  for (std::size_t a = 0; a < n_terms_; ++a) {
    Row sums{};  // a local array stays in registers
    double target = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double weighted = weights_[i] * columns_[a][i];
      for (std::size_t b = 0; b < kMost; ++b) sums[b] += weighted * rows[i][b];
      target += weighted * deviations_[i];
    }
    matrix_[a] = sums;
    matrix_[a][a] += kStrength * total_;
    target_[a] = target;
  }
}

// Replaces the matrix by its Cholesky factor, and solves for the slopes.
void LineFit::factorise() {
  for (std::size_t i = 0; i < n_terms_; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix_[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= matrix_[i][k] * matrix_[j][k];
      matrix_[i][j] = i == j ? std::sqrt(sum) : sum / matrix_[j][j];
    }
  }
  for (std::size_t i = 0; i < n_terms_; ++i) {
    double sum = target_[i];
    for (std::size_t k = 0; k < i; ++k) sum -= matrix_[i][k] * slopes_[k];
    slopes_[i] = sum / matrix_[i][i];
  }
  for (std::size_t i = n_terms_; i-- > 0;) {
    double sum = slopes_[i];
    for (std::size_t k = i + 1; k < n_terms_; ++k) sum -= matrix_[k][i] * slopes_[k];
    slopes_[i] = sum / matrix_[i][i];
  }
}

// The error of a sample that is left out is its error divided by 1 minus its leverage.
double LineFit::loss_of_line() const {
  std::array<Column, kMost> halves;
  Column leverages{}, errors = deviations_;
  for (std::size_t k = 0; k < n_terms_; ++k) {
    Column& half = halves[k];
    half = columns_[k];
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t i = 0; i < n_; ++i) half[i] -= matrix_[k][j] * halves[j][i];
    }
    for (std::size_t i = 0; i < n_; ++i) {
      half[i] /= matrix_[k][k];
      leverages[i] += half[i] * half[i];
      errors[i] -= slopes_[k] * columns_[k][i];
    }
  }
  double loss = 0.0;
  for (std::size_t i = 0; i < n_; ++i) {
    const double error = errors[i] / (1.0 - weights_[i] * (1.0 / total_ + leverages[i]));
    loss += weights_[i] * (error * error);
  }
  return loss;
}

double LineFit::loss_of_mean() const {
  double loss = 0.0;
  for (std::size_t i = 0; i < n_; ++i) {
    const double error = deviations_[i] / (1.0 - weights_[i] / total_);
    loss += weights_[i] * (error * error);
  }
  return loss;
}

}  // namespace onlineforest::orderfree
