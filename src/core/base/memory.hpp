// Prefetching, and arrays that grow without much idle memory. Knows nothing of what they hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace onlineforest {

// Asks for a place in memory that is soon to be read. Forced inline, and so are functions that do nothing else: GCC
// deletes calls that have no effect it can see.
[[gnu::always_inline]] inline void prefetch(const void* place) {
#if defined(__GNUC__)
  __builtin_prefetch(place);
#else
  static_cast<void>(place);
#endif
}

// For arrays that grow with a tree: little memory lies idle, and what is there is moved a few times at most.
template <class T>
void resize_tightly(std::vector<T>& values, std::size_t size, const T& value) {
  if (size > values.capacity()) values.reserve(std::max(size, values.capacity() + values.capacity() / 4 + 16));
  while (values.size() < size) values.push_back(value);
}

}  // namespace onlineforest
