// Queries: rows to predict. Must not know trees.
#pragma once

#include <cstddef>

namespace onlineforest::mondrian {

// A view of rows, row by row.
struct Queries {
  const float* rows;
  std::size_t n;
};

}  // namespace onlineforest::mondrian
