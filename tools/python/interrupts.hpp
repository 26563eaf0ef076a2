// Ctrl-C while a command works on Python's main thread, which runs the handlers of signals only between instructions of Python.
#pragma once

#include <atomic>
#include <csignal>

namespace podsim::python {

/// Whether Ctrl-C raises KeyboardInterrupt, as it does unless somebody has changed that, and no other of the signals 1 to 31 has a handler in Python. Only
/// then is StopOnInterrupt all that a command needs. Needs the interpreter's lock, on Python's main thread. About 5 us.
bool only_interrupt_is_handled();

/// While it lives, Ctrl-C sets `stop`, and is noted by Python as always. On Python's main thread; may be nested, the innermost counts.
class StopOnInterrupt {
 public:
  explicit StopOnInterrupt(std::atomic<bool>& stop);
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  std::atomic<bool>* outer_;
};

}  // namespace podsim::python
