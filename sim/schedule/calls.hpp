// Calls written out, and functions on their own.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Whether any program calls a function.
bool has_calls(const Schedule& schedule);

/// The same schedule without calls: each becomes a join on the core (LocalKind::begin_call) that waits for the Call's edges and for the core task before it,
/// the tasks of the function, and one (end_call) that waits for all of them, for which everything that waits for the Call waits, and the core task behind it. Each call has scratch
/// buffers of its own. Labels are those of the Call and of the task; what a Call recomputes, all its tasks recompute. Collectives of lowered tasks count on behind those of the program.
/// The schedule must be well-shaped; lowered or not. Cost O(tasks of the result); what is kept of a schedule that is moved here is not copied.
Schedule inline_calls(Schedule schedule);

/// Some of its calls, [program][task].
using ChosenCalls = std::vector<std::vector<bool>>;
/// The same for these calls; the others stay.
Schedule inline_calls(Schedule schedule, const ChosenCalls& chosen);

/// How many tasks that has, without writing them. Cost O(tasks as they are).
double tasks_written_out(const Schedule& schedule);
double tasks_written_out(const Schedule& schedule, const ChosenCalls& chosen);

/// The first program that calls a function; nullopt: none does.
std::optional<std::size_t> caller_of(const Schedule& schedule, std::size_t function);

/// Which parameters a function writes.
std::vector<bool> written_parameters(const Function& function);

/// One call of a lowered function on the devices of a program: what its time, traffic and memory are found from.
Schedule schedule_of_call(const Schedule& schedule, std::size_t program, std::size_t function);

}  // namespace podsim
