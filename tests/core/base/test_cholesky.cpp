#include "base/cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

using Vector = std::vector<double>;

// X'X + ridge for rows X.
Vector normal_matrix(const std::vector<Vector>& rows, double ridge) {
  const std::size_t n = rows.front().size();
  Vector matrix(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (const Vector& row : rows) matrix[i * n + j] += row[i] * row[j];
      if (i == j) matrix[i * n + j] += ridge;
    }
  }
  return matrix;
}

std::vector<Vector> random_rows(std::size_t n_rows, std::size_t n, Rng& rng) {
  std::vector<Vector> rows(n_rows, Vector(n));
  for (Vector& row : rows) std::ranges::generate(row, [&rng] { return rng.uniform() - 0.5; });
  return rows;
}

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

TEST_CASE("a system worked out by hand is solved") {
  // L = (2 0; 1 3), so L L' = (4 2; 2 10). The number right of the diagonal is not read.
  const Cholesky factor({4.0, 99.0, 2.0, 10.0}, 2);
  Vector c{8.0, 22.0};
  factor.solve(c);
  CHECK(c == Vector{1.0, 2.0});
  Vector x{2.0, 7.0};  // L b = x gives b = (1, 2)
  CHECK(factor.leverage(x) == 5.0);
}

TEST_CASE("random systems are solved but for rounding") {
  Rng rng(1, 0);
  for (const std::size_t n : {1, 2, 5, 17, 40}) {
    const Vector matrix = normal_matrix(random_rows(2 * n, n, rng), 0.01);
    Vector expected(n), c(n, 0.0);
    std::ranges::generate(expected, [&rng] { return rng.uniform() - 0.5; });
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) c[i] += matrix[i * n + j] * expected[j];
    }
    Cholesky(matrix, n).solve(c);
    for (std::size_t i = 0; i < n; ++i) CHECK(std::abs(c[i] - expected[i]) < 1e-10);
  }
}

// The ridge is that of the fit without the sample, too.
TEST_CASE("leverages give the errors of fits that leave one sample out") {
  Rng rng(2, 0);
  const std::size_t n_rows = 64, n = 6;
  const std::vector<Vector> rows = random_rows(n_rows, n, rng);
  Vector y(n_rows);
  for (std::size_t i = 0; i < n_rows; ++i) y[i] = rows[i][0] - 2.0 * rows[i][3] + 0.1 * rng.uniform();
  const auto fit = [&](std::size_t without) {
    std::vector<Vector> some;
    Vector b(n, 0.0);
    for (std::size_t i = 0; i < n_rows; ++i) {
      if (i == without) continue;
      some.push_back(rows[i]);
      for (std::size_t k = 0; k < n; ++k) b[k] += rows[i][k] * y[i];
    }
    Cholesky(normal_matrix(some, 0.5), n).solve(b);
    return b;
  };
  const Vector of_all = fit(n_rows);
  const Cholesky factor(normal_matrix(rows, 0.5), n);
  for (std::size_t i = 0; i < n_rows; ++i) {
    Vector x = rows[i];
    const double leverage = factor.leverage(x);
    CHECK(leverage > 0.0);
    CHECK(leverage < 1.0);
    const double left_out = y[i] - dot(fit(i), rows[i]);
    CHECK((y[i] - dot(of_all, rows[i])) / (1.0 - leverage) == doctest::Approx(left_out));
  }
}

}  // namespace
