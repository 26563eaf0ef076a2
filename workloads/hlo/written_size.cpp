#include "workloads/hlo/written_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "workloads/hlo/hlo_leaves.hpp"

namespace podsim {

namespace {

/// Instructions that a computation stands for, in a function and in the program of the entry, which has calls; and how deep it calls.
struct WrittenSize {
  double in_function = 0, in_program = 0;
  int depth = 0;
};

/// What one instruction adds, without itself.
WrittenSize added_by(const HloModule& module, const HloComputation& computation, const HloInstruction& instruction, const std::vector<WrittenSize>& sizes,
                     const HloTripCounts& trip_counts) {
  WrittenSize added;
  const bool is_loop = instruction.opcode == HloOpcode::while_;
  const bool is_written = is_loop || instruction.opcode == HloOpcode::call || instruction.opcode == HloOpcode::conditional;
  double trips = 0;
  if (is_loop)
    if (const auto told = trip_count_of(module, computation, instruction, trip_counts)) trips = static_cast<double>(told->count);  // else told where it is written
  for (const HloCall& call : instruction.calls) {
    const WrittenSize& callee = sizes[static_cast<std::size_t>(call.computation)];
    added.depth = std::max(added.depth, callee.depth + 1);
    if (!is_written || (is_loop && call.role != HloRole::body)) continue;
    added.in_function = std::max(added.in_function, is_loop ? trips * (callee.in_function + 1) : callee.in_function);
    added.in_program = std::max(added.in_program, is_loop ? trips + callee.in_function : callee.in_program);
  }
  return added;
}

}  // namespace

Status check_written_size(const HloModule& module, const HloTripCounts& trip_counts) {
  const auto problem = [&](const HloInstruction& at, const std::string& what) { return Diagnostic{module.where(at), at.name + ": " + what}; };
  std::vector<WrittenSize> sizes(module.computations.size());  // callees stand before their callers
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    const HloComputation& computation = module.computations[c];
    for (const HloInstruction& instruction : computation.instructions) {
      if (const std::size_t arrays = count_leaves(*instruction.shape); arrays > widest_hlo_value)
        return problem(instruction, fmt::format("expected at most {} arrays in a value, found {}", widest_hlo_value, arrays));
      const WrittenSize added = added_by(module, computation, instruction, sizes, trip_counts);
      sizes[c].in_function += 1 + added.in_function;
      sizes[c].in_program += 1 + added.in_program;
      sizes[c].depth = std::max(sizes[c].depth, added.depth);
      if (added.depth > deepest_hlo_calls) return problem(instruction, fmt::format("expected calls at most {} deep", deepest_hlo_calls));
      if (static_cast<int>(c) == module.entry && sizes[c].in_program > static_cast<double>(most_hlo_tasks))
        return problem(instruction, fmt::format("expected at most {} tasks, found {:.3g}: loops within loops and calls are written out", most_hlo_tasks, sizes[c].in_program));
    }
  }
  return success();
}

}  // namespace podsim
