// Work of the simulator that Ctrl-C, or a callback that raises, stops.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace podsim::python {

class StoppableWork {
 public:
  std::atomic<bool> stop{false};  // for the work's Cancellation

  /// A function of C++ that calls one of Python from any thread. What it raises stops the work, and is kept.
  std::function<void(const std::string&)> calling(pybind11::object function);

  /// Does the work without the interpreter's lock. `on_main`: the caller is Python's main thread, which looks for signals. A handler that raises stops
  /// the work. Afterwards it is rethrow()'s turn.
  void perform(const std::function<void()>& work, bool on_main);

  /// Throws what a callback or a handler has raised. `told`: the caller raises what is known, so KeyboardInterrupt is not thrown.
  void rethrow(bool told);

 private:
  void perform_watched(const std::function<void()>& work);
  void keep(pybind11::error_already_set error);

  std::mutex mutex_;
  std::unique_ptr<pybind11::error_already_set> error_;  // made and destroyed with the interpreter's lock held
};

}  // namespace podsim::python
