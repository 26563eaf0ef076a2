#include "tools/sweep/recorder.hpp"

#include <chrono>
#include <utility>

namespace podsim {

namespace {

constexpr std::chrono::milliseconds longest_wait{100};

}  // namespace

Recorder::Recorder(SweepStore& store, std::string version, bool own_thread, WrittenWork before, std::function<void(const WrittenWork&)> written)
    : store_{store}, version_{std::move(version)}, on_written_{std::move(written)}, written_{before} {
  if (own_thread) writer_ = std::thread{[this] { write_all(); }};
}

Recorder::~Recorder() {
  if (writer_.joinable()) static_cast<void>(finish());
}

void Recorder::add(FinishedWork work) {
  if (!writer_.joinable()) {
    if (failed_) return;
    if (auto ok = write({std::move(work)}); !ok) failed_ = true, error_ = ok.error();
    return;
  }
  bool first = false;
  {
    const std::scoped_lock lock{mutex_};
    first = waiting_.empty();
    waiting_.push_back(std::move(work));
  }
  if (first) added_.notify_one();
}

bool Recorder::failed() const {
  const std::scoped_lock lock{mutex_};
  return failed_;
}

Expected<WrittenWork> Recorder::finish() {
  if (writer_.joinable()) {
    {
      const std::scoped_lock lock{mutex_};
      finishing_ = true;
    }
    added_.notify_one();
    writer_.join();
  }
  if (error_) return *error_;
  return written_;
}

void Recorder::write_all() {
  std::unique_lock lock{mutex_};
  for (;;) {
    added_.wait(lock, [this] { return finishing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    // What finishes within a moment is one transaction.
    added_.wait_for(lock, longest_wait, [this] { return finishing_; });
    const std::vector<FinishedWork> batch = std::exchange(waiting_, {});
    if (failed_) continue;
    lock.unlock();
    const Status ok = write(batch);
    lock.lock();
    if (!ok) failed_ = true, error_ = ok.error();
  }
}

Status Recorder::write(const std::vector<FinishedWork>& batch) {
  for (const FinishedWork& work : batch) {
    if (work.run) {
      if (auto ok = store_.add(*work.run, version_); !ok) return ok;
      ++written_.runs;
    }
    for (const PointOutcome& point : work.points) {
      if (auto ok = store_.add(point); !ok) return ok;
      ++written_.points;
      if (!point.reason.empty()) ++written_.skipped;
    }
  }
  if (auto ok = store_.commit(written_.points, written_.runs); !ok) return ok;
  if (on_written_) on_written_(written_);
  return success();
}

}  // namespace podsim
