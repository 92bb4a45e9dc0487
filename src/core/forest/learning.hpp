// How a forest learns: storing points, refreshing the measure, bringing trees up to date. A stage of Forest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "forest/exchange.hpp"
#include "forest/filling.hpp"
#include "forest/forest.hpp"
#include "forest/forgetting.hpp"

namespace onlineforest {

namespace detail {

// Trees learn sets of points in pieces of at most this size, so that learning can stop between them. The size is part
// of what a seed means: it must not depend on threads or memory.
inline std::size_t largest_set(std::size_t n_features) {
  constexpr std::size_t most_points = 4096, most_numbers = std::size_t{1} << 18;
  return std::clamp<std::size_t>(most_numbers / n_features, 1, most_points);
}

// A set smaller than this fraction (1 / kSmallSet) of the tree's points is learned point by point.
inline constexpr std::size_t kSmallSet = 8;
inline constexpr std::size_t kBetweenStops = 256;  // points learned one by one between two checks of the stop signal

template <class Options>
Options checked(Options options) {
  check_options(options);
  return options;
}

}  // namespace detail

template <class Target, class Options>
Forest<Target, Options>::Forest(Options options)
    : options_(detail::checked(std::move(options))),
      points_(options_.n_features),
      tenure_(options_.keep, options_.seed),
      schedule_(options_.weight_rule, options_.weights, options_.n_features) {
  const TreeRange held = options_.trees_held();
  trees_.reserve(held.size());
  for (std::size_t i = held.begin; i < held.end; ++i) {
    trees_.emplace_back(options_.n_features, options_.lifetime, Target(options_.min_samples_split),
                        Rng(options_.seed, i));
  }
}

template <class Target, class Options>
void Forest<Target, Options>::check_samples(const Samples<Value>& samples) const {
  require_value_per_row(samples.rows, samples.size());
  require(samples.weights.empty() || samples.weights.size() == samples.size(), [&] {
    return "there are " + std::to_string(samples.weights.size()) + " weights for " + std::to_string(samples.size()) +
           " rows";
  });
  check_weights(samples.weights);
}

template <class Target, class Options>
void Forest<Target, Options>::require_room(Weight coming, Weight leaving) const {
  require(coming <= kMostWeight - (total_weight_ - leaving), [&] {
    return "the samples of a forest cannot have a total weight of " +
           std::to_string((total_weight_ - leaving + coming) / kOne) + "; at most " +
           std::to_string(kMostWeight / kOne);
  });
}

template <class Target, class Options>
void Forest<Target, Options>::learn_samples(const Samples<Value>& samples, bool one_by_one, const Call& call,
                                            const std::function<void()>& on_stored) {
  bring_up_to_date(call);  // finishes what a stopped call left
  one_by_one_ = one_by_one;
  if (one_by_one) require_room(samples.total_weight(), 0);  // before the first of them is stored
  const bool are_weighted = std::ranges::any_of(samples.weights, [](Weight weight) { return weight != kOne; });
  std::size_t done = 0;
  do {
    std::size_t n = samples.size() - done;
    if (one_by_one) {
      // A point that makes the measure due is stored alone, so that the refresh happens where single calls would have
      // it. So is a point that replaces another.
      const std::size_t due = std::min(schedule_.n_until_due(), n_until_outdated(samples.values.subspan(done)));
      n = std::min({n, std::max<std::size_t>(due - 1, 1), std::max<std::size_t>(tenure_.room(), 1)});
    }
    store({samples.rows.subspan(done * options_.n_features, n * options_.n_features), samples.values.subspan(done, n),
           are_weighted ? samples.weights.subspan(done, n) : std::span<const Weight>()},
          call, on_stored);
    bring_up_to_date(call);
    done += n;
  } while (done < samples.size());
}

// Stores the samples that are to be kept, in place of arrivals that leave.
template <class Target, class Options>
void Forest<Target, Options>::store(const Samples<Value>& samples, const Call& call,
                                    const std::function<void()>& on_stored) {
  Tenure::Admission admission = tenure_.admit(samples.size());
  std::vector<float> rows;
  std::vector<Value> values;
  std::vector<Weight> weights;
  Samples<Value> taken = samples;
  if (admission.taken.size() < samples.size()) {
    for (const std::size_t i : admission.taken) {
      const std::span<const float> row = samples.row(i, options_.n_features);
      rows.insert(rows.end(), row.begin(), row.end());
      values.push_back(samples.values[i]);
      if (!samples.weights.empty()) weights.push_back(samples.weights[i]);
    }
    taken = {rows, values, weights};
  }
  Weight weight_leaving = 0;
  for (const Slot arrival : admission.leaving) weight_leaving += arrivals_.weight(arrival);
  const Weight weight_coming = taken.total_weight();
  require_room(weight_coming, weight_leaving);
  if (taken.size() > Points::kMostPoints - (arrivals_.size() - admission.leaving.size())) {
    throw std::length_error("a forest holds " + std::to_string(arrivals_.size()) + " samples and cannot store " +
                            std::to_string(taken.size()) + " more: the limit is " +
                            std::to_string(Points::kMostPoints));
  }
  const bool is_outdated = n_until_outdated(taken.values) <= taken.size();
  const Exchange<Value> exchange(std::move(admission.leaving), taken, arrivals_, points_, call.probe());
  const Samples<Value> fresh = exchange.fresh();
  std::vector<float> complete;
  if (has_missing(fresh.rows)) complete = filled(fresh, call);
  points_.reserve(fresh.rows, fresh.size() - std::min(fresh.size(), exchange.leaving().size()));
  if (exchange.are_weighted()) points_.reserve_weights(fresh.size());
  arrivals_.reserve(taken.size(), exchange.are_alone(), !taken.weights.empty());
  tenure_.reserve(taken.size());
  // From here on nothing fails until the points are stored. Points that leave are gone even if a stop interrupts that.
  std::exception_ptr failure;
  try {
    change_points(exchange, call);
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    points_.append(fresh.rows, fresh.values, fresh.weights);
  } catch (...) {  // no memory: what leaves is gone, and nothing has come
    arrivals_.drop_last(taken.size());
    throw;
  }
  tenure_.take_in(samples.size(), admission);
  total_weight_ += weight_coming;
  points_.set_last_rows(complete);
  schedule_.add_points(fresh.size());
  if (!exchange.leaving().empty()) schedule_.forget_down_to(points_.size());
  on_stored();
  if (measure_) set_expected(points_.size() - fresh.size());
  if (is_outdated) schedule_.make_due();
  if (failure) std::rethrow_exception(failure);
}

template <class Target, class Options>
void Forest<Target, Options>::bring_up_to_date(const Call& call) {
  catch_up(call);
  settle(call);
}

template <class Target, class Options>
void Forest<Target, Options>::refresh_measure(const Call& call) {
  const std::size_t n = points_.size();
  if (n == 0 || !schedule_.is_due()) return;
  Learned<Prior> learned = points_.missing().any() && measure_ ? refill_and_learn_measure(call) : learn_measure(call);
  std::vector<float> lower(options_.n_features), upper(options_.n_features);
  start_box(lower.data(), upper.data(), points_.box(0), options_.n_features);
  for (std::size_t i = 1; i < n; ++i) {
    include(lower.data(), upper.data(), points_.box(static_cast<Slot>(i)), options_.n_features);
  }
  schedule_.refresh(measure_, {lower.data(), upper.data()}, std::move(learned), n);
  set_expected(0);
}

template <class Target, class Options>
void Forest<Target, Options>::refresh(const Call& call) {
  const auto pass = gate_.writing();
  bring_up_to_date(call);  // finishes what a stopped call left
  schedule_.make_due();
  bring_up_to_date(call);
}

template <class Target, class Options>
std::vector<double> Forest<Target, Options>::relevance(const Call& call) const {
  const auto pass = gate_.reading();
  if (points_.size() == 0) throw std::invalid_argument("the forest holds no samples: learn some first");
  StopProbe stop = call.probe();
  const Columns columns(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  return relevance_of_features(columns, ~options_.seed, call);
}

template <class Target, class Options>
void Forest<Target, Options>::set_measure(TargetMeasure measure) {
  const MeasurePointer<Prior> old = measure_;
  measure_ = std::make_shared<const TargetMeasure>(std::move(measure));
  for (TargetTree& tree : trees_) {
    if (tree.measure_pointer() == old) tree.set_measure(measure_, points_);
  }
}

template <class Target, class Options>
bool Forest<Target, Options>::must_grow(const TargetTree& tree) const {
  return tree.empty() || (tree.measure_pointer() != measure_ && tree.measure().weights != measure_->weights);
}

// Refreshes the measure if it is due, then lets all trees learn what they lack.
template <class Target, class Options>
void Forest<Target, Options>::catch_up(const Call& call) {
  refresh_measure(call);
  const auto is_behind = [this](const TargetTree& tree) {
    return tree.n_points() < points_.size() || tree.measure_pointer() != measure_;
  };
  if (points_.size() == 0 || std::ranges::none_of(trees_, is_behind)) return;
  if (std::ranges::all_of(trees_, [this](const TargetTree& tree) {
        return !must_grow(tree) && tree.n_points() + 1 == points_.size();
      })) {
    learn_last_point(call);
    return;
  }
  std::optional<Columns> columns;
  if (std::ranges::any_of(trees_, [this](const TargetTree& tree) { return must_grow(tree); })) {
    StopProbe stop = call.probe();
    columns.emplace(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  }
  call.parallel_for(trees_.size(), [&] {
    return [&, work = workspaces_.lend()](std::size_t i, StopProbe& stop) mutable {
      catch_up_tree(trees_[i], columns ? &*columns : nullptr, *work, stop);
    };
  });
}

// All trees lack one point. Its paths through several trees are found side by side, because a single search waits for
// memory at every step.
template <class Target, class Options>
void Forest<Target, Options>::learn_last_point(const Call& call) {
  const float* row = points_.row(static_cast<Slot>(points_.size() - 1));
  const std::size_t n_groups = (trees_.size() + kSideBySide - 1) / kSideBySide;
  call.parallel_for(n_groups, [&] {
    return [&, loan = workspaces_.lend()](std::size_t group, StopProbe& stop) {
      Workspace& work = *loan;
      const std::size_t begin = group * kSideBySide, n = std::min(kSideBySide, trees_.size() - begin);
      const std::span<TargetTree> trees = std::span(trees_).subspan(begin, n);
      find_paths(trees, row, work.paths, [&](std::size_t i) { prefetch_end(trees[i].nodes(), work.paths[i]); });
      for (std::size_t i = 0; i < n; ++i) {
        prepare(trees[i].target());
        trees[i].set_measure(measure_, points_);
        trees[i].extend_along(work.paths[i], points_, work, stop);
        stop.tick(options_.n_features * kUsualDepth);
      }
    };
  });
}

template <class Target, class Options>
void Forest<Target, Options>::catch_up_tree(TargetTree& tree, const Columns* columns, Workspace& work,
                                            StopProbe& stop) {
  prepare(tree.target());
  if (must_grow(tree)) {
    tree.grow(points_, *columns, measure_, work, stop);
    return;
  }
  tree.set_measure(measure_, points_);
  while (tree.n_points() < points_.size()) {
    const std::size_t n_before = tree.n_points(), n_new = points_.size() - n_before;
    if (one_by_one_ || n_new < n_before / detail::kSmallSet) {
      tree.extend_one_by_one(points_, n_before + std::min(n_new, detail::kBetweenStops), work, stop);
    } else {
      tree.extend(points_, n_before + std::min(n_new, detail::largest_set(options_.n_features)), work, stop);
    }
    stop.tick((tree.n_points() - n_before) * options_.n_features * kUsualDepth);
  }
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::n_points() const {
  const auto pass = gate_.reading();
  return arrivals_.size();
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::n_seen() const {
  const auto pass = gate_.reading();
  return tenure_.n_seen();
}

template <class Target, class Options>
std::vector<std::uint8_t> Forest<Target, Options>::are_stored(std::span<const Serial> serials) const {
  const auto pass = gate_.reading();
  std::vector<std::uint8_t> result;
  for (const Slot slot : tenure_.slots_of(serials)) result.push_back(slot != kNoSlot);
  return result;
}

template <class Target, class Options>
std::vector<Serial> Forest<Target, Options>::serials() const {
  const auto pass = gate_.reading();
  return {tenure_.serials().begin(), tenure_.serials().end()};
}

template <class Target, class Options>
typename Forest<Target, Options>::TargetMeasure Forest<Target, Options>::measure() const {
  const auto pass = gate_.reading();
  return measure_ ? *measure_ : TargetMeasure();
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::nbytes() const {
  const auto pass = gate_.reading();
  std::size_t n = points_.nbytes() + arrivals_.nbytes() + tenure_.nbytes();
  for (const TargetTree& tree : trees_) n += sizeof(tree) + tree.nbytes();
  return n;
}

}  // namespace onlineforest
