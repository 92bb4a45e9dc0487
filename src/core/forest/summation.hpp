// A prediction that is a sum over trees: how trees are added up, and how the sums become the prediction.
// Knows nothing of threads or shards; sums.hpp fixes the order of the additions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/stop.hpp"
#include "points/queries.hpp"
#include "tree/tree.hpp"

namespace onlineforest {

// What a forest can predict as a sum over its trees.
enum class Quantity {
  kPrediction,  // probabilities of classes, or mean and standard deviation of a number
  kNovelty,
};

// The terms that one shard contributes for some rows; see sums.hpp.
struct Terms {
  std::vector<double> numbers;  // n_terms x n_completions x sum_width
  std::size_t n_grown;          // trees of the shard that are not empty
};

// The sum of the terms of all shards.
struct TreeSums {
  std::span<const double> numbers;
  std::size_t n_grown;
};

template <class Target>
class Summation {
 public:
  using Trees = std::span<const Tree<Target>>;

  // Scratch memory of one thread.
  class Worker {
   public:
    virtual ~Worker() = default;
    // Adds the trees to `sums`, queries.n x sum_width, tree by tree.
    virtual void add(Trees trees, const Queries& queries, double* sums, StopProbe& stop) = 0;
  };

  virtual ~Summation() = default;

  virtual std::size_t sum_width() const = 0;  // numbers per completion that are summed over the trees
  virtual std::size_t width() const = 0;      // numbers per row of the prediction
  virtual std::unique_ptr<Worker> make_worker() const = 0;

  // Turns sums over `n_grown` trees into `width` numbers per completion.
  virtual std::vector<double> finish(const Completed& queries, std::vector<double> sums, std::size_t n_grown) const = 0;

  // Merges the predictions of the `n` completions of a row into one. By default their mean; `result` comes as zeros.
  virtual void merge(const double* first, std::size_t n, double* result) const {
    for (std::size_t k = 0; k < width(); ++k) {
      for (std::size_t i = 0; i < n; ++i) result[k] += first[i * width() + k] / static_cast<double>(n);
    }
  }

  // The value of every number while no tree is grown, if it does not depend on the row. A mean over completions would
  // differ from it in the last bit.
  virtual std::optional<double> without_trees() const { return std::nullopt; }
};

}  // namespace onlineforest
