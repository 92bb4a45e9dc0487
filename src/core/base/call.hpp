// How one call into the core runs: on how many threads, and when it stops. Knows nothing of the work.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "base/parallel.hpp"
#include "base/stop.hpp"

namespace onlineforest {

// Returns whether to stop. Called only on the thread that makes the call, at most every 50 ms.
using StopRequested = std::function<bool()>;

// One per call, passed by reference down to every loop. The signal is mutable because all threads of the call share it.
class Call {
 public:
  explicit Call(std::size_t n_threads = 1, StopRequested requested = {})
      : n_threads_(n_threads), signal_(std::move(requested)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::size_t n_threads() const { return n_threads_; }

  // A probe for loops on the calling thread. Workers of parallel_for get their own.
  StopProbe probe() const { return {signal_, true}; }

  // Runs worker(i, probe) for each i in [0, n) on the threads of the call; see onlineforest::parallel_for.
  template <class MakeWorker>
  void parallel_for(std::size_t n, MakeWorker make_worker) const {
    onlineforest::parallel_for(n, n_threads_, signal_, make_worker);
  }

 private:
  std::size_t n_threads_;
  mutable StopSignal signal_;
};

}  // namespace onlineforest
