// A pool of scratch memory that outlives a call. Must not know the work that uses it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace onlineforest {

template <class T>
class Pool {
 public:
  // Holds an item; its destructor returns the item to the pool.
  class Loan {
   public:
    Loan(Pool& pool, std::unique_ptr<T> item) : pool_(&pool), item_(std::move(item)) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (item_) pool_->put(std::move(item_));
    }
    T& operator*() const { return *item_; }

   private:
    Pool* pool_;
    std::unique_ptr<T> item_;
  };

  // Lends an idle item, or a new one if all are in use.
  [[nodiscard]] Loan lend() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      idle_.reserve(++n_items_);  // so that returning an item cannot fail
      return Loan(*this, std::make_unique<T>());
    }
    std::unique_ptr<T> item = std::move(idle_.back());
    idle_.pop_back();
    return Loan(*this, std::move(item));
  }

 private:
  void put(std::unique_ptr<T> item) noexcept {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(item));
  }

  std::mutex mutex_;
  std::size_t n_items_ = 0;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace onlineforest
