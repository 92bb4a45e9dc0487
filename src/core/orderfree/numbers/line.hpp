// A line: a linear function of a few features, fitted to the deciding samples of a block. Must not know trees.
//
// A mean of few samples is a poor prediction where numbers rise along a feature. A line follows the rise, and the
// leaves below it are means of what the line leaves of the numbers: of the rests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orderfree/law/law.hpp"
#include "orderfree/law/panel.hpp"

namespace onlineforest::orderfree {

struct Line {
  static constexpr std::size_t kMostTerms = 8;

  // The part of a feature: slope * (x - centre), where x is first moved into [low, high].
  struct Term {
    std::int32_t cell = 0;
    float low = 0.0f, high = 0.0f;
    double centre = 0.0, slope = 0.0;

    friend bool operator==(const Term&, const Term&) = default;
  };

  std::size_t n_terms = 0;
  std::array<Term, kMostTerms> terms{};
  double base = 0.0;
  double least = 0.0, most = 0.0;  // the values of a line stay within this range

  // A block without a line has an empty one, which is 0 everywhere.
  [[nodiscard]] bool empty() const { return n_terms == 0; }
  // The value for a row. A missing value adds nothing.
  [[nodiscard]] double at(const float* row) const {
    double sum = base;
    for (std::size_t k = 0; k < n_terms; ++k) {
      const Term& term = terms[k];
      const float x = row[term.cell];
      if (is_missing(x)) continue;
      const float inside = x < term.low ? term.low : (x > term.high ? term.high : x);
      sum += term.slope * (static_cast<double>(inside) - term.centre);
    }
    return sum < least ? least : (sum > most ? most : sum);
  }

  friend bool operator==(const Line&, const Line&) = default;
};

// Fits lines by ridge regression, and holds the memory for it. All sums are in the order of bits.
class LineFit {
 public:
  // Fits a line to the numbers of the samples of a panel. The line is empty if the numbers are equal, or if it predicts
  // left-out numbers no better than their mean does.
  [[nodiscard]] Line fit(const PanelRows& panel, std::span<const double> numbers);

 private:
  static constexpr std::size_t kMost = Line::kMostTerms;
  static constexpr double kStrength = 0.1;        // strength of the ridge, for features of variance 1
  static constexpr double kMostDeviations = 2.0;  // a feature is moved to within this distance of its mean

  using Row = std::array<double, kMost>;
  using Column = std::array<double, kMostDeciding>;

  // A feature of the samples that have it.
  struct Feature {
    std::int32_t cell;
    double score;  // its squared covariance with the numbers, divided by its variance
    double n;      // weight of the samples
    double mean, deviation;
    float low, high;
  };

  void describe_features(const PanelRows& panel);
  void choose_features();
  void fill_columns(const PanelRows& panel);
  void sum_products();
  void factorise();
  // The sum of squared errors of left-out samples: of the line, and of the mean.
  [[nodiscard]] double loss_of_line() const;
  [[nodiscard]] double loss_of_mean() const;

  std::size_t n_ = 0, n_terms_ = 0;
  double total_ = 0.0;                   // weight of all samples
  Column weights_{}, deviations_{};      // deviations of the numbers, in units of their range
  std::vector<Feature> features_;        // those that vary; the chosen ones come first
  Row centres_{}, target_{}, slopes_{};  // by chosen feature
  std::array<Column, kMost> columns_{};  // the scaled values of each chosen feature
  std::array<Row, kMost> matrix_{};      // the weighted sums of products, then their Cholesky factor
};

}  // namespace onlineforest::orderfree
