#include "numbers/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "base/elementary.hpp"

namespace onlineforest {

namespace {

constexpr double kLeastScale = 1e-6;
constexpr double kExtremeLevel = 1e-12;  // quantiles are taken only at levels in [1e-12, 1 - 1e-12]

}  // namespace

double Calibration::level(double q) const {
  if (levels.empty()) return q;
  // Interpolates linearly between (0, 0), the points (i / (n + 1), level i) and (1, 1).
  const double place = q * static_cast<double>(levels.size() + 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), levels.size());
  const double low = below == 0 ? 0.0 : levels[below - 1], high = below == levels.size() ? 1.0 : levels[below];
  return std::clamp(low + (place - static_cast<double>(below)) * (high - low), kExtremeLevel, 1.0 - kExtremeLevel);
}

std::vector<double> quantiles_of(std::span<const double> numbers, std::span<const Weight> weights) {
  const std::size_t n = numbers.size();
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  const auto weight = [&](std::size_t i) {
    return weights.empty() ? std::uint64_t{1} : static_cast<std::uint64_t>(weights[i]);
  };
  std::uint64_t total = 0, sum = 0;
  for (std::size_t i = 0; i < n; ++i) total += weight(i);
  std::vector<double> quantiles;
  for (const std::size_t i : order) {
    sum += weight(i);
    // In whole numbers: with equal weights each number is a quantile.
    while (quantiles.size() < n && (quantiles.size() + 1) * total <= sum * n) quantiles.push_back(numbers[i]);
  }
  return quantiles;
}

Calibration most_likely(std::span<const double> errors, std::span<const double> variances,
                        std::span<const Weight> weights) {
  constexpr double noises[] = {0.0,  0.0001, 0.0003, 0.001, 0.003, 0.006, 0.01, 0.02,
                               0.03, 0.06,   0.1,    0.2,   0.3,   0.6,   1.0};
  const double n = static_cast<double>(errors.size());
  const double mean =
      weights.empty() ? 1.0 : multiplicity(std::accumulate(weights.begin(), weights.end(), Weight{0})) / n;
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : multiplicity(weights[i]) / mean; };
  std::vector<Calibration> candidates;
  std::vector<double> losses;
  for (const double noise : noises) {
    double squares = 0.0, logarithms = 0.0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      squares += weight(i) * (errors[i] * errors[i] / (variances[i] + noise));
      logarithms += weight(i) * natural_log(variances[i] + noise);
    }
    squares = std::max(squares, n * kLeastScale * kLeastScale);
    candidates.push_back({std::sqrt(squares / n), noise, {}});
    losses.push_back(logarithms + n * natural_log(squares / n));
  }
  // If all variances are similar, noise fits as well as scale; the least noise keeps differences between variances.
  const double enough = std::ranges::min(losses) + 4.0;  // in units of twice the log likelihood
  return candidates[static_cast<std::size_t>(std::ranges::find_if(losses, [&](double loss) { return loss <= enough; }) -
                                             losses.begin())];
}

}  // namespace onlineforest
