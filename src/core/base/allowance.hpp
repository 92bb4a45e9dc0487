// How much memory may be taken. Knows nothing of what for.
#pragma once

#include <atomic>
#include <cstddef>
#include <stdexcept>

namespace onlineforest {

// A forest would take more memory than it may.
struct TooLarge : std::invalid_argument {
  TooLarge() : std::invalid_argument("the forest would take more memory than it may") {}
};

// How many bytes may still be taken, by several threads.
class Allowance {
 public:
  explicit Allowance(std::size_t n_bytes) : left_(n_bytes) {}

  void take(std::size_t n_bytes) {
    std::size_t left = left_;
    do {
      if (n_bytes > left) throw TooLarge();
    } while (!left_.compare_exchange_weak(left, left - n_bytes));
  }

 private:
  std::atomic<std::size_t> left_;
};

}  // namespace onlineforest
