#include "numbers/trend.hpp"

#include <cmath>

namespace onlineforest {

namespace {

constexpr double kRidge = 1e-3;  // per weight of 1, for columns of unit variance
constexpr double kLargestLeverage = 0.95;
constexpr double kSteepest = 1e6;  // largest contribution of a feature, in standard deviations of the values

using Points = PointStore<double>;

// How often the points count together.
double weight_of(const Points& points, std::span<const Slot> slots) {
  double sum = 0.0;
  for (const Slot slot : slots) sum += points.multiplicity(slot);
  return sum;
}

template <class F>
double mean_of(const Points& points, std::span<const Slot> slots, F f) {
  // Relative to the first value, so that large, nearly equal values lose no precision.
  const double first = f(slots.front());
  double sum = 0.0;
  for (const Slot slot : slots) sum += points.multiplicity(slot) * (f(slot) - first);
  return first + sum / weight_of(points, slots);
}

template <class F>
double deviation(const Points& points, std::span<const Slot> slots, double mean, F f) {
  double largest = 0.0, squares = 0.0;  // squares are scaled by the largest so that none overflows
  for (const Slot slot : slots) largest = std::max(largest, std::abs(f(slot) - mean));
  if (!(largest > 0.0)) return 0.0;
  for (const Slot slot : slots) {
    const double share = (f(slot) - mean) / largest;
    squares += points.multiplicity(slot) * (share * share);
  }
  return largest * std::sqrt(squares / weight_of(points, slots));
}

// Up to `most` distinct values of feature d, evenly spaced in rank, including the minimum and the maximum; none if the
// feature is constant.
void add_knots(const PointStore<double>& points, std::span<const Slot> slots, std::size_t d, std::size_t most,
               std::vector<float>& knots) {
  std::vector<float> values;
  values.reserve(slots.size());
  for (const Slot slot : slots) values.push_back(points.row(slot)[d]);
  std::ranges::sort(values);
  if (!(values.front() < values.back())) return;
  const std::size_t begin = knots.size();
  for (std::size_t k = 0; k < most; ++k) {
    const float value = values[k * (values.size() - 1) / (most - 1)];
    if (knots.size() == begin || value > knots.back()) knots.push_back(value);
  }
}

// The columns of the regression: per feature a linear term and a hinge at each inner knot.
class Regressors {
 public:
  Regressors(const PointStore<double>& points, std::span<const Slot> slots, const Trend& trend) {
    std::size_t begin = 0;
    for (std::size_t d = 0; d < trend.ends.size(); ++d) {
      const std::size_t end = static_cast<std::size_t>(trend.ends[d]);
      for (std::size_t k = begin; k + 1 < end; ++k) {
        const auto value = [&](Slot slot) { return bent(trend.knots[k], points.row(slot)[d]); };
        const double mean = mean_of(points, slots, value), size = deviation(points, slots, mean, value);
        if (size > 0.0) columns_.push_back({k, d, trend.knots[k], mean, 1.0 / size});
      }
      begin = end;
    }
  }

  std::size_t size() const { return columns_.size(); }
  std::size_t knot(std::size_t i) const { return columns_[i].knot; }  // where the hinge is
  double scale(std::size_t i) const { return columns_[i].scale; }     // factor from the feature to the column

  // The columns of one point, standardised to mean 0 and variance 1.
  void set_row(const float* row, std::vector<double>& values) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const Column& column = columns_[i];
      values[i] = (bent(column.at, row[column.feature]) - column.mean) * column.scale;
    }
  }

 private:
  struct Column {
    std::size_t knot, feature;
    float at;
    double mean, scale;
  };

  static double bent(float knot, float x) { return std::max(length(knot, x), 0.0); }

  std::vector<Column> columns_;
};

// The Cholesky factor L of X'X plus a ridge, for the columns X of some points.
class NormalEquations {
 public:
  NormalEquations(const Regressors& x, const PointStore<double>& points, std::span<const Slot> slots, StopProbe& stop)
      : x_(x), factor_(x.size() * x.size(), 0.0) {
    const std::size_t n = x.size();
    std::vector<double> row(n);
    for (const Slot slot : slots) {
      x.set_row(points.row(slot), row);
      const double weight = points.multiplicity(slot);
      for (std::size_t i = 0; i < n; ++i) {
        double* to = factor_.data() + i * n;
        const double weighted = weight * row[i];
        for (std::size_t j = 0; j <= i; ++j) to[j] += weighted * row[j];
      }
      stop.tick(n * n / 2);
    }
    const double ridge = kRidge * weight_of(points, slots);
    for (std::size_t i = 0; i < n; ++i) {
      double* here = factor_.data() + i * n;
      here[i] += ridge;
      for (std::size_t j = 0; j <= i; ++j) {
        const double* other = factor_.data() + j * n;
        double sum = here[j];
        for (std::size_t k = 0; k < j; ++k) sum -= here[k] * other[k];
        here[j] = i == j ? std::sqrt(sum) : sum / other[j];
      }
    }
  }

