#include "tools/sweep/recorder.hpp"

#include <chrono>
#include <utility>

namespace podsim {

namespace {

constexpr std::chrono::milliseconds longest_wait{100};

}  // namespace

Recorder::Recorder(SweepStore& store, bool own_thread, std::function<void(const WrittenWork&)> written)
    : store_{store}, on_written_{std::move(written)} {
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

Status Recorder::finish() {
  if (writer_.joinable()) {
    {
      const std::scoped_lock lock{mutex_};
      finishing_ = true;
    }
    added_.notify_one();
    writer_.join();
  }
  if (error_) return *error_;
  return success();
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
  if (auto ok = store_.write(batch); !ok) return ok;
  if (on_written_) on_written_(store_.written());
  return success();
}

}  // namespace podsim
