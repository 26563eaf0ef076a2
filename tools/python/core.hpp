// The extension _core: commands carried out in this process, with values in and out. The package `podsim` (podsim/*.py) makes of it what people call.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "sim/base/expected.hpp"
#include "tools/command/answers.hpp"

namespace podsim::python {

/// Throws Python's podsim.InputError with the diagnostic's place, or the exception of its cause (cancelled: KeyboardInterrupt; environment: OSError).
[[noreturn]] void raise(const Diagnostic& diagnostic);

/// (file, line, column, whether file is a field, message, cause): what podsim._errors.from_diagnostics() takes. The cause by its name, "input" where is_of_input().
pybind11::tuple tuple_of(const Diagnostic& diagnostic);

template <class T>
T value_or_raise(Expected<T> value) {
  if (!value) raise(value.error());
  return *std::move(value);
}

void bind_builder(pybind11::module_& module);   // builder.cpp: ScheduleWriter and what it takes, execute()
void bind_command(pybind11::module_& module);   // command.cpp: call(), options(), usage(); the answers of verbs
void bind_objects(pybind11::module_& module);   // objects.cpp: Machine, Schedule, Plan
void bind_sweep(pybind11::module_& module);     // sweep.cpp: Sweep, run_batch(), run_sweep()
void bind_timeline(pybind11::module_& module);  // timeline.cpp: Timeline

/// What was run as a timeline that shares the engine's memory. `run` must hold a complete timeline.
pybind11::object timeline_of(std::shared_ptr<const RunAnswer> answer);

}  // namespace podsim::python
