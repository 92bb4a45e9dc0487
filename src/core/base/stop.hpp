// Stopping long work from outside: the calling thread asks now and then whether to stop, all workers listen.
// Knows nothing of what the work is, nor of where the wish to stop comes from.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

namespace onlineforest {

// Thrown by work that was stopped.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// One per call into the core, shared by its threads.
class StopSignal {
 public:
  // `requested` says whether to stop. It is only ever called on the thread that calls poll().
  explicit StopSignal(std::function<bool()> requested) : requested_(std::move(requested)) {}

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  // Asks at most every 50 ms, and no more once the answer was yes.
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

// One per worker: counts work, and looks at the signal when enough of it is done.
class StopProbe {
 public:
  StopProbe(StopSignal& signal, bool may_poll) : signal_(signal), may_poll_(may_poll) {}

  // Reports `work` more numbers touched; throws Interrupted when the signal says so.
  void tick(std::uint64_t work) {
    if ((done_ += work) < kStride) return;
    done_ = 0;
    check();
  }

  void check() {
    if (may_poll_) signal_.poll();
    heed();
  }

  // Does not ask, which takes a look at the clock; throws if another has, and is to stop.
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
