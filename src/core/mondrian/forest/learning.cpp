// How a forest learns: storing points, bringing trees up to date.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "mondrian/forest/forest.hpp"
#include "mondrian/forest/point_changes.hpp"
#include "mondrian/tree/stages.hpp"

namespace onlineforest::mondrian {

namespace {

// Trees learn sets of points in pieces of at most this size, so that learning can stop between them. The size is part
// of what a seed means: it must not depend on threads or memory.
std::size_t largest_set(std::size_t n_features) {
  constexpr std::size_t most_points = 4096, most_numbers = std::size_t{1} << 18;
  return std::clamp<std::size_t>(most_numbers / n_features, 1, most_points);
}

// A set smaller than this fraction (1 / kSmallSet) of the tree's points is learned point by point.
constexpr std::size_t kSmallSet = 8;
constexpr std::size_t kBetweenStops = 256;  // points learned one by one between two checks of the stop signal

ForestOptions checked(ForestOptions options) {
  check_options(options);
  return options;
}

}  // namespace

Forest::Forest(ForestOptions options)
    : options_(checked(std::move(options))),
      points_(options_.n_features),
      tenure_(options_.keep, options_.seed),
      schedule_(options_.weight_rule, options_.weights, options_.n_features) {
  trees_.reserve(options_.n_trees);
  for (std::size_t i = 0; i < options_.n_trees; ++i) {
    trees_.emplace_back(options_.n_features, options_.lifetime, LabelTarget(options_.min_samples_split),
                        Rng(options_.seed, i));
  }
}

void Forest::require_label_per_row(std::span<const float> rows, std::size_t n_labels) const {
  require(n_rows(rows) == n_labels, [&] {
    return "there are " + std::to_string(n_labels) + " labels for " + std::to_string(n_rows(rows)) + " rows";
  });
}

void Forest::learn(std::span<const float> rows, std::span<const Label> labels, std::int32_t n_classes, const Call& call,
                   bool one_by_one) {
  const auto pass = gate_.writing();
  require_label_per_row(rows, labels.size());
  const auto bad = std::ranges::find_if_not(rows, [](float x) { return std::isfinite(x); });
  require(bad == rows.end(), [&] {
    const auto at = static_cast<std::size_t>(bad - rows.begin());
    return "row " + std::to_string(at / width()) + ", feature " + std::to_string(at % width()) + ": the value is " +
           std::to_string(*bad) + ", which is not finite";
  });
  require(n_classes >= n_classes_, [&] {
    return "n_classes is " + std::to_string(n_classes) + ", but the forest knows " + std::to_string(n_classes_) +
           " classes already";
  });
  for (std::size_t i = 0; i < labels.size(); ++i) {
    require(labels[i] >= 0 && labels[i] < n_classes, [&] {
      return "row " + std::to_string(i) + ": label " + std::to_string(labels[i]) +
             " is outside [0, n_classes = " + std::to_string(n_classes) + ")";
    });
  }
  bring_up_to_date(call);  // finishes what a stopped call left
  one_by_one_ = one_by_one;
  std::size_t done = 0;
  do {
    std::size_t n = labels.size() - done;
    if (one_by_one) {
      // A point that makes the measure due is stored alone, so that the refresh happens where single calls would have
      // it. So is a point that replaces another.
      n = std::min(
          {n, std::max<std::size_t>(schedule_.n_until_due() - 1, 1), std::max<std::size_t>(tenure_.room(), 1)});
    }
    store({rows.subspan(done * options_.n_features, n * options_.n_features), labels.subspan(done, n)}, n_classes,
          call);
    bring_up_to_date(call);
    done += n;
  } while (done < labels.size());
}

// Stores the samples that are to be kept, in place of arrivals that leave.
void Forest::store(const Samples& samples, std::int32_t n_classes, const Call& call) {
  Tenure::Admission admission = tenure_.admit(samples.size());
  std::vector<float> rows;
  std::vector<Label> labels;
  Samples taken = samples;
  if (admission.taken.size() < samples.size()) {
    for (const std::size_t i : admission.taken) {
      const std::span<const float> row = samples.row(i, options_.n_features);
      rows.insert(rows.end(), row.begin(), row.end());
      labels.push_back(samples.labels[i]);
    }
    taken = {rows, labels};
  }
  if (taken.size() > PointStore::kMostPoints - (arrivals_.size() - admission.leaving.size())) {
    throw std::length_error("a forest holds " + std::to_string(arrivals_.size()) + " samples and cannot store " +
                            std::to_string(taken.size()) + " more: the limit is " +
                            std::to_string(PointStore::kMostPoints));
  }
  const PointChanges changes(std::move(admission.leaving), taken, arrivals_, points_, call.probe());
  const Samples fresh = changes.fresh();
  points_.reserve(fresh.size() - std::min(fresh.size(), changes.leaving().size()));
  if (changes.needs_counts()) points_.reserve_counts(fresh.size());
  arrivals_.reserve(taken.size(), changes.are_alone());
  tenure_.reserve(taken.size());
  // From here on nothing fails until the points are stored. Points that leave are gone even if a stop interrupts that.
  std::exception_ptr failure;
  try {
    change_points(changes, call);
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    points_.append(fresh.rows, fresh.labels, changes.counts());
  } catch (...) {  // no memory: what leaves is gone, and nothing has come
    arrivals_.drop_last(taken.size());
    throw;
  }
  tenure_.take_in(samples.size(), admission);
  schedule_.add_points(fresh.size());
  if (!changes.leaving().empty()) schedule_.forget_down_to(points_.size());
  n_classes_ = n_classes;
  if (failure) std::rethrow_exception(failure);
}

bool Forest::must_grow(const LabelTree& tree) const {
  return tree.empty() || (tree.measure_pointer() != measure_ && tree.measure().weights != measure_->weights);
}

// Refreshes the measure if it is due, then lets all trees learn what they lack.
void Forest::bring_up_to_date(const Call& call) {
  refresh_measure(call);
  const auto is_behind = [this](const LabelTree& tree) {
    return tree.n_points() < points_.size() || tree.measure_pointer() != measure_;
  };
  if (points_.size() == 0 || std::ranges::none_of(trees_, is_behind)) return;
  if (std::ranges::all_of(trees_, [this](const LabelTree& tree) {
        return !must_grow(tree) && tree.n_points() + 1 == points_.size();
      })) {
    learn_last_point(call);
    return;
  }
  std::optional<Columns> columns;
  if (std::ranges::any_of(trees_, [this](const LabelTree& tree) { return must_grow(tree); })) {
    StopProbe stop = call.probe();
    columns.emplace(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  }
  call.parallel_for(trees_.size(), [&] {
    return [&, work = workspaces_.lend()](std::size_t i, StopProbe& stop) mutable {
      bring_tree_up_to_date(trees_[i], columns ? &*columns : nullptr, *work, stop);
    };
  });
}

// All trees lack one point. Its paths through several trees are found side by side, because a single search waits for
// memory at every step.
void Forest::learn_last_point(const Call& call) {
  const float* row = points_.row(static_cast<Slot>(points_.size() - 1));
  const std::size_t n_groups = (trees_.size() + kSideBySide - 1) / kSideBySide;
  call.parallel_for(n_groups, [&] {
    return [&, loan = workspaces_.lend()](std::size_t group, StopProbe& stop) {
      Workspace& work = *loan;
      const std::size_t begin = group * kSideBySide, n = std::min(kSideBySide, trees_.size() - begin);
      const std::span<LabelTree> trees = std::span(trees_).subspan(begin, n);
      find_paths(trees, row, work.paths, [&](std::size_t i) { prefetch_end(trees[i].nodes(), work.paths[i]); });
      for (std::size_t i = 0; i < n; ++i) {
        trees[i].target().reserve_classes(n_classes_);
        trees[i].set_measure(measure_);
        trees[i].extend_along(work.paths[i], points_, work, stop);
        stop.tick(options_.n_features * kUsualDepth);
      }
    };
  });
}

void Forest::bring_tree_up_to_date(LabelTree& tree, const Columns* columns, Workspace& work, StopProbe& stop) {
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

std::int32_t Forest::n_classes() const {
  const auto pass = gate_.reading();
  return n_classes_;
}

std::size_t Forest::n_samples() const {
  const auto pass = gate_.reading();
  return arrivals_.size();
}

std::size_t Forest::n_seen() const {
  const auto pass = gate_.reading();
  return tenure_.n_seen();
}

std::vector<std::uint8_t> Forest::are_stored(std::span<const Serial> serials) const {
  const auto pass = gate_.reading();
  std::vector<std::uint8_t> result;
  for (const Slot slot : tenure_.slots_of(serials)) result.push_back(slot != kNoSlot);
  return result;
}

std::vector<Serial> Forest::serials() const {
  const auto pass = gate_.reading();
  return {tenure_.serials().begin(), tenure_.serials().end()};
}

std::size_t Forest::nbytes() const {
  const auto pass = gate_.reading();
  std::size_t n = points_.nbytes() + arrivals_.nbytes() + tenure_.nbytes();
  for (const LabelTree& tree : trees_) n += sizeof(tree) + tree.nbytes();
  return n;
}

}  // namespace onlineforest::mondrian
