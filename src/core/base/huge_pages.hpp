// Memory for large arrays with random access, on huge pages where the system offers them. Must not know what the arrays
// hold.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace onlineforest {

// An allocator like std::allocator that asks for huge pages for large arrays.
template <class T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <class Other>
  HugePages(const HugePages<Other>&) {}  // NOLINT(google-explicit-constructor): allocators convert

  [[nodiscard]] T* allocate(std::size_t n) {
    const std::size_t n_bytes = n * sizeof(T);
    if (n_bytes < kLeastBytes) return static_cast<T*>(::operator new(n_bytes));
    void* const memory = ::operator new(n_bytes, kPage);
#if defined(__linux__)
    (void)madvise(memory, n_bytes, MADV_HUGEPAGE);  // a failure does not matter: small pages work too
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) noexcept {
    if (n * sizeof(T) < kLeastBytes) {
      ::operator delete(memory);
    } else {
      ::operator delete(memory, kPage);
    }
  }
  bool operator==(const HugePages&) const = default;

 private:
  static constexpr std::align_val_t kPage{std::size_t{1} << 21};
  static constexpr std::size_t kLeastBytes = std::size_t{1} << 22;  // so that at most half of an array is not covered
};

template <class T>
using LargeVector = std::vector<T, HugePages<T>>;

}  // namespace onlineforest
