// Threads that stay alive between loops: a schedule is thousands of short loops.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace podsim {

class ThreadPool {
 public:
  /// The thread that calls for_each() and `threads` - 1 workers; 0 or less: one thread per CPU. Fewer workers if the system refuses more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t threads() const { return workers_.size() + 1; }

  /// Calls body(i, thread) once for every i in [0, count), thread in [0, threads()); returns when all calls are done. Not reentrant. If a body throws
  /// (memory may run out), for_each() rethrows the exception once the other threads have stopped.
  using Body = std::function<void(std::size_t, std::size_t)>;
  void for_each(std::size_t count, const Body& body);

 private:
  void work(std::size_t thread);
  void drain(std::size_t thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable started_, finished_;
  const Body* body_ = nullptr;
  std::exception_ptr thrown_;  // the first exception of this loop
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::size_t loop_ = 0;    // counts for_each() calls; a worker wakes when it changes
  std::size_t active_ = 0;  // workers that have not finished this loop
  bool stopping_ = false;
};

}  // namespace podsim
