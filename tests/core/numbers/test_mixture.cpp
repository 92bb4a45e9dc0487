#include "numbers/mixture.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"
#include "numbers/calibration.hpp"

using namespace onlineforest;

namespace {

const std::vector<Component> kTwoHumps{{0.5, -2.0, 0.25}, {1.0, 3.0, 1.0}, {0.5, 3.5, 4.0}};

void test_one_normal() {
  const std::vector<Component> one{{3.0, 1.0, 4.0}};
  const Mixture law(one);
  CHECK(law.moments().mean == 1.0 && law.moments().variance == 4.0);
  CHECK(std::abs(law.distribution(1.0) - 0.5) < 1e-15);
  CHECK(std::abs(law.quantile(0.975) - (1.0 + 2.0 * 1.959963984540054)) < 1e-8);
  CHECK(std::abs(law.log_density(1.0) - std::log(1.0 / std::sqrt(8.0 * std::numbers::pi))) < 1e-14);
}

void test_moments_and_density_by_a_sum() {
  const Mixture law(kTwoHumps);
  double mass = 0.0, mean = 0.0, square = 0.0;
  const double step = 1e-3;
  for (double x = -20.0; x < 25.0; x += step) {
    const double density = law.density(x) * step;
    mass += density;
    mean += x * density;
    square += x * x * density;
    if (x < 4.0 && x + step >= 4.0) CHECK(std::abs(law.distribution(x + step / 2) - mass) < 1e-6);
  }
  CHECK(std::abs(mass - 1.0) < 1e-9 && std::abs(mean - law.moments().mean) < 1e-9);
  CHECK(std::abs(square - mean * mean - law.moments().variance) < 1e-9);
}

void test_quantiles_invert_the_distribution() {
  const Mixture law(kTwoHumps);
  double before = -kInfinity;
  for (const double level : {1e-12, 1e-6, 0.01, 0.2, 0.25, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-12}) {
    const double x = law.quantile(level);
    CHECK(x > before && std::abs(law.distribution(x) - level) < 1e-8 * std::max(level, 1e-3));
    before = x;
  }
}

// Where densities are no numbers any more, their logarithms are.
void test_far_away() {
  const Mixture law(kTwoHumps);
  CHECK(law.density(1e6) == 0.0 && std::abs(law.log_density(1e6) / -1.25e11 - 1.0) < 1e-4);
  const std::vector<Component> apart{{1.0, -1e8, 1e-6}, {1.0, 1e8, 1e-6}};
  CHECK(std::abs(Mixture(apart).quantile(0.25) + 1e8) < 1.0);
  CHECK(std::abs(Mixture(apart).quantile(0.75) - 1e8) < 1.0);
  const std::vector<Component> narrow{{1.0, 0.0, 1e-200}}, point{{1.0, 7.0, 0.0}};
  CHECK(Mixture(narrow).log_density(1e150) == -kInfinity);
  CHECK(Mixture(point).quantile(0.3) == 7.0);
}

// Newton's method alone would go round in circles here, or creep.
void test_hard_quantiles() {
  const std::vector<Component> spike{{0.1323, 0.0, 1.0}, {0.02817, 0.13762, 0.0008}};
  CHECK(std::abs(Mixture(spike).distribution(Mixture(spike).quantile(0.6234)) - 0.6234) < 1e-8);
  const std::vector<Component> one{{1.0, 0.0, 1.0}};
  CHECK(std::abs(Mixture(one).quantile(1e-100) + 21.27345) < 1e-4);
}

void test_levels() {
  CHECK(Calibration().level(0.3) == 0.3);
  const Calibration calibration{1.0, 0.0, {0.4, 0.5, 0.7}};
  CHECK(calibration.level(0.25) == 0.4 && calibration.level(0.5) == 0.5 && calibration.level(0.75) == 0.7);
  CHECK(std::abs(calibration.level(0.125) - 0.2) < 1e-15 && std::abs(calibration.level(0.875) - 0.85) < 1e-15);
  const Calibration extreme{1.0, 0.0, {0.0, 1.0}};
  CHECK(extreme.level(0.1) > 0.0 && extreme.level(0.9) < 1.0);
}

}  // namespace

int main() {
  test_one_normal();
  test_moments_and_density_by_a_sum();
  test_quantiles_invert_the_distribution();
  test_far_away();
  test_hard_quantiles();
  test_levels();
  return testing::finish();
}
