// Threads that stay alive between calls, because starting a thread takes as long as a small call. Must not know the
// work.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace onlineforest {

// Each job runs on a thread of its own. A thread that is done waits for the next job, until the process ends.
class Helpers {
 public:
  // The helpers of the process. Never destroyed: threads may wait while the process exits.
  [[nodiscard]] static Helpers& shared() {
    static const bool is_known = [] {
      replace_shared();
#if !defined(_WIN32)
      pthread_atfork(nullptr, nullptr, replace_shared);  // a child process has none of the threads
#endif
      return true;
    }();
    static_cast<void>(is_known);
    return *of_process();
  }

  // Runs a job beside the caller. Throws std::system_error if the system starts no more threads.
  void start(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (n_idle_ >= jobs_.size()) {  // an idle thread waits for each job
      wake_.notify_one();
      return;
    }
    try {
      std::thread([this] { help(); }).detach();
    } catch (...) {
      jobs_.pop_back();
      throw;
    }
  }

 private:
  static Helpers*& of_process() {
    static Helpers* helpers = nullptr;
    return helpers;
  }
  static void replace_shared() { of_process() = std::make_unique<Helpers>().release(); }

  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (jobs_.empty()) {
        ++n_idle_;
        wake_.wait(lock, [this] { return !jobs_.empty(); });
        --n_idle_;
      }
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;  // jobs that no thread has begun
  std::size_t n_idle_ = 0;
};

}  // namespace onlineforest
