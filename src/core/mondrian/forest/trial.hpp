// Chooses a measure: learns some points under several measures and predicts others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/call.hpp"
#include "mondrian/forest/options.hpp"
#include "mondrian/points/point_store.hpp"

namespace onlineforest::mondrian {

// A candidate. It is the default, which another must clearly beat.
inline constexpr double kUsualLeafDiscount = 0.3;

struct Chosen {
  std::vector<double> shares;  // per feature, mean 1
  double leaf_discount;
};

// Whether a trial can use this number of points and classes: neither too few points nor too many classes.
bool is_trial_possible(std::size_t n_points, std::int32_t n_classes);

// Tunes the shares of the features, if the options ask for learned weights, and the leaf discount, if they do not give
// it, by the log loss. The result depends on the points and the options alone, not on the number of threads.
Chosen choose_measure(const PointStore& points, std::int32_t n_classes, const ForestOptions& options, const Call& call);

}  // namespace onlineforest::mondrian
