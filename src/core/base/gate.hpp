// Lets many readers or one writer into an object. Knows nothing of the object.
//
// A thread that is already inside gets an exception, because it would wait for itself forever. That happens when a
// callback of a call, such as a signal handler, uses the object again.
#pragma once

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <vector>

namespace onlineforest {

class Gate {
  // Throws std::runtime_error if this thread is inside.
  class Entry {
   public:
    explicit Entry(const Gate& gate) {
      if (std::ranges::find(entered(), &gate) != entered().end()) {
        throw std::runtime_error("this forest is in the middle of a call; a signal handler cannot use it");
      }
      entered().push_back(&gate);
    }
    ~Entry() { entered().pop_back(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    // The gates this thread is inside of, in the order it entered them.
    static std::vector<const Gate*>& entered() {
      thread_local std::vector<const Gate*> gates;
      return gates;
    }
  };

  template <class Lock>
  class Pass {
   public:
    explicit Pass(const Gate& gate) : entry_(gate), lock_(gate.mutex_) {}

   private:
    Entry entry_;
    Lock lock_;
  };

 public:
  using Reading = Pass<std::shared_lock<std::shared_mutex>>;
  using Writing = Pass<std::unique_lock<std::shared_mutex>>;

  // Waits until no one writes. The pass lasts as long as the object that is returned.
  [[nodiscard]] Reading reading() const { return Reading(*this); }

  // Waits until no one reads or writes.
  [[nodiscard]] Writing writing() { return Writing(*this); }

 private:
  mutable std::shared_mutex mutex_;
};

}  // namespace onlineforest
