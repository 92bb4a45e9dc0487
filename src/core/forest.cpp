#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "learned.hpp"
#include "parallel.hpp"
#include "relevance.hpp"
#include "tree_sums.hpp"
#include "walk.hpp"

namespace onlineforest {

namespace {

// Sets of points are handed to a tree in pieces of at most this size, so that learning can be stopped between
// them. It is part of what a seed means: never let it depend on threads or memory.
std::size_t largest_set(std::size_t n_features) {
  constexpr std::size_t most_points = 4096, most_numbers = std::size_t{1} << 18;
  return std::clamp<std::size_t>(most_numbers / n_features, 1, most_points);
}

// A set of fewer points than one in so many of the tree's is learned point by point.
constexpr std::size_t kSmallSet = 8;
constexpr std::size_t kBetweenStops = 256;  // points learned one by one before the next look at the stop signal
constexpr std::size_t kUsualDepth = 32;     // for a rough guess of the numbers that are touched

ForestOptions checked(ForestOptions options) {
  const auto require = [](bool ok, const char* message) {
    if (!ok) throw std::invalid_argument(message);
  };
  require(options.n_trees > 0, "a forest needs at least one tree");
  require(options.n_features > 0, "a forest needs at least one feature");
  require(options.lifetime >= 0.0, "the lifetime must not be negative");
  require(options.discount >= 0.0 && std::isfinite(options.discount), "the discount must be finite, not negative");
  require(options.min_samples_split >= 2, "min_samples_split must be at least 2");
  require(options.leaf_discount >= 0.0 && options.leaf_discount <= 1.0, "the leaf discount must lie in [0, 1]");
  require(is_known(options.weight_rule), "the rule of weights is unknown");
  if (options.weight_rule == WeightRule::kFixed) {
    require(options.weights.size() == options.n_features, "there must be one weight per feature");
    for (const double w : options.weights) {
      require(w >= 0.0 && w <= kLargestWeight, "weights must lie between 0 and 1e200");
    }
  }
  return options;
}

}  // namespace

LabelForest::LabelForest(ForestOptions options)
    : options_(checked(std::move(options))),
      points_(options_.n_features),
      schedule_(options_.weight_rule, options_.weights, options_.discount, options_.n_features) {
  trees_.reserve(options_.n_trees);
  for (std::size_t i = 0; i < options_.n_trees; ++i) {
    trees_.emplace_back(options_.n_features, options_.lifetime, LabelTarget(options_.min_samples_split),
                        Rng(options_.seed, i));
  }
}

void LabelForest::learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes,
                        std::size_t n_threads, const StopRequested& requested, bool one_by_one) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  if (n_rows(rows) != labels.size()) throw std::invalid_argument("rows and labels differ in number");
  if (n_classes < n_classes_) throw std::invalid_argument("the number of classes cannot shrink");
  for (const Label label : labels) {
    if (label < 0 || label >= n_classes) throw std::invalid_argument("a label lies outside [0, n_classes)");
  }
  StopSignal signal(requested);
  catch_up(n_threads, signal);  // what a stopped call left behind
  one_by_one_ = one_by_one;
  std::size_t done = 0;
  do {
    // The point that makes the measure due comes alone, so that it is refreshed where calls of one point would.
    std::size_t n = labels.size() - done;
    if (one_by_one) n = std::min(n, std::max<std::size_t>(schedule_.n_until_due(points_.size()) - 1, 1));
    points_.append(rows.subspan(done * options_.n_features, n * options_.n_features), labels.subspan(done, n));
    n_classes_ = n_classes;
    catch_up(n_threads, signal);
    done += n;
  } while (done < labels.size());
}

void LabelForest::refresh_measure(std::size_t n_threads, StopSignal& signal) {
  const std::size_t n = points_.size();
  if (!schedule_.is_due(n)) return;
  std::vector<float> lower(options_.n_features), upper(options_.n_features);
  start_box(lower.data(), upper.data(), points_.box(0), options_.n_features);
  for (std::size_t i = 1; i < n; ++i) {
    include(lower.data(), upper.data(), points_.box(static_cast<Slot>(i)), options_.n_features);
  }
  Learned learned{{}, options_.leaf_discount};
  if (options_.weight_rule == WeightRule::kLearned || options_.learns_leaf_discount) {
    learned = learn_measure(points_, n_classes_, options_, n_threads, signal);
  }
  schedule_.refresh(measure_, {lower.data(), upper.data()}, learned, n);
}

void LabelForest::refresh(std::size_t n_threads, const StopRequested& requested) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  StopSignal signal(requested);
  catch_up(n_threads, signal);  // what a stopped call left behind
  schedule_.resume(0);
  catch_up(n_threads, signal);
}

std::vector<double> LabelForest::relevance(std::size_t n_threads, const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  if (points_.size() == 0) throw std::invalid_argument("no points have been learned");
  StopSignal signal(requested);
  StopProbe stop(signal, true);
  const Columns columns(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  return measure_relevance(points_, columns, n_classes_, ~options_.seed, n_threads, signal);
}

void LabelForest::set_leaf_discount(double leaf_discount) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  if (!measure_) return;
  const MeasurePointer old = measure_;
  measure_ = std::make_shared<const Measure>(old->weights, old->discount_rate, leaf_discount);
  for (LabelTree& tree : trees_) {
    if (tree.measure_pointer() == old) tree.set_measure(measure_);
  }
}

bool LabelForest::must_grow(const LabelTree& tree) const {
  return tree.empty() || (tree.measure_pointer() != measure_ && tree.measure().weights != measure_->weights);
}

