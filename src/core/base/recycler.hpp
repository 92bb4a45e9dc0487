// A vector that reuses the places of removed items. Must not know what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onlineforest {

template <class T>
class Recycler {
 public:
  using Index = std::int32_t;

  // Returns the index of a new item in its initial state.
  [[nodiscard]] Index take() {
    if (!free_.empty()) {
      const Index index = free_.back();
      free_.pop_back();
      return index;
    }
    items_.emplace_back();
    free_.reserve(items_.capacity());  // so that put_back() cannot fail
    return static_cast<Index>(items_.size()) - 1;
  }

  void put_back(Index index) noexcept {
    (*this)[index] = T();
    free_.push_back(index);
  }

  [[nodiscard]] T& operator[](Index index) { return items_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const T& operator[](Index index) const { return items_[static_cast<std::size_t>(index)]; }

  void clear() {
    items_.clear();
    free_.clear();
  }

  // Memory of the places in bytes, without memory that the items own.
  [[nodiscard]] std::size_t nbytes() const { return items_.capacity() * sizeof(T) + free_.capacity() * sizeof(Index); }
  [[nodiscard]] const std::vector<T>& items() const { return items_; }

 private:
  std::vector<T> items_;
  std::vector<Index> free_;
};

}  // namespace onlineforest
