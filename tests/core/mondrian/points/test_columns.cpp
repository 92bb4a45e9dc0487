#include "mondrian/points/columns.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

TEST_CASE("rows and columns are two views of the same numbers") {
  const std::size_t n = 53, n_features = 3;
  Rng rng(1, 0);
  std::vector<float> rows(n * n_features);
  for (float& x : rows) x = static_cast<float>(rng.uniform());
  PointStore points(n_features);
  points.append(rows, std::vector<int>(n, 0));
  const Columns columns(points, n);

  for (const Coordinates& at : {Coordinates::of(points), columns.coordinates()}) {
    std::vector<Slot> slots(n), spare;
    std::iota(slots.begin(), slots.end(), 0);
    for (std::size_t d = 0; d < n_features; ++d) {
      for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{7}, n}) {
        const auto range = at.range(d, std::span(slots).first(size));
        float lower = 2.0f, upper = -1.0f;
        for (std::size_t i = 0; i < size; ++i) {
          lower = std::min(lower, points.row(slots[i])[d]);
          upper = std::max(upper, points.row(slots[i])[d]);
        }
        CHECK(range.lower == lower);
        CHECK(range.upper == upper);
      }
      const std::size_t n_left = at.partition(d, 0.4f, slots, spare);
      for (std::size_t i = 0; i < n; ++i) CHECK((points.row(slots[i])[d] <= 0.4f) == (i < n_left));
      std::vector<Slot> sorted = slots;
      std::ranges::sort(sorted);
      for (std::size_t i = 0; i < n; ++i) CHECK(sorted[i] == static_cast<Slot>(i));
    }
    CHECK(at.partition(0, 2.0f, slots, spare) == n);
    CHECK(at.partition(0, -1.0f, slots, spare) == 0);
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t d = 0; d < n_features; ++d) {
      CHECK(columns.box().lower[d] <= rows[i * n_features + d]);
      CHECK(rows[i * n_features + d] <= columns.box().upper[d]);
    }
  }
}

}  // namespace
