// Rows with values, and how a forest of either kind learns them. Shared by tests and the fuzzer's corpus.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"

namespace onlineforest::testing {

template <class Value>
struct Data {
  std::vector<float> rows;
  std::vector<Value> values;
  std::vector<Weight> weights = {};  // none if each counts once
};

// `n_classes` counts the labels of the data; the forest may know more.
inline void learn(LabelForest& forest, const Data<Label>& data, std::int32_t n_classes, std::size_t n_threads = 1,
                  const StopRequested& requested = {}) {
  forest.learn(data.rows, data.values, std::max(forest.n_classes(), n_classes), Call(n_threads, requested), false,
               data.weights);
}

// Numbers have no classes: `n_classes` is ignored.
inline void learn(GaussianForest& forest, const Data<double>& data, std::int32_t /*n_classes*/,
                  std::size_t n_threads = 1, const StopRequested& requested = {}) {
  forest.learn(data.rows, data.values, Call(n_threads, requested), false, data.weights);
}

}  // namespace onlineforest::testing
