// Predictions of a forest over labels: the mean distribution of its trees.
// A file of its own: beside the growth of trees GCC inlines less of the walk, and predictions take 6 % longer.
#include <memory>
#include <optional>
#include <vector>

#include "labels/label_forest.hpp"

namespace onlineforest {

// The mean of the trees' distributions over the classes.
class LabelForest::DistributionSummation : public Summation<LabelTarget> {
 public:
  explicit DistributionSummation(const LabelForest& forest) : forest_(forest), n_classes_(forest.n_classes_) {}

  std::size_t sum_width() const override { return LabelWalk::width(n_classes_); }
  std::size_t width() const override { return static_cast<std::size_t>(n_classes_); }
  std::optional<double> without_trees() const override { return 1.0 / static_cast<double>(n_classes_); }

  std::unique_ptr<Worker> make_worker() const override { return std::make_unique<Walker>(forest_); }

  std::vector<double> finish(const Completed& queries, std::vector<double> sums, std::size_t n_grown) const override {
    if (n_grown == 0) return std::vector<double>(queries.size() * width(), *without_trees());
    LabelWalk::finish(sums, n_classes_, static_cast<double>(n_grown));
    return sums;
  }

 private:
  class Walker : public Worker {
   public:
    explicit Walker(const LabelForest& forest) : forest_(forest), walk_(forest.walks_.lend()) {}

    void add(Trees trees, const Queries& queries, double* sums, StopProbe& stop) override {
      (*walk_).add_predictions(trees, forest_.points_, queries, forest_.n_classes_, sums,
                               [&stop](std::size_t work) { stop.tick(work); });
    }

   private:
    const LabelForest& forest_;
    Pool<LabelWalk>::Loan walk_;
  };

  const LabelForest& forest_;
  std::int32_t n_classes_;
};

std::unique_ptr<const Summation<LabelTarget>> LabelForest::prediction() const {
  return std::make_unique<const DistributionSummation>(*this);
}

}  // namespace onlineforest
