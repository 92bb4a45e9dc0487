// Stops long work from outside: the calling thread polls a callback, all workers read the result. Must not know the
// work, nor who requests the stop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

namespace onlineforest {

// Thrown by work that was interrupted.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// One per call into the core. The threads of the call share it.
class StopSignal {
 public:
  // `requested()` returns whether to stop. Only the thread that calls poll() calls it.
  explicit StopSignal(std::function<bool()> requested) : requested_(std::move(requested)) {}

  [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  // Calls `requested` at most every 50 ms, and never again after a stop.
  void poll() {
    if (stopped()) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_poll_) return;
    next_poll_ = now + kPeriod;
    if (requested_ && requested_()) stop();
  }

 private:
  static constexpr std::chrono::milliseconds kPeriod{50};

  std::function<bool()> requested_;
  std::atomic<bool> stopped_{false};
  std::chrono::steady_clock::time_point next_poll_ = std::chrono::steady_clock::now() + kPeriod;
};

// One per worker: counts work and checks the signal about once per millisecond.
class StopProbe {
 public:
  StopProbe(StopSignal& signal, bool may_poll) : signal_(signal), may_poll_(may_poll) {}

  // Adds `work`, a number of values touched. Throws Interrupted if a check finds the signal stopped.
  void tick(std::uint64_t work) {
    if ((done_ += work) < kStride) return;
    done_ = 0;
    check();
  }

  // Polls, if this probe may, and throws Interrupted if the signal is stopped.
  void check() {
    if (may_poll_) signal_.poll();
    heed();
  }

  // Throws Interrupted if a stop was already signalled. Unlike `check`, does not poll, which reads the clock.
  void heed() const {
    if (signal_.stopped()) throw Interrupted();
  }

 private:
  static constexpr std::uint64_t kStride = 1u << 20;  // about a millisecond

  StopSignal& signal_;
  bool may_poll_;
  std::uint64_t done_ = 0;
};

}  // namespace onlineforest
