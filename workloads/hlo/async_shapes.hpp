// Whether the shapes of an asynchronous operation follow from its operands and from each other: of its -start, -update and -done, of send and recv.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// As shape_problem(), of an instruction that is a phase, a send or a recv. A -start holds its operands and the result, which is checked as that of the whole operation:
///
///   all-reduce-start            the result, or as any other
///   copy-start                  (result, operand, u32[])
///   any other                   ((operands), result, ..), of one operand also (operand, result, ..)
///   -update                     what was started
///   -done                       the result
///   send, recv                  (what is sent or received, u32[], token[]), of that and a token, or of a token; recv-done (that, token), send-done token
///
/// Where a -start calls the operation (calls=), what that computation gives is checked when the module is linked (call_shapes.hpp).
std::optional<std::string> async_shape_problem(const HloInstruction& instruction, std::span<const HloShape* const> operands);

}  // namespace podsim
