#include "tools/python/interrupts.hpp"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace podsim::python {

namespace {

// What a handler of signals may look at: there is one handler in a process, and one main thread of Python.
std::atomic<std::atomic<bool>*> to_stop{nullptr};
static_assert(std::atomic<std::atomic<bool>*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
struct sigaction of_python {};

void on_interrupt(int signal) {
  if (std::atomic<bool>* const stop = to_stop.load(std::memory_order_relaxed)) stop->store(true, std::memory_order_relaxed);
  of_python.sa_handler(signal);
}

bool is_ours(const struct sigaction& action) { return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == on_interrupt; }

}  // namespace

bool only_interrupt_is_handled() {
  struct sigaction interrupt {};
  if (sigaction(SIGINT, nullptr, &interrupt) != 0 || (interrupt.sa_flags & SA_SIGINFO) != 0) return false;
  const auto pythons = is_ours(interrupt) ? of_python.sa_handler : interrupt.sa_handler;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action {};  // all signals with a handler in Python have the same one in C
    if (signal != SIGINT && sigaction(signal, nullptr, &action) == 0 && action.sa_handler == pythons) return false;
  }
  const py::module_ module = py::module_::import("_signal");  // as `signal`, whose functions make numbers enumerators
  return module.attr("getsignal")(SIGINT).is(module.attr("default_int_handler"));
}

StopOnInterrupt::StopOnInterrupt(std::atomic<bool>& stop) : outer_{to_stop.load()} {
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  if (!is_ours(now)) of_python = now;  // before anybody can be called who reads it
  to_stop = &stop;
  if (is_ours(now)) return;
  struct sigaction ours = of_python;
  ours.sa_handler = on_interrupt;
  sigaction(SIGINT, &ours, nullptr);
}

StopOnInterrupt::~StopOnInterrupt() {
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  if (outer_ == nullptr && is_ours(now)) sigaction(SIGINT, &of_python, nullptr);  // unless a callback has set another
  to_stop = outer_;
}

}  // namespace podsim::python
