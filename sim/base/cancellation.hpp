// Cancellation: how running work is told to stop early, by Ctrl-C, a time limit or its caller.
#pragma once

#include <atomic>

#include "sim/base/diagnostic.hpp"

namespace podsim {

/// A view of a flag that another thread or a signal handler sets once. Every loop that may run for more than a few hundred milliseconds polls
/// requested(), which costs one relaxed load. The flag must outlive all views. A view without a flag is never cancelled.
class Cancellation {
 public:
  constexpr Cancellation() = default;
  constexpr Cancellation(const std::atomic<bool>* flag) : flag_{flag} {}  // NOLINT(google-explicit-constructor): a view, as std::span

  [[nodiscard]] bool requested() const { return flag_ != nullptr && flag_->load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* flag_ = nullptr;
};

/// The error of cancelled work. Only this function makes a Diagnostic of Cause::cancelled.
inline Diagnostic cancelled_work() { return {{}, "interrupted", Cause::cancelled}; }

}  // namespace podsim
