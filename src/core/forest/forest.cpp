#include "forest/forest.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/parallel.hpp"
#include "forest/sums.hpp"
#include "labels/label_options.hpp"
#include "labels/label_target.hpp"
#include "numbers/gaussian_options.hpp"
#include "numbers/gaussian_target.hpp"
#include "tree/stages.hpp"
#include "tree/walk.hpp"

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
// Of so many points left one is forgotten, at most; if more are, trees are quicker grown afresh.
constexpr std::size_t kFewForgotten = 4;

// Random numbers apart from those of the trees: for what is filled in when learning, and when predicting.
constexpr std::uint64_t kSeedOfFills = 0x6669'6c6c'7300'0000u, kSeedOfQueries = 0x7175'6572'6965'7300u;

constexpr std::size_t kLentTogether = 1024;  // points of a set that take values from the same donors

// From whom a point takes values: the group it is in, by its first point, and how many points may lend to it.
struct Lending {
  std::size_t group, n;
};

// What is missing when rows are compared: a number that no value is.
constexpr float kMissing = std::numeric_limits<float>::infinity();

std::vector<float> with_infinity_for_nan(std::span<const float> rows) {
  std::vector<float> result(rows.begin(), rows.end());
  std::ranges::replace_if(result, [](float x) { return std::isnan(x); }, kMissing);
  return result;
}

template <class Options>
Options checked(Options options) {
  check_options(options);
  return options;
}

}  // namespace

template <class Target, class Options>
Forest<Target, Options>::Forest(Options options)
    : options_(checked(std::move(options))),
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
void Forest<Target, Options>::learn_values(std::span<const float> rows, std::span<const Value> values,
                                           std::size_t n_threads, const StopRequested& requested, bool one_by_one,
                                           const std::function<void()>& on_stored) {
  StopSignal signal(requested);
  bring_up_to_date(n_threads, signal);  // what a stopped call left behind
  one_by_one_ = one_by_one;
  std::size_t done = 0;
  do {
    std::size_t n = values.size() - done;
    if (one_by_one) {
      // The point that makes the measure due comes alone, so that it is refreshed where calls of one point would; and
      // so does one for which another has to go.
      const std::size_t due = std::min(schedule_.n_until_due(), n_until_outdated(values.subspan(done)));
      n = std::min({n, std::max<std::size_t>(due - 1, 1), std::max<std::size_t>(tenure_.room(), 1)});
    }
    store(rows.subspan(done * options_.n_features, n * options_.n_features), values.subspan(done, n), n_threads, signal,
          on_stored);
    bring_up_to_date(n_threads, signal);
    done += n;
  } while (done < values.size());
}

// Stores points, as far as they are to be kept, in the place of those that have to go.
template <class Target, class Options>
void Forest<Target, Options>::store(std::span<const float> rows, std::span<const Value> values, std::size_t n_threads,
                                    StopSignal& signal, const std::function<void()>& on_stored) {
  Tenure::Admission admission = tenure_.admit(values.size());
  std::vector<float> some_rows;
  std::vector<Value> some_values;
  const std::size_t n_came = values.size(), n = admission.taken.size(), width = options_.n_features;
  if (n < n_came) {
    for (const std::size_t i : admission.taken) {
      some_rows.insert(some_rows.end(), rows.begin() + static_cast<std::ptrdiff_t>(i * width),
                       rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
      some_values.push_back(values[i]);
    }
    rows = some_rows;
    values = some_values;
  }
  const bool is_outdated = n_until_outdated(values) <= n;
  const std::size_t n_more = n - std::min(n, admission.leaving.size());
  const Leaving leaving(std::move(admission.leaving), points_.size());
  std::vector<float> complete;
  if (has_missing(rows)) complete = filled(rows, values, admission.taken, n_threads, signal);
  points_.reserve(rows, n_more);
  tenure_.reserve(n_more);
  // From here on nothing fails before the points are stored. Those that go are gone even if that is stopped.
  std::exception_ptr failure;
  try {
    remove_points(leaving, n_threads, signal);
  } catch (...) {
    failure = std::current_exception();
  }
  points_.append(rows, values);
  tenure_.take_in(n_came, admission);
  points_.set_last_rows(complete);
  schedule_.add_points(n);
  on_stored();
  if (measure_) set_expected(points_.size() - n);
  if (is_outdated) schedule_.make_due();
  if (failure) std::rethrow_exception(failure);
}

template <class Target, class Options>
void Forest<Target, Options>::forget(std::span<const Serial> serials, std::size_t n_threads,
                                     const StopRequested& requested) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  StopSignal signal(requested);
  std::vector<Slot> slots = tenure_.slots_of(serials);
  if (std::ranges::count(slots, kNoSlot) > 0) throw std::invalid_argument("a point to be forgotten is not stored");
  std::vector<Slot> sorted = slots;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    throw std::invalid_argument("a point is to be forgotten twice");
  bring_up_to_date(n_threads, signal);  // what a stopped call left behind; slots stay
  forget_slots(std::move(slots), n_threads, signal);
}

