#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>

#include "label_walk.hpp"
#include "parallel.hpp"
#include "walk.hpp"

namespace onlineforest {

namespace {

// Sets of points are handed to a tree in pieces of at most this size, so that learning can be stopped between
// them. It is part of what a seed means: never let it depend on threads or memory.
std::size_t chunk_size(std::size_t n_features) {
  constexpr std::size_t most_points = 4096, most_numbers = std::size_t{1} << 18;
  return std::clamp<std::size_t>(most_numbers / n_features, 1, most_points);
}

// Rows are predicted in pieces of this size, tree by tree, so that a tree stays in cache for a piece.
constexpr std::size_t kPiece = 256;

ForestOptions checked(ForestOptions options) {
  const auto require = [](bool ok, const char* message) {
    if (!ok) throw std::invalid_argument(message);
  };
  require(options.n_trees > 0, "a forest needs at least one tree");
  require(options.n_features > 0, "a forest needs at least one feature");
  require(options.lifetime >= 0.0, "the lifetime must not be negative");
  require(options.discount >= 0.0 && std::isfinite(options.discount), "the discount must be finite, not negative");
  require(options.min_samples_split >= 2, "min_samples_split must be at least 2");
  if (options.weight_rule == WeightRule::kFixed) {
    require(options.weights.size() == options.n_features, "there must be one weight per feature");
    for (const double w : options.weights) {
      require(w >= 0.0 && w <= kLargestWeight, "weights must lie between 0 and 1e200");
    }
  }
  return options;
}

// Calls per_piece(begin, end, state, stop) for pieces of the rows, on several threads; each worker has its own state.
template <class MakeState, class PerPiece>
void for_each_piece(std::size_t n_rows, std::size_t n_threads, const LabelForest::StopRequested& requested,
                    MakeState make_state, PerPiece per_piece) {
  StopSignal signal(requested);
  parallel_for((n_rows + kPiece - 1) / kPiece, n_threads, signal, [&] {
    return [&, state = make_state()](std::size_t piece, StopProbe& stop) mutable {
      per_piece(piece * kPiece, std::min((piece + 1) * kPiece, n_rows), state, stop);
    };
  });
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
                        std::size_t n_threads, const StopRequested& requested) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  if (n_rows(rows) != labels.size()) throw std::invalid_argument("rows and labels differ in number");
  if (n_classes < n_classes_) throw std::invalid_argument("the number of classes cannot shrink");
  for (const Label label : labels) {
    if (label < 0 || label >= n_classes) throw std::invalid_argument("a label lies outside [0, n_classes)");
  }
  StopSignal signal(requested);
  catch_up(n_threads, signal);  // what a stopped call left behind
  points_.append(rows, labels);
  n_classes_ = n_classes;
  catch_up(n_threads, signal);
}

void LabelForest::refresh_measure() {
  const std::size_t n = points_.size();
  if (!schedule_.is_due(n)) return;
  std::vector<float> lower(options_.n_features), upper(options_.n_features);
  start_box(lower.data(), upper.data(), points_.row(0), options_.n_features);
  for (std::size_t i = 1; i < n; ++i) {
    include(lower.data(), upper.data(), points_.box(static_cast<Slot>(i)), options_.n_features);
  }
  schedule_.refresh(measure_, {lower.data(), upper.data()}, n);
}

void LabelForest::catch_up(std::size_t n_threads, StopSignal& signal) {
  refresh_measure();
  const auto is_behind = [this](const LabelTree& tree) {
    return tree.n_points() < points_.size() || tree.measure().weights != measure_.weights ||
           tree.measure().discount_rate != measure_.discount_rate;
  };
  if (points_.size() == 0 || std::ranges::none_of(trees_, is_behind)) return;
  parallel_for(trees_.size(), n_threads, signal, [this] {
    return [this, work = Workspace()](std::size_t i, StopProbe& stop) mutable { catch_up_tree(trees_[i], work, stop); };
  });
}

void LabelForest::catch_up_tree(LabelTree& tree, Workspace& work, StopProbe& stop) {
  tree.target().reserve_classes(n_classes_);
  if (tree.empty() || tree.measure().weights != measure_.weights) {
    tree.grow(points_, points_.size(), measure_, work, stop);
    return;
  }
  tree.set_discount_rate(measure_.discount_rate);
  while (tree.n_points() < points_.size()) {
    stop.check();
    tree.extend(points_, std::min(tree.n_points() + chunk_size(options_.n_features), points_.size()), work, stop);
  }
}

std::vector<double> LabelForest::predict(std::span<const float> rows, std::size_t n_threads,
                                         const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  const std::size_t n = n_rows(rows);
  const std::size_t k = static_cast<std::size_t>(n_classes_);
  std::vector<double> result(n * k, 0.0);
  const auto n_grown = std::ranges::count_if(trees_, [](const LabelTree& tree) { return !tree.empty(); });
  if (n_grown == 0) {
    std::ranges::fill(result, 1.0 / static_cast<double>(k));
    return result;
  }
  for_each_piece(
      n, n_threads, requested, [] { return std::vector<Step>(); },
      [&](std::size_t begin, std::size_t end, std::vector<Step>& steps, StopProbe& stop) {
        // A row's sum runs over the trees in their order, whatever the threads.
        for (const LabelTree& tree : trees_) {
          if (tree.empty()) continue;
          for (std::size_t i = begin; i < end; ++i) {
            add_label_prediction(tree, rows.data() + i * options_.n_features, std::span(result).subspan(i * k, k),
                                 steps);
            stop.tick(steps.size() * options_.n_features + k);
          }
        }
        for (std::size_t i = begin * k; i < end * k; ++i) result[i] /= static_cast<double>(n_grown);
      });
  return result;
}

std::vector<NodeIndex> LabelForest::apply(std::span<const float> rows, std::size_t n_threads,
                                          const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  const std::size_t n = n_rows(rows), m = trees_.size();
  std::vector<NodeIndex> result(n * m, kNoNode);
  for_each_piece(
      n, n_threads, requested, [] { return 0; },
      [&](std::size_t begin, std::size_t end, int, StopProbe& stop) {
        for (std::size_t t = 0; t < m; ++t) {
          if (trees_[t].empty()) continue;
          for (std::size_t i = begin; i < end; ++i) {
            result[i * m + t] = find_leaf(trees_[t], rows.data() + i * options_.n_features);
          }
          stop.tick((end - begin) * 32);
        }
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
  return measure_;
}

std::size_t LabelForest::n_rows(std::span<const float> rows) const {
  if (rows.size() % options_.n_features != 0) throw std::invalid_argument("rows are not of the forest's width");
  return rows.size() / options_.n_features;
}

}  // namespace onlineforest
