#include "box.hpp"

#include <limits>

#include "check.hpp"

using namespace onlineforest;

int main() {
  float lower[2], upper[2];
  const float a[2] = {1, 5}, b[2] = {3, 2};
  start_box(lower, upper, a, 2);
  include(lower, upper, {b, b}, 2);
  CHECK(lower[0] == 1 && lower[1] == 2 && upper[0] == 3 && upper[1] == 5);

  const double weights[2] = {1.0, 10.0};
  CHECK(linear_dimension(weights, {lower, upper}, 2) == 2.0 + 30.0);

  const float outer_lower[2] = {0, 2}, outer_upper[2] = {3, 6};
  const BoxView box{lower, upper}, outer{outer_lower, outer_upper};
  CHECK(gap_weight(weights, box, outer, 0) == 1.0);   // below in dimension 0
  CHECK(gap_weight(weights, box, outer, 1) == 0.0);   // above in dimension 0
  CHECK(gap_weight(weights, box, outer, 2) == 0.0);   // below in dimension 1
  CHECK(gap_weight(weights, box, outer, 3) == 10.0);  // above in dimension 1
  CHECK(extension_rate(weights, box, outer, 2) == 11.0);

  const float inside[2] = {2, 3}, corner[2] = {1, 5}, outside[2] = {4, 0};
  CHECK(separation_rate(weights, box, inside, 2) == 0.0);
  CHECK(separation_rate(weights, box, corner, 2) == 0.0);
  CHECK(separation_rate(weights, box, outside, 2) == 1.0 + 20.0);

  const float most = std::numeric_limits<float>::max();
  CHECK(length(-most, most) == 2.0 * static_cast<double>(most));
  return testing::finish();
}
