// Detects a thread that calls into an object while a call of its own on that object is in progress. Must not know the
// objects.
//
// Such a call would deadlock on the lock of the object. It happens when a signal handler, which runs during a call,
// uses the object.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace onlineforest {

class ReentryGuard {
 public:
  explicit ReentryGuard(const void* object) {
    if (std::ranges::find(entered(), object) != entered().end()) {
      throw std::runtime_error("this forest is in the middle of a call; a signal handler must not use it");
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
