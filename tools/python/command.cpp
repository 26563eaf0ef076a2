// Commands, carried out in this process.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "tools/command/command.hpp"
#include "tools/command/options.hpp"
#include "tools/console/caller.hpp"
#include "tools/python/core.hpp"
#include "tools/python/interrupts.hpp"
#include "tools/report/comparison_report.hpp"
#include "topologies/system.hpp"
#include "workloads/scenario/known_objects.hpp"

namespace py = pybind11;

namespace podsim::python {

namespace {

using namespace std::chrono_literals;

/// An exception of a callback, from whatever thread, until the command has ended.
class Raised {
 public:
  void keep(py::error_already_set& error) {
    const std::scoped_lock lock{mutex_};
    if (!error_) error_ = std::make_unique<py::error_already_set>(error);
  }
  /// `interrupted`: the command has ended as Ctrl-C ends it, and the caller raises what is known. Ctrl-C may have come while a callback ran.
  void rethrow(bool interrupted) {
    if (!error_ || (interrupted && error_->matches(PyExc_KeyboardInterrupt))) return;
    error_->restore();
    error_.reset();
    throw py::error_already_set{};
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<py::error_already_set> error_;  // made and destroyed with the interpreter's lock held
};

/// One command: what it was given, what it came to.
struct Call {
  std::vector<std::string> words;
  std::atomic<bool> stop{false};
  std::ostringstream out, err;
  Caller caller;
  int status = exit_done;

