// Solves small systems of linear equations by the Cholesky factor of their matrix. All sums have a fixed order, so that
// the bits do not depend on the processor or a library. Must not know what the numbers mean.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace onlineforest {

// The factor L of a symmetric positive definite matrix L L'.
class Cholesky {
 public:
  // The matrix has n rows of n numbers; those right of the diagonal are not read.
  Cholesky(std::vector<double> matrix, std::size_t n) : n_(n), factor_(std::move(matrix)) {
    for (std::size_t i = 0; i < n; ++i) {
      double* here = factor_.data() + i * n;
      for (std::size_t j = 0; j <= i; ++j) {
        const double* other = factor_.data() + j * n;
        double sum = here[j];
        for (std::size_t k = 0; k < j; ++k) sum -= here[k] * other[k];
        here[j] = i == j ? std::sqrt(sum) : sum / other[j];
      }
    }
  }

  // Solves L L' b = c in place.
  void solve(std::span<double> c) const {
    solve_half(c);
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t k = i + 1; k < n_; ++k) c[i] -= factor_[k * n_ + i] * c[k];
      c[i] /= factor_[i * n_ + i];
    }
  }

  // x' (L L')^-1 x: in a least-squares fit, the leverage of a sample with these columns. Overwrites x.
  [[nodiscard]] double leverage(std::span<double> x) const {
    solve_half(x);
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    return sum;
  }

 private:
  // Solves L b = c in place.
  void solve_half(std::span<double> c) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < i; ++k) c[i] -= factor_[i * n_ + k] * c[k];
      c[i] /= factor_[i * n_ + i];
    }
  }

  std::size_t n_;
  std::vector<double> factor_;  // L, row by row; right of the diagonal as it was given
};

}  // namespace onlineforest
