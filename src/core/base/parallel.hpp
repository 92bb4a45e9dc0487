// Independent pieces of work on several threads, stoppable. Knows nothing of the work.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/stop.hpp"

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

// Takes items by number, in the order of the numbers, whichever is ready first.
template <class Item>
class InOrder {
 public:
  // Calls take(number, item) for this item and those that waited for it, or keeps it until it is its turn. The item is
  // left for another use.
  template <class Take>
  void hand_in(std::size_t number, Item& item, Take take) {
    const std::lock_guard lock(mutex_);
    if (number != next_) {
      waiting_.emplace(number, std::exchange(item, Item()));
      return;
    }
    take(next_++, item);
    for (; !waiting_.empty() && waiting_.begin()->first == next_; waiting_.erase(waiting_.begin())) {
      take(next_++, waiting_.begin()->second);
    }
  }

 private:
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::map<std::size_t, Item> waiting_;
};

}  // namespace onlineforest
