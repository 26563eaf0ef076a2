#include "sim/base/thread_pool.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace podsim {

ThreadPool::ThreadPool(int threads) {
  const auto wanted = threads > 0 ? static_cast<std::size_t>(threads) : std::max<std::size_t>(1, std::thread::hardware_concurrency());
  try {
    for (std::size_t thread = 1; thread < wanted; ++thread) workers_.emplace_back([this, thread] { work(thread); });
  } catch (const std::system_error&) {  // the system has no more threads or no memory for their stacks: those that there are do the work
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  started_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::for_each(std::size_t count, const Body& body) {
  if (workers_.empty() || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  {
    const std::lock_guard lock{mutex_};
    body_ = &body;
    count_ = count;
    next_ = 0;
    thrown_ = nullptr;
    active_ = workers_.size();
    ++loop_;
  }
  started_.notify_all();
  drain(0);
  std::unique_lock lock{mutex_};
  finished_.wait(lock, [this] { return active_ == 0; });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void ThreadPool::work(std::size_t thread) {
  std::size_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      started_.wait(lock, [&] { return stopping_ || loop_ != seen; });
      if (stopping_) return;
      seen = loop_;
    }
    drain(thread);
    const std::lock_guard lock{mutex_};
    if (--active_ == 0) finished_.notify_one();
  }
}

void ThreadPool::drain(std::size_t thread) {
  try {
    for (std::size_t i = next_++; i < count_; i = next_++) (*body_)(i, thread);
  } catch (...) {
    const std::lock_guard lock{mutex_};
    if (!thrown_) thrown_ = std::current_exception();
  }
}

}  // namespace podsim
