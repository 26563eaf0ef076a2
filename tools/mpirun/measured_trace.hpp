// The trace of a run over MPI: the forms of `podsim run --trace`, with measured times.
#pragma once

#include <string>

#include "sim/engine/timeline.hpp"
#include "sim/machine/machine.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Errors: a name that ends in neither .json, .json.gz nor .xplane.pb.
Status check_trace_name(const std::string& path);

/// Writes every device. The machine says what a trace tells of its devices; they are laid out as the schedule's mesh, so `hops` are steps on that. Errors: a mesh that
/// the machine has no slice for; a file that cannot be written.
Status write_measured_trace(const std::string& path, const Schedule& lowered, const Machine& machine, const Timeline& timeline);

}  // namespace podsim
