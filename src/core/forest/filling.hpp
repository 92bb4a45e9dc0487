// How a forest fills in missing values of its points. A stage of Forest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "forest/forest.hpp"

namespace onlineforest {

namespace detail {

inline constexpr std::uint64_t kSeedOfFills = 0x6669'6c6c'7300'0000u;  // apart from the random numbers of the trees
inline constexpr std::size_t kSharedDonors = 1024;                     // points of a set that share their donors

}  // namespace detail

template <class Target, class Options>
struct Forest<Target, Options>::Lending {
  std::size_t group;     // first point of the group that shares donors
  std::size_t n_donors;  // the first so many points may lend values
};

// Fills in the missing values of the points from `first` on. The points of one group share donors: donors_of(i) says
// which. Only missing cells are written and only known cells are read, so that points can be filled in parallel.
template <class Target, class Options>
template <class DonorsOf>
void Forest<Target, Options>::fill(std::size_t first, DonorsOf donors_of, const Call& call) {
  constexpr std::size_t piece_size = 64;
  const std::size_t n = points_.size() - first, n_features = options_.n_features;
  const std::uint64_t seed = options_.seed ^ detail::kSeedOfFills ^ schedule_.n_refreshes();
  call.parallel_for((n + piece_size - 1) / piece_size, [&] {
    return [&, donors = Donors(n_features), given = std::vector<float>(n_features),
            of_leader = std::vector<float>(n_features),
            group = ~std::size_t{0}](std::size_t piece, StopProbe& stop) mutable {
      for (std::size_t i = piece * piece_size; i < std::min(n, (piece + 1) * piece_size); ++i) {
        const Slot slot = static_cast<Slot>(first + i);
        points_.copy_given(slot, given);
        bool is_compared = false;  // not needed for a feature that no point knows
        for (std::size_t d = 0; d < n_features; ++d) {
          float value = 0.0f;
          if (!std::isnan(given[d])) continue;
          if (points_.missing().is_ever_known(d)) {
            const Lending from = donors_of(i);
            if (!is_compared && from.group != group) {
              const Slot leader = static_cast<Slot>(first + from.group);
              points_.copy_given(leader, of_leader);
              Rng rng(seed, Points::content_hash(of_leader, points_.value(leader), 0));
              donors.draw(points_, from.n_donors, rng);
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

// Returns the rows of points that are about to be stored with their missing values filled in. Leaves the forest
// unchanged.
template <class Target, class Options>
std::vector<float> Forest<Target, Options>::filled(const Samples<Value>& samples, const Call& call) {
  constexpr std::size_t piece_size = 256;
  const std::size_t n_before = points_.size(), n = samples.size(), n_features = options_.n_features;
  std::exception_ptr failure;
  std::vector<float> result;
  try {
    StopProbe stop = call.probe();
    points_.reserve({}, n);
    for (std::size_t i = 0; i < n; i += piece_size) {
      const std::size_t size = std::min(piece_size, n - i);
      points_.append(samples.rows.subspan(i * n_features, size * n_features), samples.values.subspan(i, size));
      stop.tick(4 * size * n_features);
    }
    // Learned one by one, a point takes values only from points before it. Points of a set share donors, which is much
    // faster.
    const auto donors_of = [&](std::size_t i) {
      if (one_by_one_) return Lending{i, n_before + i + 1};
      return Lending{i / detail::kSharedDonors * detail::kSharedDonors, n_before + n};
    };
    fill(n_before, donors_of, call);
    const auto last = points_.rows().last(n * n_features);
    result.assign(last.begin(), last.end());
  } catch (...) {
    failure = std::current_exception();
  }
  points_.truncate(n_before);
  if (failure) std::rethrow_exception(failure);
  return result;
}

// Fills in all missing values again, from all points that are stored now, and learns the measure from the result. If
// any value changed, all trees are emptied. If this is stopped, nothing has changed.
template <class Target, class Options>
Learned<typename Target::Prior> Forest<Target, Options>::refill_and_learn_measure(const Call& call) {
  std::vector<float> old_rows(points_.rows().begin(), points_.rows().end());
  try {
    const std::size_t n = points_.size();
    const auto donors_of = [n](std::size_t i) { return Lending{i / detail::kSharedDonors * detail::kSharedDonors, n}; };
    fill(0, donors_of, call);
    Learned<Prior> learned = learn_measure(call);
    if (!std::ranges::equal(old_rows, points_.rows())) {
      for (TargetTree& tree : trees_) tree.clear();
    }
    return learned;
  } catch (...) {
    points_.swap_rows(old_rows);
    throw;
  }
}

}  // namespace onlineforest
