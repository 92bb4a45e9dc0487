// A limit on memory that several threads share. Must not know what the memory is used for.
#pragma once

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace onlineforest {

// Thrown when a forest would need more memory than the limit allows.
struct TooLarge : std::invalid_argument {
  TooLarge(std::size_t n_bytes, std::size_t n_left)
      : std::invalid_argument("the forest needs " + std::to_string(n_bytes) + " more bytes, but only " +
                              std::to_string(n_left) + " bytes of its memory limit are left") {}
};

// Number of bytes that threads may still take.
class Allowance {
 public:
  explicit Allowance(std::size_t n_bytes) : left_(n_bytes) {}

  // Throws TooLarge, and takes nothing, if fewer than `n_bytes` are left.
  void take(std::size_t n_bytes) {
    std::size_t left = left_;
    do {
      if (n_bytes > left) throw TooLarge(n_bytes, left);
    } while (!left_.compare_exchange_weak(left, left - n_bytes));
  }

 private:
  std::atomic<std::size_t> left_;
};

}  // namespace onlineforest
