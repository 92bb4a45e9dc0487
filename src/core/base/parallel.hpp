// Independent pieces of work on several threads that can be stopped. Must not know the work.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/helpers.hpp"
#include "base/stop.hpp"

namespace onlineforest {

// Counts the helper threads that have ended, and keeps the first exception. Shared, because the last helper may still
// unlock the mutex when the caller returns.
struct Ending {
  std::mutex mutex;
  std::condition_variable some_ended;
  std::size_t n_ended = 0;
  std::exception_ptr failure;

  void note_end() {
    const std::lock_guard lock(mutex);
    ++n_ended;
    some_ended.notify_one();
  }
  void note_failure(std::exception_ptr current) {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::move(current);
  }
  // Polls the signal until `n_threads` threads have ended.
  void wait_for(std::size_t n_threads, StopSignal& signal) {
    std::unique_lock lock(mutex);
    while (n_ended < n_threads) {
      some_ended.wait_for(lock, std::chrono::milliseconds(20));
      lock.unlock();
      signal.poll();
      lock.lock();
    }
  }
};

// Calls make_worker() once per thread, then worker(i, probe) once for each i in [0, n), on any of the threads. The
// calling thread works too; it is the only one that polls the signal. The first exception of a worker stops the other
// workers; it is rethrown here after all of them have ended.
template <class MakeWorker>
void parallel_for(std::size_t n, std::size_t n_threads, StopSignal& signal, MakeWorker make_worker) {
  const auto ending = std::make_shared<Ending>();
  std::atomic<std::size_t> next{0};

  const auto work = [&](bool is_caller) {
    try {
      StopProbe probe(signal, is_caller);
      auto worker = make_worker();
      for (std::size_t i = next++; i < n; i = next++) {
        worker(i, probe);
        probe.heed();
      }
    } catch (...) {
      ending->note_failure(std::current_exception());
      signal.stop();
    }
  };

  const std::size_t n_wanted = std::min(std::max<std::size_t>(n_threads, 1), std::max<std::size_t>(n, 1)) - 1;
  std::size_t n_helpers = 0;
  try {
    for (; n_helpers < n_wanted; ++n_helpers) {
      Helpers::shared().start([&work, ending] {
        work(false);
        ending->note_end();
      });
    }
  } catch (const std::exception&) {  // the system starts no more threads: the others do all the work
  }

  work(true);
  ending->wait_for(n_helpers, signal);
  if (ending->failure) std::rethrow_exception(ending->failure);
  if (signal.stopped()) throw Interrupted();
}

// Processes numbered items in the order of their numbers, although threads finish them in any order.
template <class Item>
class InOrder {
 public:
  // If this is the next item, calls take(number, item) for it and for all kept items that follow. Otherwise keeps it.
  // Afterwards the caller may reuse `item`.
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
