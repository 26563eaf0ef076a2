// How long work is told to end early: Ctrl-C, a time limit, a caller that has lost interest.
#pragma once

#include <atomic>

#include "sim/base/diagnostic.hpp"

namespace podsim {

/// A view of a flag that somebody else sets once. Every loop that may run for more than a few hundred milliseconds asks requested(), which
/// costs one relaxed load. The flag outlives all views. Without a flag nothing is ever cancelled.
class Cancellation {
 public:
  constexpr Cancellation() = default;
  constexpr Cancellation(const std::atomic<bool>* flag) : flag_{flag} {}  // NOLINT(google-explicit-constructor): a view, as std::span

  [[nodiscard]] bool requested() const { return flag_ != nullptr && flag_->load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* flag_ = nullptr;
};

/// The error of work that was told to end and has no result. Nobody else makes a Diagnostic of Cause::cancelled.
inline Diagnostic cancelled_work() { return {{}, "interrupted", Cause::cancelled}; }

}  // namespace podsim
