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

/// A run with the points that it answers, or points alone: of a run that is known already, or that do not apply.
struct FinishedWork {
  std::optional<StoredRun> run;
  std::vector<PointOutcome> points;
};

/// What has been written.
struct WrittenWork {
  std::size_t points = 0, skipped = 0, runs = 0;
};

class Recorder {
 public:
  /// Calls `written` behind each commit, from the thread that writes. `own_thread`: work is written by a thread of its own, at most 0.1 s after it is
  /// added; otherwise by the caller of add(), at once.
  Recorder(SweepStore& store, std::string version, bool own_thread, WrittenWork before, std::function<void(const WrittenWork&)> written);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// From any thread.
  void add(FinishedWork work);
  /// Whether writing failed: nothing more is written.
  [[nodiscard]] bool failed() const;
  /// Writes what is left. Errors: the first of writing.
  Expected<WrittenWork> finish();

 private:
  void write_all();
  Status write(const std::vector<FinishedWork>& batch);

  SweepStore& store_;
  std::string version_;
  std::function<void(const WrittenWork&)> on_written_;
  WrittenWork written_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::vector<FinishedWork> waiting_;
  std::optional<Diagnostic> error_;
  bool finishing_ = false, failed_ = false;
  std::thread writer_;
};

}  // namespace podsim
