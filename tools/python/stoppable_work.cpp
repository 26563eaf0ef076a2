#include "tools/python/stoppable_work.hpp"

#include <condition_variable>
#include <optional>
#include <thread>

#include "tools/python/interrupts.hpp"

namespace py = pybind11;

namespace podsim::python {

using namespace std::chrono_literals;

std::function<void(const std::string&)> StoppableWork::calling(py::object function) {
  return [this, function = std::move(function)](const std::string& what) {
    if (stop) return;
    const py::gil_scoped_acquire locked;
    try {
      function(what);
    } catch (py::error_already_set& error) {
      keep(error);
      stop = true;
    }
  };
}

void StoppableWork::keep(py::error_already_set error) {
  const std::scoped_lock lock{mutex_};
  if (!error_) error_ = std::make_unique<py::error_already_set>(std::move(error));
}

void StoppableWork::rethrow(bool told) {
  if (!error_ || (told && error_->matches(PyExc_KeyboardInterrupt))) return;
  error_->restore();
  error_.reset();
  throw py::error_already_set{};
}

/// On a thread of its own, while this one runs the handlers of signals in between.
void StoppableWork::perform_watched(const std::function<void()>& work) {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::thread worker{[&] {
    work();
    const std::scoped_lock lock{mutex};
    done = true;
    ended.notify_one();
  }};
  for (bool waiting = true; waiting;) {
    {
      const py::gil_scoped_release unlocked;
      std::unique_lock lock{mutex};
      waiting = !ended.wait_for(lock, 50ms, [&] { return done; });
    }
    if (waiting && PyErr_CheckSignals() != 0) {
      keep(py::error_already_set{});
      stop = true;
    }
  }
  worker.join();
}

void StoppableWork::perform(const std::function<void()>& work, bool on_main) {
  // A thread costs 150 us, as much as a small simulation, and is there only for programs with handlers of their own.
  if (on_main && !only_interrupt_is_handled()) return perform_watched(work);
  {
    std::optional<StopOnInterrupt> stopping;
    if (on_main) stopping.emplace(stop);
    const py::gil_scoped_release unlocked;
    work();
  }
  if (on_main && PyErr_CheckSignals() != 0) keep(py::error_already_set{});
}

}  // namespace podsim::python
