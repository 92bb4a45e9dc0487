// How a forest predicts: sums over trees, completions of queries, leaves. A stage of Forest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "forest/forest.hpp"
#include "tree/walk.hpp"

namespace onlineforest {

// The mass separated above the leaf, averaged over the trees.
template <class Target, class Options>
class Forest<Target, Options>::NoveltySummation : public Summation<Target> {
 public:
  using typename Summation<Target>::Trees;
  using typename Summation<Target>::Worker;

  explicit NoveltySummation(const Points& points) : points_(points) {}

  std::size_t sum_width() const override { return 1; }
  std::size_t width() const override { return 1; }
  std::optional<double> without_trees() const override { return 1.0; }

  std::unique_ptr<Worker> make_worker() const override { return std::make_unique<Walker>(points_); }

  std::vector<double> finish(const Completed&, std::vector<double> sums, std::size_t n_grown) const override {
    for (double& each : sums) each = n_grown == 0 ? 1.0 : each / static_cast<double>(n_grown);
    return sums;
  }

 private:
  class Walker : public Worker {
   public:
    explicit Walker(const Points& points) : points_(points) {}

    void add(Trees trees, const Queries& queries, double* sums, StopProbe& stop) override {
      walk_.walk_trees(trees, points_, queries, [&](const TargetTree&) {
        return [&](const RowPath& path) {
          sums[path.row] += separated_above_leaf(path);
          stop.tick(path.steps.size() * points_.n_features());
        };
      });
    }

   private:
    const Points& points_;
    SetWalk walk_;
  };

