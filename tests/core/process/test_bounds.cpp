#include "process/bounds.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"

using namespace onlineforest;

int main() {
  // 11 features: more than one group of rates.
  const std::size_t n = 11;
  std::vector<double> weights(n, 1.0);
  weights[3] = 0.0;
  weights[9] = 2.0;
  const std::vector<float> lower(n, 0.0f), upper(n, 1.0f);
  Bounds bounds;
  bounds.start(weights.data(), {lower.data(), upper.data()}, n);
  CHECK(bounds.total() == 11.0);

  // Changes are taken back to the mark, the last first.
  bounds.set(0, 0.0f, 0.5f);
  const Bounds::Mark mark = bounds.mark();
  bounds.set(9, 0.25f, 0.5f);
  bounds.set(9, 0.25f, 0.25f);
  bounds.set(0, 0.0f, 0.0f);
  CHECK(bounds.total() == 8.0 && bounds.lower(9) == 0.25f && bounds.upper(9) == 0.25f);
  bounds.rewind(mark);
  CHECK(bounds.total() == 10.5 && bounds.upper(0) == 0.5f && bounds.lower(9) == 0.0f && bounds.upper(9) == 1.0f);

  // Dimensions are chosen by their rates, one of rate 0 never.
  Rng rng(1, 0);
  std::vector<int> counts(n, 0);
  const int n_draws = 40'000;
  for (int i = 0; i < n_draws; ++i) ++counts[bounds.choose_dimension(rng, bounds.total())];
  for (std::size_t d = 0; d < n; ++d) {
    const double p = weights[d] * (d == 0 ? 0.5 : 1.0) / 10.5;
    CHECK(std::abs(counts[d] - n_draws * p) <= 6 * std::sqrt(n_draws * p * (1 - p)));
  }

  // When all has shrunk to nothing the total is 0 exactly.
  for (std::size_t d = 0; d < n; ++d) bounds.set(d, 0.3f, 0.3f);
  CHECK(bounds.total() == 0.0);
  bounds.rewind(0);
  CHECK(bounds.total() == 11.0);
  return testing::finish();
}
