// Writes what threads finish into the store, a batch at a time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tools/sweep/store.hpp"

namespace podsim {

class Recorder {
 public:
  /// Calls `written` behind each commit, from the thread that writes. `own_thread`: work is written by a thread of its own, at most 0.1 s after it is
  /// added; otherwise by the caller of add(), at once.
  Recorder(SweepStore& store, bool own_thread, std::function<void(const WrittenWork&)> written);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// From any thread.
  void add(FinishedWork work);
  /// Whether writing failed: nothing more is written.
  [[nodiscard]] bool failed() const;
  /// Writes what is left. Errors: the first of writing.
  Status finish();

 private:
  void write_all();
  Status write(const std::vector<FinishedWork>& batch);

  SweepStore& store_;
  std::function<void(const WrittenWork&)> on_written_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::vector<FinishedWork> waiting_;
  std::optional<Diagnostic> error_;
  bool finishing_ = false, failed_ = false;
  std::thread writer_;
};

}  // namespace podsim
