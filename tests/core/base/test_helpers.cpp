#include "base/helpers.hpp"

#include <set>
#include <thread>

#include "base/parallel.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

// Work that ends when all threads of a call have begun theirs; returns who they were.
std::set<std::thread::id> meet(std::size_t n_threads) {
  std::mutex mutex;
  std::condition_variable came;
  std::set<std::thread::id> ids;
  StopSignal signal({});
  parallel_for(n_threads, n_threads, signal, [&] {
    return [&](std::size_t, StopProbe&) {
      std::unique_lock lock(mutex);
      ids.insert(std::this_thread::get_id());
      came.notify_all();
      came.wait(lock, [&] { return ids.size() == n_threads; });
    };
  });
  return ids;
}

TEST_CASE("each job has a thread of its own") {
  CHECK(meet(4).size() == 4);
  CHECK(meet(9).size() == 9);
  CHECK(meet(2).size() == 2);
}

TEST_CASE("threads serve again") {
  std::set<std::thread::id> all;
  for (int i = 0; i < 200; ++i) all.merge(meet(3));
  CHECK(all.size() < 200);
}

TEST_CASE("calls at the same time, and within a call, do not wait for each other") {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([] {
      StopSignal signal({});
      parallel_for(3, 3, signal, [] { return [](std::size_t, StopProbe&) { CHECK(meet(5).size() == 5); }; });
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
