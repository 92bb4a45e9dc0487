// Rows with labels, and how a Mondrian forest learns them. Shared by tests and the fuzzer's corpus.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mondrian/forest/forest.hpp"

namespace onlineforest::testing {

template <class Value>
struct Data {
  std::vector<float> rows;
  std::vector<Value> values;
};

// `n_classes` counts the labels of the data; the forest may know more.
inline void learn(mondrian::Forest& forest, const Data<mondrian::Label>& data, std::int32_t n_classes,
                  std::size_t n_threads = 1, const StopRequested& requested = {}) {
  forest.learn(data.rows, data.values, std::max(forest.n_classes(), n_classes), Call(n_threads, requested));
}

}  // namespace onlineforest::testing