void LabelForest::catch_up(std::size_t n_threads, StopSignal& signal) {
  refresh_measure(n_threads, signal);
  const auto is_behind = [this](const LabelTree& tree) {
    return tree.n_points() < points_.size() || tree.measure_pointer() != measure_;
  };
  if (points_.size() == 0 || std::ranges::none_of(trees_, is_behind)) return;
  if (std::ranges::all_of(trees_, [this](const LabelTree& tree) {
        return !must_grow(tree) && tree.n_points() + 1 == points_.size();
      })) {
    learn_last_point(n_threads, signal);
    return;
  }
  std::optional<Columns> columns;
  if (std::ranges::any_of(trees_, [this](const LabelTree& tree) { return must_grow(tree); })) {
    StopProbe stop(signal, true);
    columns.emplace(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  }
  parallel_for(trees_.size(), n_threads, signal, [&] {
    return [&, work = workspaces_.lend()](std::size_t i, StopProbe& stop) mutable {
      catch_up_tree(trees_[i], columns ? &*columns : nullptr, *work, stop);
    };
  });
}

void LabelForest::learn_last_point(std::size_t n_threads, StopSignal& signal) {
  const float* row = points_.row(static_cast<Slot>(points_.size() - 1));
  const std::size_t n_groups = (trees_.size() + kSideBySide - 1) / kSideBySide;
  parallel_for(n_groups, n_threads, signal, [&] {
    return [&, loan = workspaces_.lend()](std::size_t group, StopProbe& stop) {
      Workspace& work = *loan;
      const std::size_t begin = group * kSideBySide, n = std::min(kSideBySide, trees_.size() - begin);
      const std::span<LabelTree> trees = std::span(trees_).subspan(begin, n);
      find_paths(trees, row, work.paths);
      for (std::size_t i = 0; i < n; ++i) {
        trees[i].target().reserve_classes(n_classes_);
        trees[i].set_measure(measure_);
        trees[i].extend_along(work.paths[i], points_, work, stop);
        stop.tick(options_.n_features * kUsualDepth);
      }
    };
  });
}

void LabelForest::catch_up_tree(LabelTree& tree, const Columns* columns, Workspace& work, StopProbe& stop) {
  tree.target().reserve_classes(n_classes_);
  if (must_grow(tree)) {
    tree.grow(points_, *columns, measure_, work, stop);
    return;
  }
  tree.set_measure(measure_);
  while (tree.n_points() < points_.size()) {
    const std::size_t n_before = tree.n_points(), n_new = points_.size() - n_before;
    if (one_by_one_ || n_new < n_before / kSmallSet) {
      tree.extend_one_by_one(points_, n_before + std::min(n_new, kBetweenStops), work, stop);
    } else {
      tree.extend(points_, n_before + std::min(n_new, largest_set(options_.n_features)), work, stop);
    }
    stop.tick((tree.n_points() - n_before) * options_.n_features * kUsualDepth);
  }
}

std::vector<double> LabelForest::predict(std::span<const float> rows, std::size_t n_threads,
                                         const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  const std::size_t n = n_rows(rows);
  const std::size_t k = static_cast<std::size_t>(n_classes_);
  const auto n_grown = std::ranges::count_if(trees_, [](const LabelTree& tree) { return !tree.empty(); });
  if (n_grown == 0) return std::vector<double>(n * k, 1.0 / static_cast<double>(k));
  StopSignal signal(requested);
  std::vector<double> result = sum_over_trees(
      {n, trees_.size(), LabelWalk::width(n_classes_)}, n_threads, signal, [this] { return walks_.lend(); },
      [&](std::size_t begin, std::size_t end, Piece piece, Pool<LabelWalk>::Loan& walk, double* sums, StopProbe& stop) {
        (*walk).add_predictions(std::span(trees_).subspan(begin, end - begin), points_,
                                rows.data() + piece.begin * options_.n_features, piece.size(), n_classes_, sums,
                                [&stop](std::size_t work) { stop.tick(work); });
      });
  LabelWalk::finish(result, n_classes_, static_cast<double>(n_grown));
  return result;
}

std::vector<NodeIndex> LabelForest::apply(std::span<const float> rows, std::size_t n_threads,
                                          const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  const std::size_t n = n_rows(rows), m = trees_.size();
  std::vector<NodeIndex> result(n * m, kNoNode);
  StopSignal signal(requested);
  parallel_for(m, n_threads, signal, [&] {
    return [&](std::size_t t, StopProbe& stop) {
      if (trees_[t].empty()) return;
      for (std::size_t i = 0; i < n; ++i) {
        result[i * m + t] = find_leaf(trees_[t], rows.data() + i * options_.n_features);
        stop.tick(kUsualDepth);
      }
    };
  });
  return result;
}

std::size_t LabelForest::n_points() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return points_.size();
}

std::int32_t LabelForest::n_classes() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return n_classes_;
}

Measure LabelForest::measure() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return measure_ ? *measure_ : Measure();
}

std::size_t LabelForest::nbytes() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  std::size_t n = points_.nbytes();
  for (const LabelTree& tree : trees_) n += sizeof(tree) + tree.nbytes();
  return n;
}

std::size_t LabelForest::n_rows(std::span<const float> rows) const {
  if (rows.size() % options_.n_features != 0) throw std::invalid_argument("rows are not of the forest's width");
  return rows.size() / options_.n_features;
}

}  // namespace onlineforest
