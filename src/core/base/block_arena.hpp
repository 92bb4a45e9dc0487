// Small arrays of integers inside one large array. Must not know what the integers mean.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace onlineforest {

// Layout: blocks of 2^k entries, one after the other. A released block is reused for the next block of its size, so
// memory is never returned but never fragments either. Blocks are named by offsets: growing moves the large array.
template <class Entry>
class BlockArena {
 public:
  using Offset = std::uint32_t;

  // Returns a block for `size` entries (at least one). Its contents are unspecified.
  [[nodiscard]] Offset allocate(std::uint32_t size) {
    std::vector<Offset>& free = free_[size_class(size)];
    if (!free.empty()) {
      const Offset offset = free.back();
      free.pop_back();
      return offset;
    }
    const std::size_t offset = entries_.size();
    const std::size_t end = offset + std::bit_ceil(size);
    if (end > std::numeric_limits<Offset>::max()) {
      throw std::length_error("a tree needs " + std::to_string(end) + " counts of labels, at most " +
                              std::to_string(std::numeric_limits<Offset>::max()) + " can be stored");
    }
    entries_.resize(end);
    return static_cast<Offset>(offset);
  }

  void release(Offset offset, std::uint32_t size) { free_[size_class(size)].push_back(offset); }

  // Inserts an entry at `position` of a block of `size` entries. Returns the new offset of the block.
  [[nodiscard]] Offset insert(Offset offset, std::uint32_t size, std::uint32_t position, Entry value) {
    Offset target = offset;
    if (size_class(size + 1) != size_class(size)) {
      target = allocate(size + 1);
      std::copy_n(data(offset), position, data(target));
      std::copy_backward(data(offset) + position, data(offset) + size, data(target) + size + 1);
      release(offset, size);
    } else {
      std::copy_backward(data(offset) + position, data(offset) + size, data(offset) + size + 1);
    }
    data(target)[position] = value;
    return target;
  }

  // Erases an entry of a block of `size` entries (at least two). Returns the new offset of the block.
  [[nodiscard]] Offset erase(Offset offset, std::uint32_t size, std::uint32_t position) {
    std::copy(data(offset) + position + 1, data(offset) + size, data(offset) + position);
    if (size_class(size - 1) == size_class(size)) return offset;
    const Offset target = allocate(size - 1);
    std::copy_n(data(offset), size - 1, data(target));
    release(offset, size);
    return target;
  }

  std::size_t nbytes() const {
    std::size_t n = 0;
    for (const std::vector<Offset>& free : free_) n += free.capacity();
    return n * sizeof(Offset) + entries_.capacity() * sizeof(Entry);
  }

  Entry* data(Offset offset) { return entries_.data() + offset; }
  const Entry* data(Offset offset) const { return entries_.data() + offset; }

 private:
  static std::size_t size_class(std::uint32_t size) { return static_cast<std::size_t>(std::bit_width(size - 1)); }

  std::vector<Entry> entries_;
  std::array<std::vector<Offset>, 33> free_;  // per k: released blocks of 2^k entries
};

}  // namespace onlineforest
