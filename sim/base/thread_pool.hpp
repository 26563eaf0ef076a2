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
  /// The caller of for_each() and threads - 1 more; 0 or less: as many as the machine has. Fewer, where the system gives no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t threads() const { return workers_.size() + 1; }

  /// Calls body(i, thread) once for every i in [0, count), thread in [0, threads()); returns when all are done. Not reentrant. Nothing throws on purpose,
  /// but memory may run out: what one body throws is thrown again here, once the other threads have no more to do.
  using Body = std::function<void(std::size_t, std::size_t)>;
  void for_each(std::size_t count, const Body& body);

 private:
  void work(std::size_t thread);
  void drain(std::size_t thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable started_, finished_;
  const Body* body_ = nullptr;
  std::exception_ptr thrown_;  // the first of this loop
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::size_t loop_ = 0;    // counts for_each() calls; a worker wakes when it changes
  std::size_t active_ = 0;  // workers that have not finished this loop
  bool stopping_ = false;
};

}  // namespace podsim
