#include "numbers/mixture.hpp"

#include <cmath>
#include <vector>

#include "numbers/calibration.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

const std::vector<Component> kTwoHumps{{0.5, -2.0, 0.25}, {1.0, 3.0, 1.0}, {0.5, 3.5, 4.0}};

TEST_CASE("a mixture of one normal is that normal") {
  const std::vector<Component> one{{3.0, 1.0, 4.0}};
  const Mixture mixture(one);
  CHECK(mixture.moments().mean == 1.0);
  CHECK(mixture.moments().variance == 4.0);
  CHECK(std::abs(mixture.distribution(1.0) - 0.5) < 1e-15);
  CHECK(std::abs(mixture.quantile(0.975) - (1.0 + 2.0 * 1.959963984540054)) < 1e-8);
  CHECK(std::abs(mixture.log_density(1.0) - std::log(1.0 / std::sqrt(8.0 * std::numbers::pi))) < 1e-14);
}

TEST_CASE("moments and distribution equal Riemann sums of the density") {
  const Mixture mixture(kTwoHumps);
  double mass = 0.0, mean = 0.0, square = 0.0;
  const double step = 1e-3;
  for (double x = -20.0; x < 25.0; x += step) {
    const double density = mixture.density(x) * step;
    mass += density;
    mean += x * density;
    square += x * x * density;
    if (x < 4.0 && x + step >= 4.0) CHECK(std::abs(mixture.distribution(x + step / 2) - mass) < 1e-6);
  }
  CHECK(std::abs(mass - 1.0) < 1e-9);
  CHECK(std::abs(mean - mixture.moments().mean) < 1e-9);
  CHECK(std::abs(square - mean * mean - mixture.moments().variance) < 1e-9);
}

TEST_CASE("quantiles invert the distribution") {
  const Mixture mixture(kTwoHumps);
  double before = -kInfinity;
  for (const double level : {1e-12, 1e-6, 0.01, 0.2, 0.25, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-12}) {
    const double x = mixture.quantile(level);
    CHECK(x > before);
    CHECK(std::abs(mixture.distribution(x) - level) < 1e-8 * std::max(level, 1e-3));
    before = x;
  }
}

TEST_CASE("log densities are exact where densities underflow") {
  const Mixture mixture(kTwoHumps);
  CHECK(mixture.density(1e6) == 0.0);
  CHECK(std::abs(mixture.log_density(1e6) / -1.25e11 - 1.0) < 1e-4);
  const std::vector<Component> apart{{1.0, -1e8, 1e-6}, {1.0, 1e8, 1e-6}};
  CHECK(std::abs(Mixture(apart).quantile(0.25) + 1e8) < 1.0);
  CHECK(std::abs(Mixture(apart).quantile(0.75) - 1e8) < 1.0);
  const std::vector<Component> narrow{{1.0, 0.0, 1e-200}}, point{{1.0, 7.0, 0.0}};
  CHECK(Mixture(narrow).log_density(1e150) == -kInfinity);
  CHECK(Mixture(point).quantile(0.3) == 7.0);
}

TEST_CASE("quantiles converge where Newton's method alone would cycle or creep") {
  const std::vector<Component> spike{{0.1323, 0.0, 1.0}, {0.02817, 0.13762, 0.0008}};
  CHECK(std::abs(Mixture(spike).distribution(Mixture(spike).quantile(0.6234)) - 0.6234) < 1e-8);
  const std::vector<Component> one{{1.0, 0.0, 1.0}};
  CHECK(std::abs(Mixture(one).quantile(1e-100) + 21.27345) < 1e-4);
}

TEST_CASE("a calibration of weighted errors is that of copies") {
  const std::vector<double> errors{0.5, -1.0, 0.1, 2.0}, variances{0.2, 0.4, 0.1, 1.0};
  const std::vector<Weight> weights{kOne, 3 * kOne, 2 * kOne, kOne};
  std::vector<double> copied_errors, copied_variances;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    for (Weight copy = 0; copy < weights[i] / kOne; ++copy) {
      copied_errors.push_back(errors[i]);
      copied_variances.push_back(variances[i]);
    }
  }
  const Calibration weighted = most_likely(errors, variances, weights);
  const Calibration copied = most_likely(copied_errors, copied_variances);
  CHECK(weighted.scale == doctest::Approx(copied.scale));
  CHECK(weighted.noise == copied.noise);
  CHECK(quantiles_of(errors, {}) == std::vector<double>{-1.0, 0.1, 0.5, 2.0});
  CHECK(quantiles_of(errors, std::vector<Weight>(4, 7)) == std::vector<double>{-1.0, 0.1, 0.5, 2.0});
  CHECK(quantiles_of(errors, std::vector<Weight>{1, 5, 1, 1}) == std::vector<double>{-1.0, -1.0, 0.1, 2.0});
}

TEST_CASE("levels are interpolated between the calibrated ones") {
  CHECK(Calibration().level(0.3) == 0.3);
  const Calibration calibration{1.0, 0.0, {0.4, 0.5, 0.7}};
  CHECK(calibration.level(0.25) == 0.4);
  CHECK(calibration.level(0.5) == 0.5);
  CHECK(calibration.level(0.75) == 0.7);
  CHECK(std::abs(calibration.level(0.125) - 0.2) < 1e-15);
  CHECK(std::abs(calibration.level(0.875) - 0.85) < 1e-15);
  const Calibration extreme{1.0, 0.0, {0.0, 1.0}};
  CHECK(extreme.level(0.1) > 0.0);
  CHECK(extreme.level(0.9) < 1.0);
}

}  // namespace