  const Points& points_;
};

template <class Target, class Options>
std::unique_ptr<const Summation<Target>> Forest<Target, Options>::summation(Quantity quantity) const {
  switch (quantity) {
    case Quantity::kPrediction:
      return prediction();
    case Quantity::kNovelty:
      return std::make_unique<const NoveltySummation>(points_);
  }
  throw std::invalid_argument("the quantity must be 0 (prediction) or 1 (novelty), got " +
                              std::to_string(static_cast<int>(quantity)));
}

// Calls use(first row, completed) for one piece of the rows after the other; for all rows at once if nothing is
// missing. `width` is the number of results per completion.
template <class Target, class Options>
template <class Use>
void Forest<Target, Options>::for_completed(std::span<const float> rows, std::size_t width, Use use) const {
  const std::size_t n = n_rows(rows);
  // Rows with missing values become several completions, so they take several times the memory.
  constexpr std::size_t most_numbers = std::size_t{1} << 20;
  const std::size_t most_rows = most_numbers / std::max<std::size_t>(width, 1);
  const std::size_t piece_size = has_missing(rows) ? std::clamp<std::size_t>(most_rows, 1, Completed::kMostRows) : n;
  std::size_t begin = 0;
  do {
    const std::size_t n_here = std::min(piece_size, n - begin);
    use(begin, completed(rows.subspan(begin * options_.n_features, n_here * options_.n_features)));
    begin += n_here;
  } while (begin < n);
}

// Calls predict(completed), which returns `width` numbers per completion, and merges the completions of each row.
template <class Target, class Options>
template <class Predict>
std::vector<double> Forest<Target, Options>::merged_over_completions(const TargetSummation& summation,
                                                                     std::span<const float> rows,
                                                                     Predict predict) const {
  const std::size_t width = summation.width();
  std::vector<double> result;
  for_completed(rows, width, [&](std::size_t begin, const Completed& queries) {
    std::vector<double> each = predict(queries);
    if (queries.is_plain() && queries.n_rows() == n_rows(rows)) {
      result = std::move(each);
      return;
    }
    result.resize(n_rows(rows) * width);
    for (std::size_t i = 0; i < queries.n_rows(); ++i) {
      summation.merge(each.data() + queries.begin(i) * width, queries.end(i) - queries.begin(i),
                      result.data() + (begin + i) * width);
    }
  });
  return result;
}

// The function by which sums.hpp adds up trees; `first_tree` is the number of the first tree that is held.
template <class Target, class Options>
auto Forest<Target, Options>::adding(const Completed& queries, std::size_t first_tree) const {
  return [this, &queries, first_tree](std::size_t begin, std::size_t end, Piece piece,
                                      std::unique_ptr<typename TargetSummation::Worker>& worker, double* sums,
                                      StopProbe& stop) {
    worker->add(std::span(trees_).subspan(begin - first_tree, end - begin), queries.queries(piece.begin, piece.end),
                sums, stop);
  };
}

template <class Target, class Options>
std::vector<double> Forest<Target, Options>::predict(Quantity quantity, std::span<const float> rows,
                                                     const Call& call) const {
  const auto pass = gate_.reading();
  const auto sum = summation(quantity);
  if (const auto constant = sum->without_trees(); constant && n_grown() == 0) {
    return std::vector<double>(n_rows(rows) * sum->width(), *constant);
  }
  return merged_over_completions(*sum, rows, [&](const Completed& queries) {
    std::vector<double> sums = sum_over_trees(
        {queries.size(), trees_.size(), sum->sum_width()}, call, [&] { return sum->make_worker(); },
        adding(queries, 0));
    return sum->finish(queries, std::move(sums), n_grown());
  });
}

template <class Target, class Options>
Terms Forest<Target, Options>::terms(Quantity quantity, std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  const auto sum = summation(quantity);
  const TreeRange held = options_.trees_held();
  const std::vector<Term> terms = terms_of(held, options_.n_trees);
  std::vector<std::vector<double>> pieces;
  std::size_t n_numbers = 0;
  for_completed(rows, sum->width(), [&](std::size_t, const Completed& queries) {
    pieces.push_back(sum_by_term(
        terms, {queries.size(), trees_.size(), sum->sum_width()}, call, [&] { return sum->make_worker(); },
        adding(queries, held.begin)));
    n_numbers += pieces.back().size();
  });
  if (pieces.size() == 1) return {std::move(pieces.front()), n_grown()};
  Terms result{{}, n_grown()};
  result.numbers.reserve(n_numbers);
  for (std::size_t term = 0; term < terms.size(); ++term) {
    for (const std::vector<double>& piece : pieces) {
      const auto n = static_cast<std::ptrdiff_t>(piece.size() / terms.size());
      const auto first = piece.begin() + static_cast<std::ptrdiff_t>(term) * n;
      result.numbers.insert(result.numbers.end(), first, first + n);
    }
  }
  return result;
}

template <class Target, class Options>
std::vector<double> Forest<Target, Options>::finish(Quantity quantity, std::span<const float> rows,
                                                    const TreeSums& sums, const Call& call) const {
  const auto pass = gate_.reading();
  const auto sum = summation(quantity);
  StopProbe stop = call.probe();
  std::size_t done = 0;
  const auto require_numbers = [&](bool ok) {
    if (!ok) {
      throw std::invalid_argument("the sums hold " + std::to_string(sums.numbers.size()) + " numbers, which is not " +
                                  std::to_string(sum->sum_width()) + " for each completion of the " +
                                  std::to_string(n_rows(rows)) + " rows");
    }
  };
  std::vector<double> result = merged_over_completions(*sum, rows, [&](const Completed& queries) {
    const std::size_t n = queries.size() * sum->sum_width();
    require_numbers(n <= sums.numbers.size() - done);
    const auto some = sums.numbers.subspan(done, n);
    done += n;
    stop.check();
    return sum->finish(queries, std::vector<double>(some.begin(), some.end()), sums.n_grown);
  });
  require_numbers(done == sums.numbers.size());
  if (const auto constant = sum->without_trees(); constant && sums.n_grown == 0) std::ranges::fill(result, *constant);
  return result;
}

template <class Target, class Options>
std::vector<NodeIndex> Forest<Target, Options>::apply(std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n = n_rows(rows), m = trees_.size(), width = options_.n_features;
  std::vector<NodeIndex> result(n * m, kNoNode);
  for (std::size_t first = 0; first < n; first += Completed::kMostRows) {
    const std::size_t n_here = std::min(Completed::kMostRows, n - first);
    const Completed queries = completed(rows.subspan(first * width, n_here * width));
    call.parallel_for(m, [&] {
      return [&](std::size_t t, StopProbe& stop) {
        if (trees_[t].empty()) return;
        for (std::size_t i = 0; i < n_here; ++i) {
          result[(first + i) * m + t] = find_leaf(trees_[t].nodes(), queries.row(queries.begin(i)));
          stop.tick(kUsualDepth);
        }
      };
    });
  }
  return result;
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::n_grown() const {
  return static_cast<std::size_t>(std::ranges::count_if(trees_, [](const TargetTree& tree) { return !tree.empty(); }));
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::n_rows(std::span<const float> rows) const {
  if (rows.size() % options_.n_features != 0) {
    throw std::invalid_argument("rows hold " + std::to_string(rows.size()) + " values, which is no multiple of the " +
                                std::to_string(options_.n_features) + " features of the forest");
  }
  return rows.size() / options_.n_features;
}

template <class Target, class Options>
void Forest<Target, Options>::require_value_per_row(std::span<const float> rows, std::size_t n_values) const {
  if (n_rows(rows) != n_values) {
    throw std::invalid_argument("there are " + std::to_string(n_values) + " values for " +
                                std::to_string(n_rows(rows)) + " rows");
  }
}

template <class Target, class Options>
Completed Forest<Target, Options>::completed(std::span<const float> rows) const {
  constexpr std::uint64_t seed_of_queries = 0x7175'6572'6965'7300u;  // apart from the random numbers of trees and fills
  return {rows, points_, Rng(options_.seed ^ seed_of_queries, points_.size())};
}

}  // namespace onlineforest
