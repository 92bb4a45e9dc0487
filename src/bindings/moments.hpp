// What the trees of an order-free forest of numbers say about rows, as an array.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "guided/number_forest.hpp"

namespace onlineforest::bindings {

// Mean, variance within leaves and variance between trees.
inline OutArray<double, 2> array_of_moments(const std::vector<guided::TreeMoments>& moments) {
  std::vector<double> numbers;
  numbers.reserve(3 * moments.size());
  for (const auto& [mean, within, between] : moments) numbers.insert(numbers.end(), {mean, within, between});
  return to_array(std::move(numbers), {moments.size(), 3});
}

}  // namespace onlineforest::bindings