template <class Target, class Options>
std::vector<std::size_t> Forest<Target, Options>::forget(std::span<const float> rows, std::span<const Value> values,
                                                         std::size_t n_threads, const StopRequested& requested) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  if (n_rows(rows) != values.size()) throw std::invalid_argument("rows and values differ in number");
  StopSignal signal(requested);
  bring_up_to_date(n_threads, signal);  // what a stopped call left behind
  std::vector<Slot> slots = find_slots(rows, values, signal);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoSlot) missing.push_back(i);
  }
  if (missing.empty()) forget_slots(std::move(slots), n_threads, signal);
  return missing;
}

template <class Target, class Options>
void Forest<Target, Options>::keep_latest(std::size_t n, std::size_t n_threads, const StopRequested& requested) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  StopSignal signal(requested);
  bring_up_to_date(n_threads, signal);  // what a stopped call left behind
  std::vector<Slot> slots = tenure_.all_but_latest(n);
  if (slots.empty()) return;
  tenure_.start_anew();  // a new beginning: what comes next has all the room there is
  forget_slots(std::move(slots), n_threads, signal);
}

template <class Target, class Options>
void Forest<Target, Options>::forget_slots(std::vector<Slot> slots, std::size_t n_threads, StopSignal& signal) {
  if (slots.empty()) return;
  const Leaving leaving(std::move(slots), points_.size());
  std::exception_ptr failure;
  try {
    remove_points(leaving, n_threads, signal);
  } catch (...) {
    failure = std::current_exception();
  }
  points_.shrink();
  tenure_.shrink();
  schedule_.forget_down_to(points_.size());
  if (points_.size() == 0) {
    measure_.reset();
    schedule_.resume({});
    tenure_.start_anew();
    start_anew();
  }
  if (failure) std::rethrow_exception(failure);
  bring_up_to_date(n_threads, signal);  // trees that are quicker grown afresh
}

// Takes points away, from the trees first. A tree that could not forget them all is emptied: then and if this is
// stopped, the points are gone all the same, before the exception leaves.
template <class Target, class Options>
void Forest<Target, Options>::remove_points(const Leaving& leaving, std::size_t n_threads, StopSignal& signal) {
  // No structured binding: lambdas cannot capture one with Clang before 16.
  const std::vector<Slot>& slots = leaving.slots;
  const std::vector<Move>& moves = leaving.moves;
  if (slots.empty()) return;
  const std::size_t n_left = points_.size() - slots.size();
  std::exception_ptr failure;
  if (slots.size() <= n_left / kFewForgotten) {
    try {
      // A single point is looked for in some trees side by side: one alone waits for memory at every step.
      const std::size_t together = slots.size() == 1 ? kSideBySide : 1;
      parallel_for((trees_.size() + together - 1) / together, n_threads, signal, [&] {
        return [&, work = workspaces_.lend()](std::size_t group, StopProbe& stop) {
          const std::size_t begin = group * together, n = std::min(together, trees_.size() - begin);
          const std::span<TargetTree> trees = std::span(trees_).subspan(begin, n);
          for (int step = 0; together > 1 && step < TargetTree::kForgetSteps; ++step) {
            for (const TargetTree& tree : trees) tree.prefetch_to_forget(slots.front(), step, points_);
          }
          for (TargetTree& tree : trees) tree.forget(slots, moves, points_, *work, stop);
        };
      });
    } catch (...) {
      failure = std::current_exception();
    }
  }
  for (TargetTree& tree : trees_) {
    if (tree.n_points() != n_left) tree.clear();
  }
  points_.remove(slots, moves);
  tenure_.remove(slots, moves);
  if (failure) std::rethrow_exception(failure);
}

