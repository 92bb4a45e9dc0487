#include "trend.hpp"

#include <cmath>

namespace onlineforest {

namespace {

constexpr double kRidge = 1e-3;             // per point, for columns of unit variance
constexpr std::size_t kMostSteps = 50;      // of conjugate gradients
constexpr double kSmallestResidual = 1e-6;  // relative
constexpr double kSteepest = 1e6;           // what a feature may add, in standard deviations of the values

template <class F>
double mean_of(std::span<const Slot> slots, F f) {
  // Relative to the first: nothing is lost where values are large and alike.
  const double first = f(slots.front());
  double sum = 0.0;
  for (const Slot slot : slots) sum += f(slot) - first;
  return first + sum / static_cast<double>(slots.size());
}

template <class F>
double deviation(std::span<const Slot> slots, double mean, F f) {
  double largest = 0.0, squares = 0.0;  // scaled by the largest no square overflows
  for (const Slot slot : slots) largest = std::max(largest, std::abs(f(slot) - mean));
  if (!(largest > 0.0)) return 0.0;
  for (const Slot slot : slots) {
    const double share = (f(slot) - mean) / largest;
    squares += share * share;
  }
  return largest * std::sqrt(squares / static_cast<double>(slots.size()));
}

// Up to `most` different values of feature d, evenly spaced in rank, the least and the greatest among them; none if
// there is only one.
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

// The columns of a regression: for each feature a straight line and a bend at each knot between the first and the last;
// shifted and scaled to mean 0 and variance 1.
class Regressors {
 public:
  Regressors(const PointStore<double>& points, std::span<const Slot> slots, const Trend& trend)
      : n_(slots.size()), scales_(trend.knots.size(), 0.0) {
    std::size_t begin = 0;
    for (std::size_t d = 0; d < trend.ends.size(); ++d) {
      const std::size_t end = static_cast<std::size_t>(trend.ends[d]);
      for (std::size_t k = begin; k + 1 < end; ++k) add(points, slots, d, trend.knots[k], k);
      begin = end;
    }
  }

  std::size_t n_points() const { return n_; }
  std::size_t size() const { return of_knot_.size(); }
  std::size_t knot(std::size_t i) const { return of_knot_[i]; }       // where the column bends
  double scale(std::size_t i) const { return scales_[of_knot_[i]]; }  // from the feature to the column

  // X b and X' r.
  void times(const std::vector<double>& b, std::vector<double>& result) const {
    std::ranges::fill(result, 0.0);
    for (std::size_t i = 0; i < size(); ++i) {
      const double* column = data_.data() + i * n_;
      for (std::size_t k = 0; k < n_; ++k) result[k] += column[k] * b[i];
    }
  }
  void transposed_times(const std::vector<double>& r, std::vector<double>& result) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const double* column = data_.data() + i * n_;
      double even = 0.0, odd = 0.0;  // two chains, for each step of one waits for the last
      for (std::size_t k = 0; k + 1 < n_; k += 2) {
        even += column[k] * r[k];
        odd += column[k + 1] * r[k + 1];
      }
      result[i] = even + odd + (n_ % 2 == 1 ? column[n_ - 1] * r[n_ - 1] : 0.0);
    }
  }

 private:
  void add(const PointStore<double>& points, std::span<const Slot> slots, std::size_t d, float bend, std::size_t knot) {
    const auto value = [&](Slot slot) { return std::max(length(bend, points.row(slot)[d]), 0.0); };
    const double mean = mean_of(slots, value), size = deviation(slots, mean, value);
    if (!(size > 0.0)) return;
    scales_[knot] = 1.0 / size;
    of_knot_.push_back(knot);
    for (const Slot slot : slots) data_.push_back((value(slot) - mean) / size);
  }

  std::size_t n_;
  std::vector<double> data_;
  std::vector<double> scales_;        // per knot
  std::vector<std::size_t> of_knot_;  // per column
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Solves (X'X + ridge) b = X'y by conjugate gradients: a few sweeps over X, however many columns. To stop before the
// end is a kind of ridge, too.
std::vector<double> solve(const Regressors& x, const std::vector<double>& y, StopProbe& stop) {
  const std::size_t n = x.n_points(), k = x.size();
  const double ridge = kRidge * static_cast<double>(n);
  std::vector<double> b(k, 0.0), residual(k), direction, image(k), through(n);
  x.transposed_times(y, residual);
  direction = residual;
  double size = dot(residual, residual);
  const double enough = kSmallestResidual * kSmallestResidual * size;
  for (std::size_t step = 0; step < kMostSteps && size > enough; ++step) {
    x.times(direction, through);
    x.transposed_times(through, image);
    for (std::size_t i = 0; i < k; ++i) image[i] += ridge * direction[i];
    const double length = size / dot(direction, image);
    for (std::size_t i = 0; i < k; ++i) {
      b[i] += length * direction[i];
      residual[i] -= length * image[i];
    }
    const double next = dot(residual, residual);
    for (std::size_t i = 0; i < k; ++i) direction[i] = residual[i] + next / size * direction[i];
    size = next;
    stop.tick(4 * n * k);
  }
  return b;
}

}  // namespace

Trend fit_trend(const PointStore<double>& points, std::span<const Slot> slots, std::size_t most_knots,
                StopProbe& stop) {
  const auto value = [&](Slot slot) { return points.value(slot); };
  Trend trend;
  trend.intercept = mean_of(slots, value);
  const double size = deviation(slots, trend.intercept, value);
  if (most_knots < 2 || !(size > 0.0)) return trend;

  const Trend constant = trend;
  for (std::size_t d = 0; d < points.n_features(); ++d) {
    add_knots(points, slots, d, most_knots, trend.knots);
    trend.ends.push_back(static_cast<std::int32_t>(trend.knots.size()));
    stop.tick(16 * slots.size());
  }
  const Regressors columns(points, slots, trend);
  if (columns.size() == 0) return constant;
  std::vector<double> y;
  y.reserve(slots.size());
  for (const Slot slot : slots) y.push_back((points.value(slot) - trend.intercept) / size);
  const std::vector<double> b = solve(columns, y, stop);

  // Bends, one after the other, make heights.
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
  trend.intercept += mean_of(slots, value) - mean_of(slots, [&](Slot slot) { return trend.at(points.row(slot)); });
  // A line through values of very different features may be steep.
  const auto is_small = [&](double height) { return std::abs(height) <= kSteepest * size; };
  const bool is_sound = is_small(trend.intercept - constant.intercept) && std::ranges::all_of(trend.heights, is_small);
  return is_sound ? trend : constant;
}

double deviation_from(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots) {
  return deviation(slots, 0.0, [&](Slot slot) { return points.value(slot) - trend.at(points.row(slot)); });
}

double deviation_of(const Trend& trend, const PointStore<double>& points, std::span<const Slot> slots) {
  const auto value = [&](Slot slot) { return trend.at(points.row(slot)); };
  return trend.is_constant() ? 0.0 : deviation(slots, mean_of(slots, value), value);
}

}  // namespace onlineforest
