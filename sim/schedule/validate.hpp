// Proofs about a schedule: it is well-shaped, all transfers match, and there are no races and no deadlocks.
#pragma once

#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// All problems of a schedule. If it is matched and race-free, every legal order of execution gives the same bits.
struct Validation {
  std::vector<Diagnostic> shapes;     // ranks, extents, element counts, roles, edges to later tasks, overlapping device sets, ...
  std::vector<Diagnostic> unmatched;  // halves without a partner, guards that disagree
  std::vector<Diagnostic> races;      // two tasks touch overlapping regions, one writes, without happens-before; or a task overwrites what it reads
  std::vector<Diagnostic> deadlocks;  // a cycle of waits across devices; the message names devices and tasks
  bool cancelled = false;             // the work was cancelled: the lists are incomplete
  [[nodiscard]] bool ok() const { return shapes.empty() && unmatched.empty() && races.empty() && deadlocks.empty() && !cancelled; }
  [[nodiscard]] std::vector<Diagnostic> all() const;
};

/// The problems visible without unrolling, all of them: ranks and counts of regions, operands that do not fit, dtypes, unknown buffers and tasks,
/// edges to later tasks or to halves that do not exist, numbers that overflow. Cost O(program tasks).
std::vector<Diagnostic> check_shapes(const Schedule& schedule);

/// Checks shapes first; a schedule with wrong shapes is not unrolled. At most 20 diagnostics of each sort, then a count.
/// Cost: unrolling, plus find_races().
Validation validate(const Schedule& lowered, Cancellation stop = {});

/// Why an edge of a schedule is needed.
enum class EdgePurpose {
  implied,   // redundant: other edges order the same two tasks (not in the transitive reduction)
  ordering,  // without it there is a race (`race` names both tasks)
  timing,    // proven benign: without it the schedule is still race-free; the edge only limits run-ahead or buffers
};
struct EdgeAudit {
  std::size_t program = 0;
  TaskId task;
  std::size_t edge = 0;  // position in Task::after
  EdgePurpose purpose = EdgePurpose::implied;
  Diagnostic race;
};

/// Removes each edge in turn and validates. Cost O(edges) validations: for small meshes. The schedule must be valid (an assert).
/// Error: cancelled_work().
Expected<std::vector<EdgeAudit>> audit_edges(const Schedule& lowered, Cancellation stop = {});

}  // namespace podsim