// The slot of one point for each row and value, kNoSlot if there is none; no slot twice. All trees are up to date.
template <class Target, class Options>
std::vector<Slot> Forest<Target, Options>::find_slots(std::span<const float> rows, std::span<const Value> values,
                                                      StopSignal& signal) const {
  struct Wanted {
    NodeIndex leaf;  // of a row of which values are missing it cannot be told: kNoNode
    Value value;
    std::span<const float> row;
    std::size_t place;
  };
  const auto is_before = [](const Wanted& a, const Wanted& b) {
    if (a.leaf != b.leaf) return a.leaf < b.leaf;
    if (a.value != b.value) return a.value < b.value;
    return std::ranges::lexicographical_compare(a.row, b.row);
  };
  const std::size_t n = values.size(), width = options_.n_features;
  std::vector<Slot> slots(n, kNoSlot);
  if (points_.size() == 0) return slots;
  StopProbe stop(signal, true);
  const TargetTree& tree = trees_.front();
  std::vector<Wanted> wanted;
  const std::vector<float> comparable = with_infinity_for_nan(rows);
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = std::span(comparable).subspan(i * width, width);
    const bool is_whole = std::ranges::count(row, kMissing) == 0;
    wanted.push_back({is_whole ? find_leaf(tree.nodes(), row.data()) : kNoNode, values[i], row, i});
    stop.tick(kUsualDepth);
  }
  std::ranges::stable_sort(wanted, is_before);
  // Each leaf is looked through once. What is found is sorted by the first who wants it, and by age.
  struct Found {
    std::size_t first;
    Serial serial;
    Slot slot;

    auto operator<=>(const Found&) const = default;
  };
  std::vector<Found> found;
  std::vector<float> stored(width);
  for (std::size_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && wanted[end].leaf == wanted[begin].leaf;) ++end;
    const std::span<const Wanted> here = std::span(wanted).subspan(begin, end - begin);
    const NodeIndex leaf = here.front().leaf;
    const auto look_at = [&](Slot slot) {
      for (std::size_t d = 0; d < width; ++d) {
        stored[d] = points_.is_missing(slot, d) ? kMissing : points_.row(slot)[d];
      }
      const Wanted point{leaf, points_.value(slot), stored, 0};
      const auto first = std::ranges::lower_bound(here, point, is_before);
      if (first != here.end() && !is_before(point, *first)) {
        found.push_back({begin + static_cast<std::size_t>(first - here.begin()),
                         tenure_.serials()[static_cast<std::size_t>(slot)], slot});
      }
      stop.tick(width);
    };
    if (leaf == kNoNode) {
      for (std::size_t i = 0; i < points_.size(); ++i) look_at(static_cast<Slot>(i));
    } else {
      for (Slot slot = tree.nodes()[leaf].first_point; slot != kNoSlot; slot = tree.next_point(slot)) look_at(slot);
    }
  }
  std::ranges::sort(found);
  for (std::size_t i = 0, k = 0; i < found.size(); ++i) {
    const std::size_t first = found[i].first;
    k = i > 0 && found[i - 1].first == first ? k + 1 : first;
    if (k < n && !is_before(wanted[first], wanted[k])) slots[wanted[k].place] = found[i].slot;
  }
  return slots;
}

template <class Target, class Options>
void Forest<Target, Options>::bring_up_to_date(std::size_t n_threads, StopSignal& signal) {
  catch_up(n_threads, signal);
  settle(n_threads, signal);
}

