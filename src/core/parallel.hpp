// Independent pieces of work on several threads, stoppable. Knows nothing of the work.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "stop.hpp"

namespace onlineforest {

// Calls make_worker() once per thread, and the worker it returns as worker(i, probe) for each i in [0, n), each i
// once. The calling thread works too, and is the one that polls the signal. The first exception of a worker stops
// the others and is thrown here, when all of them have ended.
template <class MakeWorker>
void parallel_for(std::size_t n, std::size_t n_threads, StopSignal& signal, MakeWorker make_worker) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::size_t n_ended = 0;
  std::mutex mutex;
  std::condition_variable ended;

  const auto work = [&](bool is_caller) {
    try {
      StopProbe probe(signal, is_caller);
      auto worker = make_worker();
      for (std::size_t i = next++; i < n; i = next++) {
        worker(i, probe);
        probe.heed();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      signal.stop();
    }
  };

  std::vector<std::thread> threads;
  const std::size_t n_helpers = std::min(std::max<std::size_t>(n_threads, 1), std::max<std::size_t>(n, 1)) - 1;
  threads.reserve(n_helpers);
  for (std::size_t i = 0; i < n_helpers; ++i) {
    try {
      threads.emplace_back([&] {
        work(false);
        const std::lock_guard lock(mutex);
        ++n_ended;
        ended.notify_one();
      });
    } catch (const std::exception&) {  // no thread to be had: those there are, and the caller, do it all
      break;
    }
  }

  work(true);
  {
    std::unique_lock lock(mutex);
    while (n_ended < threads.size()) {
      ended.wait_for(lock, std::chrono::milliseconds(20));
      lock.unlock();
      signal.poll();
      lock.lock();
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  if (signal.stopped()) throw Interrupted();
}

}  // namespace onlineforest