  void perform() {
    Console console{out, err, false, &stop};
    console.caller = &caller;
    status = run_command(words, console);
  }
};

/// Performs the call on a thread of its own, while this one, Python's main thread, runs the handlers of signals in between. One that raises stops the
/// command.
void perform_watched(Call& call) {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::thread worker{[&] {
    call.perform();
    const std::scoped_lock lock{mutex};
    done = true;
    ended.notify_one();
  }};
  std::unique_ptr<py::error_already_set> signalled;
  for (bool waiting = true; waiting;) {
    {
      const py::gil_scoped_release unlocked;
      std::unique_lock lock{mutex};
      waiting = !ended.wait_for(lock, 50ms, [&] { return done; });
    }
    if (waiting && !signalled && PyErr_CheckSignals() != 0) {
      signalled = std::make_unique<py::error_already_set>();
      call.stop = true;
    }
  }
  worker.join();
  if (!signalled) return;
  if (call.status == exit_interrupted && signalled->matches(PyExc_KeyboardInterrupt)) return;  // told by the status; the caller raises
  signalled->restore();
  throw py::error_already_set{};
}

/// Performs the call without the interpreter's lock. `on_main`: on Python's main thread, which looks for signals. A thread costs 150 us, as much as a
/// small simulation, and is there only for programs with handlers of their own.
void perform(Call& call, bool on_main) {
  if (on_main && !only_interrupt_is_handled()) return perform_watched(call);
  {
    std::optional<StopOnInterrupt> stopping;
    if (on_main) stopping.emplace(call.stop);
    const py::gil_scoped_release unlocked;
    call.perform();
  }
  if (!on_main || PyErr_CheckSignals() == 0) return;
  if (call.status != exit_interrupted) throw py::error_already_set{};
  PyErr_Clear();  // told by the status; the caller raises
}

py::list errors_of(const std::vector<Diagnostic>& errors) {
  py::list all;
  for (const Diagnostic& error : errors)
    all.append(
        py::make_tuple(error.where.file, error.where.line, error.where.column, error.where.is_field, error.message, static_cast<int>(error.cause)));
  return all;
}

template <class T>
std::map<std::string, T, std::less<>> copies_of(const std::map<std::string, std::shared_ptr<T>>& objects) {
  std::map<std::string, T, std::less<>> copies;
  for (const auto& [name, object] : objects) copies.emplace(name, *object);
  return copies;
}

/// What a command came to, beside its text.
py::object value_of(const Caller& caller) {
  if (caller.run != nullptr) return py::cast(caller.run);
  if (caller.tuning != nullptr) return py::cast(caller.tuning);
  if (caller.comparison != nullptr) return py::cast(caller.comparison);
  if (caller.schedule != nullptr) return py::cast(caller.schedule);
  if (caller.machine != nullptr) return py::cast(caller.machine);
  return py::none();
}

py::tuple call_command(std::vector<std::string> words, const std::map<std::string, std::shared_ptr<Machine>>& machines,
                       const std::map<std::string, std::shared_ptr<Schedule>>& schedules,
                       const std::map<std::string, std::shared_ptr<SavedPlan>>& plans, const py::object& progress, bool on_main) {
  Call call;
  call.words = std::move(words);
  if (!machines.empty() || !schedules.empty() || !plans.empty())
    call.caller.known = std::make_shared<KnownObjects>(KnownObjects{copies_of(machines), copies_of(schedules), copies_of(plans)});
  Raised raised;
  if (!progress.is_none())
    call.caller.progress = [&](const std::string& what) {
      const py::gil_scoped_acquire locked;
      try {
        progress(what);
      } catch (py::error_already_set& error) {
        raised.keep(error);
        call.stop = true;
      }
    };
  perform(call, on_main);
  raised.rethrow(call.status == exit_interrupted);
  return py::make_tuple(call.status, call.out.str(), call.err.str(), errors_of(call.caller.errors), value_of(call.caller));
}

py::list options_of(const std::vector<std::string>& words) {
  std::vector<OptionSpec> options;
  std::ostringstream out;
  Caller caller;
  caller.options = &options;
  Console console{out, out};
  console.caller = &caller;
  run_command(words, console);
  py::list all;
  for (const OptionSpec& spec : options) {
    const char* const kind = spec.value.kind == OptionValue::Kind::flag ? "flag" : spec.value.kind == OptionValue::Kind::one ? "one" : "many";
    all.append(py::make_tuple(spec.long_name(), kind, spec.value.name, spec.value.otherwise, spec.value.choices, spec.help));
  }
  return all;
}

const System& system_of(const TuningAnswer& answer, std::size_t plan) { return answer.request.systems[answer.found.tuning.plans.at(plan).system]; }

py::dict mesh_of(const Mesh& mesh) {
  py::dict sizes;
  for (const MeshAxis& axis : mesh.axes()) sizes[py::str(axis.name)] = axis.size;
  return sizes;
}

}  // namespace

void bind_command(py::module_& module) {
  module.def(
      "call", &call_command, py::arg("words"), py::arg("machines"), py::arg("schedules"), py::arg("plans"), py::arg("progress"), py::arg("on_main"),
      "status, text, messages, errors, value of one command; the value: RunAnswer, TuningAnswer, ComparisonAnswer, Schedule, Machine, or None");
  module.def("options", &options_of, "name, kind, value, default, choices, help of each option of a command");
  module.def("usage", [](const std::string& verb) { return std::string{usage_of(verb)}; });

  py::class_<RunAnswer, std::shared_ptr<RunAnswer>>(module, "RunAnswer")
      .def(
          "json", [](const RunAnswer& answer) { return result_json(answer.run, answer.details); }, py::call_guard<py::gil_scoped_release>())
      .def(
          "table", [](const RunAnswer& answer) { return result_table(answer.run, answer.details); }, py::call_guard<py::gil_scoped_release>())
      .def("csv", [](const RunAnswer& answer) { return result_csv({answer.run.row}); })
      .def_property_readonly("makespan_s", [](const RunAnswer& answer) { return answer.run.row.result.makespan_s; })
      .def_property_readonly("interrupted", [](const RunAnswer& answer) { return answer.run.timeline.interrupted; })
      .def_property_readonly("simulated_ps", [](const RunAnswer& answer) { return answer.run.timeline.makespan.count(); })
      .def_property_readonly("finished", [](const RunAnswer& answer) { return answer.run.timeline.finished; })
      .def_property_readonly("activities", [](const RunAnswer& answer) { return answer.run.model.deployment.activities(); })
      .def("device_order", [](const RunAnswer& answer) { return jax_device_ids(*answer.run.system); })
      .def("mesh", [](const RunAnswer& answer) { return mesh_of(answer.run.system->mesh); })
      .def("timeline", [](std::shared_ptr<RunAnswer> answer) { return timeline_of(std::move(answer)); });

  py::class_<ComparisonReport, std::shared_ptr<ComparisonReport>>(module, "ComparisonAnswer")
      .def("json", &comparison_json, py::call_guard<py::gil_scoped_release>())
      .def("table", &comparison_table, py::call_guard<py::gil_scoped_release>())
      .def("csv", [](const ComparisonReport& comparison) { return result_csv(comparison.rows); });

  py::class_<TuningAnswer, std::shared_ptr<TuningAnswer>>(module, "TuningAnswer")
      .def(
          "json", [](const TuningAnswer& answer) { return tuning_json(answer.found); }, py::call_guard<py::gil_scoped_release>())
      .def(
          "table", [](const TuningAnswer& answer) { return tuning_table(answer.found); }, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("interrupted", [](const TuningAnswer& answer) { return answer.found.tuning.interrupted; })
      .def("__len__", [](const TuningAnswer& answer) { return answer.plans.size(); })
      .def("plan", [](const TuningAnswer& answer, std::size_t plan) { return answer.plans.at(plan); })
      .def("device_order", [](const TuningAnswer& answer, std::size_t plan) { return jax_device_ids(system_of(answer, plan)); })
      .def("mesh", [](const TuningAnswer& answer, std::size_t plan) { return mesh_of(system_of(answer, plan).mesh); });
}

}  // namespace podsim::python
