// Refuses a thread that calls into an object it is already inside of: it would wait for itself for ever.
// That happens when a callback of the call (a signal handler, say) uses the object again.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace onlineforest {

class ReentryGuard {
 public:
  explicit ReentryGuard(const void* object) {
    if (std::ranges::find(entered(), object) != entered().end()) {
      throw std::runtime_error("this forest is in the middle of a call; a signal handler cannot use it");
    }
    entered().push_back(object);
  }
  ~ReentryGuard() { entered().pop_back(); }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;

 private:
  static std::vector<const void*>& entered() {
    thread_local std::vector<const void*> objects;
    return objects;
  }
};

}  // namespace onlineforest