// Fills in what is missing of the points from `first` on, which came with these serials, in groups: those of group
// `donors_of(i).group` take values from the first `donors_of(i).n` points. Only cells that are missing are written, and
// only those that are known are read, so that points can be filled side by side.
template <class Target, class Options>
template <class DonorsOf>
void Forest<Target, Options>::fill(std::size_t first, std::span<const Serial> serials, DonorsOf donors_of,
                                   std::size_t n_threads, StopSignal& signal) {
  constexpr std::size_t n_together = 64;
  const std::size_t n = serials.size(), n_features = options_.n_features;
  const std::uint64_t seed = options_.seed ^ kSeedOfFills ^ schedule_.n_refreshes();
  parallel_for((n + n_together - 1) / n_together, n_threads, signal, [&] {
    return [&, donors = Donors(n_features), given = std::vector<float>(n_features), group = ~std::size_t{0}](
               std::size_t piece, StopProbe& stop) mutable {
      for (std::size_t i = piece * n_together; i < std::min(n, (piece + 1) * n_together); ++i) {
        const Slot slot = static_cast<Slot>(first + i);
        points_.copy_given(slot, given);
        bool is_compared = false;  // not for what no point knows
        for (std::size_t d = 0; d < n_features; ++d) {
          float value = 0.0f;
          if (!std::isnan(given[d])) continue;
          if (points_.missing().is_ever_known(d)) {
            const Lending from = donors_of(i);
            if (!is_compared && from.group != group) {
              Rng rng(seed, static_cast<std::uint64_t>(serials[from.group]));
              donors.draw(points_, from.n, rng);
              group = from.group;
            }
            if (!is_compared) donors.compare(given);
            is_compared = true;
            donors.find_values(d, points_, std::span(&value, 1));
          }
          points_.fill(slot, d, value);
        }
        stop.tick(is_compared ? kCandidates * n_features : n_features);
      }
    };
  });
}

// Rows that are to be stored, with what is missing filled in. Nothing has changed afterwards.
template <class Target, class Options>
std::vector<float> Forest<Target, Options>::filled(std::span<const float> rows, std::span<const Value> values,
                                                   std::span<const std::size_t> taken, std::size_t n_threads,
                                                   StopSignal& signal) {
  const std::size_t n_before = points_.size(), n = values.size();
  std::vector<Serial> serials;
  for (const std::size_t place : taken) serials.push_back(static_cast<Serial>(tenure_.n_seen() + place));
  points_.append(rows, values);
  std::exception_ptr failure;
  std::vector<float> result;
  try {
    // One by one, each knows only those before it. In a set, points share their donors: that is much quicker.
    fill(
        n_before, serials,
        [&](std::size_t i) {
          return one_by_one_ ? Lending{i, n_before + i + 1} : Lending{i / kLentTogether * kLentTogether, n_before + n};
        },
        n_threads, signal);
    const auto last = points_.rows().last(n * options_.n_features);
    result.assign(last.begin(), last.end());
  } catch (...) {
    failure = std::current_exception();
  }
  points_.truncate(n_before);
  if (failure) std::rethrow_exception(failure);
  return result;
}

// What is filled in came from fewer points than there are now, or from some that were forgotten since. If this is
// stopped, nothing has changed.
template <class Target, class Options>
Learned<typename Target::Prior> Forest<Target, Options>::learn_measure_and_fill_anew(std::size_t n_threads,
                                                                                     StopSignal& signal) {
  std::vector<float> old_rows(points_.rows().begin(), points_.rows().end());
  try {
    const std::size_t n = points_.size();
    fill(
        0, tenure_.serials(), [n](std::size_t i) { return Lending{i / kLentTogether * kLentTogether, n}; }, n_threads,
        signal);
    Learned<Prior> learned = learn_measure(n_threads, signal);
    if (!std::ranges::equal(old_rows, points_.rows())) {
      for (TargetTree& tree : trees_) tree.clear();
    }
    return learned;
  } catch (...) {
    points_.swap_rows(old_rows);
    throw;
  }
}

