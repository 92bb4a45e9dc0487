#include "numbers/trend.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

template <class F>
PointStore<double> points_of(std::size_t n, std::size_t n_features, F f) {
  PointStore<double> points(n_features);
  Rng rng(1, 2);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<float> row(n_features);
    for (float& x : row) x = static_cast<float>(rng.uniform());
    const double value = f(row);
    points.append(row, std::span(&value, 1));
  }
  return points;
}

std::vector<Slot> all_of(const PointStore<double>& points) {
  std::vector<Slot> slots(points.size());
  std::iota(slots.begin(), slots.end(), Slot{0});
  return slots;
}

Trend fitted(const PointStore<double>& points, std::size_t n_knots) {
  StopSignal signal({});
  StopProbe stop(signal, true);
  return fit_trend(points, all_of(points), n_knots, stop);
}

TEST_CASE("a constant trend is the mean") {
  const auto points = points_of(50, 2, [](const auto& x) { return 1e9 + x[0]; });
  const Trend trend = fitted(points, 1);
  double sum = 0.0;
  for (const double y : points.values()) sum += y - 1e9;
  CHECK(trend.is_constant());
  CHECK(std::abs(trend.intercept - 1e9 - sum / 50) < 1e-6);
  CHECK(deviation_of(trend, points, all_of(points)) == 0.0);
  CHECK(fitted(points_of(50, 2, [](const auto&) { return 3.0; }), 16).is_constant());
}

// A ridge of 0.001 makes a line flatter by a factor of 0.999.
TEST_CASE("a linear trend is found and is constant outside the data") {
  const auto line = [](const auto& x) { return 5.0 + 2.0 * x[0] - 3.0 * x[2]; };
  const auto points = points_of(500, 3, line);
  const Trend trend = fitted(points, 2);
  CHECK(trend.knots.size() == 6);
  CHECK(trend.ends.size() == 3);
  CHECK(deviation_from(trend, points, all_of(points)) < 2e-3);
  const std::vector<float> inside{0.5f, 0.5f, 0.5f}, beyond{1e30f, 0.5f, -1e30f}, corner{1.0f, 0.5f, 0.0f};
  CHECK(std::abs(trend.at(inside.data()) - line(inside)) < 0.01);
  CHECK(std::abs(trend.at(beyond.data()) - line(corner)) < 0.05);
}

TEST_CASE("a sum of bent functions is found") {
  const auto points = points_of(2000, 2, [](const auto& x) { return std::abs(x[0] - 0.5) + std::sin(6.0 * x[1]); });
  const auto slots = all_of(points);
  const double linear = deviation_from(fitted(points, 2), points, slots);
  const Trend trend = fitted(points, 16);
  CHECK(deviation_from(trend, points, slots) < 0.1 * linear);
  CHECK(std::abs(deviation_of(trend, points, slots) - deviation_from(fitted(points, 1), points, slots)) < 0.02);
}

TEST_CASE("knots strictly increase for features with ties, gaps and extreme values") {
  PointStore<double> points(4);
  Rng rng(3, 4);
  for (int i = 0; i < 200; ++i) {
    const float u = static_cast<float>(rng.uniform());
    const std::vector<float> row{7.0f, u < 0.9f ? 0.0f : u, u < 0.5f ? -3e38f : 3e38f, std::round(4.0f * u)};
    const double y = u + (u < 0.5f ? 1.0 : 0.0);
    points.append(row, std::span(&y, 1));
  }
  const Trend trend = fitted(points, 16);
  CHECK(trend.ends.front() == 0);  // a constant feature has no knots
  std::size_t begin = 0;
  for (const std::int32_t end : trend.ends) {
    for (std::size_t k = begin + 1; k < static_cast<std::size_t>(end); ++k) CHECK(trend.knots[k - 1] < trend.knots[k]);
    begin = static_cast<std::size_t>(end);
  }
  for (const double height : trend.heights) CHECK(std::isfinite(height));
  CHECK(deviation_from(trend, points, all_of(points)) < 0.1);
}

// Points of whole weights, and a store with a copy for each unit of weight.
TEST_CASE("a trend of weighted points is that of copies") {
  const auto plain = points_of(40, 2, [](const auto& x) { return 2.0 * x[0] + std::sin(9.0 * x[1]); });
  PointStore<double> weighted(2), copied(2);
  std::vector<Slot> first_copy;
  for (const Slot slot : all_of(plain)) {
    const double value = plain.value(slot);
    const int copies = 1 + slot % 5;
    const Weight weight = copies * kOne;
    weighted.append(std::span(plain.row(slot), 2), std::span(&value, 1), std::span(&weight, 1));
    first_copy.push_back(static_cast<Slot>(copied.size()));
    for (int i = 0; i < copies; ++i) copied.append(std::span(plain.row(slot), 2), std::span(&value, 1));
  }
  const Trend trend = fitted(weighted, 2), other = fitted(copied, 2);
  REQUIRE(trend.knots == other.knots);
  for (std::size_t i = 0; i < trend.knots.size(); ++i) CHECK(trend.heights[i] == doctest::Approx(other.heights[i]));
  CHECK(trend.intercept == doctest::Approx(other.intercept));
  CHECK(deviation_from(trend, weighted, all_of(weighted)) ==
        doctest::Approx(deviation_from(other, copied, all_of(copied))));
  CHECK(deviation_of(trend, weighted, all_of(weighted)) ==
        doctest::Approx(deviation_of(other, copied, all_of(copied))));
  StopSignal signal({});
  StopProbe stop(signal, true);
  // A point of weight 3 pulls the trend as much as its three copies together.
  const auto of_points = leverages(trend, weighted, all_of(weighted), all_of(weighted), stop);
  const auto of_copies = leverages(other, copied, all_of(copied), first_copy, stop);
  for (std::size_t i = 0; i < of_points.size(); ++i) {
    const double copies = 1.0 + static_cast<double>(i % 5);
    CHECK(of_points[i] == doctest::Approx(std::min(copies * of_copies[i], 0.95)));
  }
}

TEST_CASE("a trend scales with the unit of the target") {
  const auto f = [](const auto& x) { return x[0] * x[0] + x[1]; };
  const Trend small = fitted(points_of(100, 2, f), 8);
  const Trend large = fitted(points_of(100, 2, [&](const auto& x) { return 1e140 * f(x); }), 8);
  CHECK(small.knots == large.knots);
  for (std::size_t k = 0; k < small.heights.size(); ++k) {
    CHECK(std::abs(large.heights[k] / 1e140 - small.heights[k]) < 1e-9);
  }
}

}  // namespace
