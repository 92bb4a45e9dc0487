#include "mondrian/points/box.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.hpp"
#include "mondrian/process/rates.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

double plain_separation_rate(const std::vector<double>& weights, BoxView box, const std::vector<float>& row) {
  double rate = 0.0;
  for (std::size_t d = 0; d < row.size(); ++d) {
    const double x = row[d];
    rate += weights[d] * (std::max(x - box.upper[d], 0.0) + std::max(box.lower[d] - x, 0.0));
  }
  return rate;
}

TEST_CASE("sums in lanes equal the plain loop but for rounding, for every number of features") {
  Rng rng(5, 0);
  const auto draw = [&rng] { return static_cast<float>(rng.uniform()); };
  NestedSeparation nested;
  for (std::size_t n = 1; n < 150; ++n) {
    std::vector<double> weights(n);
    for (double& w : weights) w = rng.uniform() < 0.2 ? 0.0 : rng.uniform();
    std::vector<std::vector<float>> points(6, std::vector<float>(n));
    for (auto& point : points) std::ranges::generate(point, draw);
    std::vector<float> row(n), lower(n), upper(n), plain_lower(n), plain_upper(n);
    std::ranges::generate(row, draw);
    nested.start(weights.data(), row.data(), n);
    // Nested boxes: box k contains the first k points.
    for (std::size_t k = 1; k <= points.size(); ++k) {
      set_hull(lower.data(), upper.data(), k, [&](std::size_t i) { return points[i].data(); }, n);
      plain_lower = plain_upper = points[0];
      for (std::size_t i = 1; i < k; ++i) {
        include(plain_lower.data(), plain_upper.data(), {points[i].data(), points[i].data()}, n);
      }
      CHECK(lower == plain_lower);
      CHECK(upper == plain_upper);
      const BoxView box{lower.data(), upper.data()};
      const double expected = plain_separation_rate(weights, box, row);
      CHECK(std::abs(separation_rate(weights.data(), box, row.data(), n) - expected) <= 1e-14 * expected);
      CHECK(std::abs(nested.next_rate(box) - expected) <= 1e-14 * expected);
      double plain = 0.0;
      for (std::size_t d = 0; d < n; ++d) plain += weights[d] * length(lower[d], upper[d]);
      CHECK(std::abs(linear_dimension(weights.data(), box, n) - plain) <= 1e-14 * plain);
      // The rate of extending a box by one point is the rate of separation from that point.
      std::vector<float> outer_lower = lower, outer_upper = upper;
      include(outer_lower.data(), outer_upper.data(), {row.data(), row.data()}, n);
      const BoxView outer{outer_lower.data(), outer_upper.data()};
      CHECK(std::abs(extension_rate(weights.data(), box, outer, 0, n) - expected) <= 1e-14 * expected);
    }
  }
}

TEST_CASE("a point inside a box has separation rate exactly 0") {
  const std::vector<float> lower(37, 0.1f), upper(37, 0.3f), row(37, 0.3f);
  const std::vector<double> weights(37, 1e200);
  NestedSeparation nested;
  nested.start(weights.data(), row.data(), 37);
  CHECK(nested.next_rate({lower.data(), upper.data()}) == 0.0);
}

TEST_CASE("boxes and rates of a case worked out by hand") {
  float lower[2], upper[2];
  const float a[2] = {1, 5}, b[2] = {3, 2};
  start_box(lower, upper, {a, a}, 2);
  include(lower, upper, {b, b}, 2);
  CHECK(lower[0] == 1);
  CHECK(lower[1] == 2);
  CHECK(upper[0] == 3);
  CHECK(upper[1] == 5);

  const double weights[2] = {1.0, 10.0};
  CHECK(linear_dimension(weights, {lower, upper}, 2) == 2.0 + 30.0);

  const float outer_lower[2] = {0, 2}, outer_upper[2] = {3, 6};
  const BoxView box{lower, upper}, outer{outer_lower, outer_upper};
  CHECK(gap_weight(weights, box, outer, 0) == 1.0);   // below in dimension 0
  CHECK(gap_weight(weights, box, outer, 1) == 0.0);   // above in dimension 0
  CHECK(gap_weight(weights, box, outer, 2) == 0.0);   // below in dimension 1
  CHECK(gap_weight(weights, box, outer, 3) == 10.0);  // above in dimension 1
  CHECK(extension_rate(weights, box, outer, 0, 2) == 11.0);
  CHECK(extension_rate(weights, box, outer, 1, 2) == 10.0);

  const float inside[2] = {2, 3}, corner[2] = {1, 5}, outside[2] = {4, 0};
  CHECK(separation_rate(weights, box, inside, 2) == 0.0);
  CHECK(separation_rate(weights, box, corner, 2) == 0.0);
  CHECK(separation_rate(weights, box, outside, 2) == 1.0 + 20.0);

  const float most = std::numeric_limits<float>::max();
  CHECK(length(-most, most) == 2.0 * static_cast<double>(most));
}

}  // namespace