template <class Target, class Options>
void Forest<Target, Options>::refresh_measure(std::size_t n_threads, StopSignal& signal) {
  const std::size_t n = points_.size();
  if (n == 0 || !schedule_.is_due()) return;
  Learned<Prior> learned = points_.missing().any() && measure_ ? learn_measure_and_fill_anew(n_threads, signal)
                                                               : learn_measure(n_threads, signal);
  std::vector<float> lower(options_.n_features), upper(options_.n_features);
  start_box(lower.data(), upper.data(), points_.box(0), options_.n_features);
  for (std::size_t i = 1; i < n; ++i) {
    include(lower.data(), upper.data(), points_.box(static_cast<Slot>(i)), options_.n_features);
  }
  schedule_.refresh(measure_, {lower.data(), upper.data()}, std::move(learned), n);
  set_expected(0);
}

template <class Target, class Options>
void Forest<Target, Options>::refresh(std::size_t n_threads, const StopRequested& requested) {
  const ReentryGuard guard(this);
  const std::unique_lock lock(mutex_);
  StopSignal signal(requested);
  bring_up_to_date(n_threads, signal);  // what a stopped call left behind
  schedule_.make_due();
  bring_up_to_date(n_threads, signal);
}

template <class Target, class Options>
std::vector<double> Forest<Target, Options>::relevance(std::size_t n_threads, const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  if (points_.size() == 0) throw std::invalid_argument("the forest holds no samples: learn some first");
  StopSignal signal(requested);
  StopProbe stop(signal, true);
  const Columns columns(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  return relevance_of_features(columns, ~options_.seed, n_threads, signal);
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

template <class Target, class Options>
void Forest<Target, Options>::catch_up(std::size_t n_threads, StopSignal& signal) {
  refresh_measure(n_threads, signal);
  const auto is_behind = [this](const TargetTree& tree) {
    return tree.n_points() < points_.size() || tree.measure_pointer() != measure_;
  };
  if (points_.size() == 0 || std::ranges::none_of(trees_, is_behind)) return;
  if (std::ranges::all_of(trees_, [this](const TargetTree& tree) {
        return !must_grow(tree) && tree.n_points() + 1 == points_.size();
      })) {
    learn_last_point(n_threads, signal);
    return;
  }
  std::optional<Columns> columns;
  if (std::ranges::any_of(trees_, [this](const TargetTree& tree) { return must_grow(tree); })) {
    StopProbe stop(signal, true);
    columns.emplace(points_, points_.size(), [&stop](std::size_t n) { stop.tick(n); });
  }
  parallel_for(trees_.size(), n_threads, signal, [&] {
    return [&, work = workspaces_.lend()](std::size_t i, StopProbe& stop) mutable {
      catch_up_tree(trees_[i], columns ? &*columns : nullptr, *work, stop);
    };
  });
}

template <class Target, class Options>
void Forest<Target, Options>::learn_last_point(std::size_t n_threads, StopSignal& signal) {
  const float* row = points_.row(static_cast<Slot>(points_.size() - 1));
  const std::size_t n_groups = (trees_.size() + kSideBySide - 1) / kSideBySide;
  parallel_for(n_groups, n_threads, signal, [&] {
    return [&, loan = workspaces_.lend()](std::size_t group, StopProbe& stop) {
      Workspace& work = *loan;
      const std::size_t begin = group * kSideBySide, n = std::min(kSideBySide, trees_.size() - begin);
      const std::span<TargetTree> trees = std::span(trees_).subspan(begin, n);
      find_paths(trees, row, work.paths);
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
    if (one_by_one_ || n_new < n_before / kSmallSet) {
      tree.extend_one_by_one(points_, n_before + std::min(n_new, kBetweenStops), work, stop);
    } else {
      tree.extend(points_, n_before + std::min(n_new, largest_set(options_.n_features)), work, stop);
    }
    stop.tick((tree.n_points() - n_before) * options_.n_features * kUsualDepth);
  }
}

template <class Target, class Options>
auto Forest<Target, Options>::novelty_prediction() const {
  return Prediction{
      1,
      1,
      [] { return SetWalk(); },
      [this](std::span<const TargetTree> trees, const Queries& queries, SetWalk& walk, double* sums, StopProbe& stop) {
        walk.walk_trees(trees, points_, queries, [&](const TargetTree&) {
          return [&](const RowPath& path) {
            sums[path.row] += separated_above_leaf(path);
            stop.tick(path.steps.size() * options_.n_features);
          };
        });
      },
      [](const Completed&, std::vector<double> sums, std::size_t n_grown) {
        for (double& each : sums) each = n_grown == 0 ? 1.0 : each / static_cast<double>(n_grown);
        return sums;
      },
      MeanOfCompletions{1}};
}

template <class Target, class Options>
std::vector<double> Forest<Target, Options>::novelty(std::span<const float> rows, std::size_t n_threads,
                                                     const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  if (n_grown() == 0) return std::vector<double>(n_rows(rows), 1.0);
  StopSignal signal(requested);
  return predicted(novelty_prediction(), rows, n_threads, signal);
}

template <class Target, class Options>
Terms Forest<Target, Options>::novelty_terms(std::span<const float> rows, std::size_t n_threads,
                                             const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  StopSignal signal(requested);
  return terms(novelty_prediction(), rows, n_threads, signal);
}

template <class Target, class Options>
std::vector<double> Forest<Target, Options>::novelty_from(std::span<const float> rows, const TreeSums& sums,
                                                          const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  StopSignal signal(requested);
  return finished(novelty_prediction(), rows, sums, signal);
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::n_grown() const {
  return static_cast<std::size_t>(std::ranges::count_if(trees_, [](const TargetTree& tree) { return !tree.empty(); }));
}

template <class Target, class Options>
std::vector<NodeIndex> Forest<Target, Options>::apply(std::span<const float> rows, std::size_t n_threads,
                                                      const StopRequested& requested) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  const std::size_t n = n_rows(rows), m = trees_.size(), width = options_.n_features;
  std::vector<NodeIndex> result(n * m, kNoNode);
  StopSignal signal(requested);
  for (std::size_t first = 0; first < n; first += Completed::kMostRows) {
    const std::size_t n_here = std::min(Completed::kMostRows, n - first);
    const Completed queries = completed(rows.subspan(first * width, n_here * width));
    parallel_for(m, n_threads, signal, [&] {
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
std::size_t Forest<Target, Options>::n_points() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return points_.size();
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::n_seen() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return tenure_.n_seen();
}

template <class Target, class Options>
std::vector<std::uint8_t> Forest<Target, Options>::are_stored(std::span<const Serial> serials) const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  std::vector<std::uint8_t> result;
  for (const Slot slot : tenure_.slots_of(serials)) result.push_back(slot != kNoSlot);
  return result;
}

template <class Target, class Options>
std::vector<Serial> Forest<Target, Options>::serials() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return {tenure_.serials().begin(), tenure_.serials().end()};
}

template <class Target, class Options>
typename Forest<Target, Options>::TargetMeasure Forest<Target, Options>::measure() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  return measure_ ? *measure_ : TargetMeasure();
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::nbytes() const {
  const ReentryGuard guard(this);
  const std::shared_lock lock(mutex_);
  std::size_t n = points_.nbytes() + tenure_.nbytes();
  for (const TargetTree& tree : trees_) n += sizeof(tree) + tree.nbytes();
  return n;
}

template <class Target, class Options>
std::size_t Forest<Target, Options>::n_rows(std::span<const float> rows) const {
  if (rows.size() % options_.n_features != 0) throw std::invalid_argument("rows are not of the forest's width");
  return rows.size() / options_.n_features;
}

template <class Target, class Options>
Completed Forest<Target, Options>::completed(std::span<const float> rows) const {
  return {rows, points_, Rng(options_.seed ^ kSeedOfQueries, points_.size())};
}

template class Forest<LabelTarget, LabelOptions>;
template class Forest<GaussianTarget, GaussianOptions>;

}  // namespace onlineforest
