#include "base/stop.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "base/parallel.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

TEST_CASE("parallel_for visits every index once") {
  for (const std::size_t n_threads : {0, 1, 2, 5, 100}) {
    std::vector<std::atomic<int>> done(57);
    StopSignal signal({});
    parallel_for(done.size(), n_threads, signal, [&] { return [&](std::size_t i, StopProbe&) { ++done[i]; }; });
    CHECK(std::ranges::all_of(done, [](const auto& n) { return n == 1; }));
  }
}

TEST_CASE("an exception of a worker reaches the caller") {
  StopSignal signal({});
  const auto run = [&] {
    parallel_for(1000, 3, signal, [] {
      return [](std::size_t i, StopProbe&) {
        if (i == 10) throw std::runtime_error("ten");
      };
    });
  };
  CHECK_THROWS_AS(run(), std::runtime_error);
}

TEST_CASE("a stop reaches all workers") {
  const auto start = std::chrono::steady_clock::now();
  StopSignal signal([&] { return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(100); });
  const auto run = [&] {
    parallel_for(2, 2, signal, [] {
      return [](std::size_t, StopProbe& stop) {
        for (;;) stop.tick(1000);
      };
    });
  };
  CHECK_THROWS_AS(run(), Interrupted);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
}

TEST_CASE("the stop function is not called again after it returned true") {
  int n_asked = 0;
  StopSignal signal([&] {
    ++n_asked;
    return true;
  });
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    signal.poll();
  }
  CHECK(n_asked == 1);
  CHECK(signal.stopped());
}

TEST_CASE("the caller polls while it waits for its helpers") {
  const auto start = std::chrono::steady_clock::now();
  StopSignal signal([&] { return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(100); });
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> helper_works = false;
  const auto run = [&] {
    parallel_for(2, 2, signal, [&] {
      return [&](std::size_t, StopProbe& stop) {
        if (std::this_thread::get_id() == caller) {
          while (!helper_works) std::this_thread::yield();
          return;  // the caller has nothing left to do but wait
        }
        helper_works = true;
        for (;;) stop.tick(1000);
      };
    });
  };
  CHECK_THROWS_AS(run(), Interrupted);
}

}  // namespace
