#include "mondrian/process/bounds.hpp"

#include <cmath>
#include <vector>

#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

// 11 features: more than one group of rates.
constexpr std::size_t n = 11;

// The unit box; feature 3 has weight 0, feature 9 has weight 2.
struct UnitBox {
  std::vector<double> weights = std::vector<double>(n, 1.0);
  std::vector<float> lower = std::vector<float>(n, 0.0f), upper = std::vector<float>(n, 1.0f);
  Bounds bounds;

  UnitBox() {
    weights[3] = 0.0;
    weights[9] = 2.0;
    bounds.start(weights.data(), {lower.data(), upper.data()}, n);
  }
};

TEST_CASE_FIXTURE(UnitBox, "rewinding undoes all changes since the mark") {
  CHECK(bounds.total() == 11.0);
  bounds.set(0, 0.0f, 0.5f);
  const Bounds::Mark mark = bounds.mark();
  bounds.set(9, 0.25f, 0.5f);
  bounds.set(9, 0.25f, 0.25f);
  bounds.set(0, 0.0f, 0.0f);
  CHECK(bounds.total() == 8.0);
  CHECK(bounds.lower(9) == 0.25f);
  CHECK(bounds.upper(9) == 0.25f);
  bounds.rewind(mark);
  CHECK(bounds.total() == 10.5);
  CHECK(bounds.upper(0) == 0.5f);
  CHECK(bounds.lower(9) == 0.0f);
  CHECK(bounds.upper(9) == 1.0f);
}

TEST_CASE_FIXTURE(UnitBox, "a dimension is chosen in proportion to its rate") {
  bounds.set(0, 0.0f, 0.5f);
  Rng rng(1, 0);
  std::vector<int> counts(n, 0);
  const int n_draws = 40'000;
  for (int i = 0; i < n_draws; ++i) ++counts[bounds.choose_dimension(rng, bounds.total())];
  for (std::size_t d = 0; d < n; ++d) {
    const double p = weights[d] * (d == 0 ? 0.5 : 1.0) / 10.5;
    CHECK(std::abs(counts[d] - n_draws * p) <= 6 * std::sqrt(n_draws * p * (1 - p)));
  }
}

TEST_CASE_FIXTURE(UnitBox, "the total is exactly 0 when every interval is a point") {
  for (std::size_t d = 0; d < n; ++d) bounds.set(d, 0.3f, 0.3f);
  CHECK(bounds.total() == 0.0);
  bounds.rewind(0);
  CHECK(bounds.total() == 11.0);
}

}  // namespace