  // Solves L L' b = c in place.
  void solve(std::vector<double>& c) const {
    const std::size_t n = c.size();
    solve_half(c);
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) c[i] -= factor_[k * n + i] * c[k];
      c[i] /= factor_[i * n + i];
    }
  }

  // x' (L L')^-1 x for the columns x of a point: its leverage.
  double leverage(const float* row, std::vector<double>& scratch) const {
    scratch.resize(x_.size());
    x_.set_row(row, scratch);
    solve_half(scratch);
    double sum = 0.0;
    for (const double value : scratch) sum += value * value;
    return sum;
  }

 private:
  void solve_half(std::vector<double>& c) const {
    const std::size_t n = c.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) c[i] -= factor_[i * n + k] * c[k];
      c[i] /= factor_[i * n + i];
    }
  }

  const Regressors& x_;
  std::vector<double> factor_;  // L, row by row
};

// The ridge regression coefficients.
template <class Value>
std::vector<double> fit(const Regressors& x, const PointStore<double>& points, std::span<const Slot> slots, Value value,
                        StopProbe& stop) {
  std::vector<double> b(x.size(), 0.0), row(x.size());
  for (const Slot slot : slots) {
    x.set_row(points.row(slot), row);
    const double weighted = points.multiplicity(slot) * value(slot);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] += row[i] * weighted;
  }
  NormalEquations(x, points, slots, stop).solve(b);
  return b;
}

}  // namespace

Trend fit_trend(const PointStore<double>& points, std::span<const Slot> slots, std::size_t most_knots,
                StopProbe& stop) {
  const auto value = [&](Slot slot) { return points.value(slot); };
  Trend trend;
  trend.intercept = mean_of(points, slots, value);
  const double size = deviation(points, slots, trend.intercept, value);
  if (most_knots < 2 || !(size > 0.0)) return trend;

  const Trend constant = trend;
  for (std::size_t d = 0; d < points.n_features(); ++d) {
    add_knots(points, slots, d, most_knots, trend.knots);
    trend.ends.push_back(static_cast<std::int32_t>(trend.knots.size()));
    stop.tick(16 * slots.size());
  }
  const Regressors columns(points, slots, trend);
  if (columns.size() == 0) return constant;
  const std::vector<double> b =
      fit(columns, points, slots, [&](Slot slot) { return (points.value(slot) - constant.intercept) / size; }, stop);

  // Accumulates hinges into heights.
  std::vector<double> bends(trend.knots.size(), 0.0);
  for (std::size_t i = 0; i < columns.size(); ++i) bends[columns.knot(i)] = size * b[i] * columns.scale(i);
  trend.heights.assign(trend.knots.size(), 0.0);
  std::size_t begin = 0;
  for (const std::int32_t end : trend.ends) {
    double slope = 0.0;
    for (std::size_t k = begin; k + 1 < static_cast<std::size_t>(end); ++k) {
      slope += bends[k];
      trend.heights[k + 1] = trend.heights[k] + slope * length(trend.knots[k], trend.knots[k + 1]);
    }
    begin = static_cast<std::size_t>(end);
  }
  trend.intercept +=
      mean_of(points, slots, value) - mean_of(points, slots, [&](Slot slot) { return trend.at(points.row(slot)); });
  // A fit over features of very different scales may be steep.
  const auto is_small = [&](double height) { return std::abs(height) <= kSteepest * size; };
  const bool is_sound = is_small(trend.intercept - constant.intercept) && std::ranges::all_of(trend.heights, is_small);
  return is_sound ? trend : constant;
}

std::vector<double> leverages(const Trend& trend, const PointStore<double>& points, std::span<const Slot> fitted,
                              std::span<const Slot> slots, StopProbe& stop) {
  std::vector<bool> was_fitted(points.size(), false);
  for (const Slot slot : fitted) was_fitted[static_cast<std::size_t>(slot)] = true;
  const Regressors columns(points, fitted, trend);
  const NormalEquations equations(columns, points, fitted, stop);
  const double weight = weight_of(points, fitted);
  std::vector<double> result, scratch;
  for (const Slot slot : slots) {
    double leverage = 0.0;
    if (was_fitted[static_cast<std::size_t>(slot)]) {
      leverage = points.multiplicity(slot) * (1.0 / weight + equations.leverage(points.row(slot), scratch));
    }
    result.push_back(std::min(leverage, kLargestLeverage));
    stop.tick(columns.size() * columns.size() / 2);
  }
  return result;
}

double deviation_from(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots) {
  return deviation(points, slots, 0.0, [&](Slot slot) { return points.value(slot) - trend.at(points.row(slot)); });
}

double deviation_of(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots) {
  const auto value = [&](Slot slot) { return trend.at(points.row(slot)); };
  return trend.is_constant() ? 0.0 : deviation(points, slots, mean_of(points, slots, value), value);
}

}  // namespace onlineforest
