// Prefetching, and growth of arrays with little unused capacity. Must not know what the arrays hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/compiler.hpp"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace onlineforest {

// Prefetches a place in memory that will be read soon. Forced inline, like all functions that only prefetch: GCC
// deletes calls without a visible effect.
ONLINEFOREST_ALWAYS_INLINE void prefetch(const void* place) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(place);
#elif defined(_M_X64)
  _mm_prefetch(static_cast<const char*>(place), _MM_HINT_T0);
#elif defined(_M_ARM64)
  __prefetch(place);
#else
  static_cast<void>(place);
#endif
}

// Extends an array to `size` entries. Capacity grows by a quarter: trees have many such arrays, and doubling would
// leave much memory unused.
template <class T>
void resize_tightly(std::vector<T>& values, std::size_t size, const T& value) {
  if (size > values.capacity()) values.reserve(std::max(size, values.capacity() + values.capacity() / 4 + 16));
  while (values.size() < size) values.push_back(value);
}

}  // namespace onlineforest
