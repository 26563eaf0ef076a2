// The category of a profiled operation when a step's time is split by kind; the same categories as of a simulated run.
#pragma once

#include <string>
#include <string_view>

#include "validation/calibration/importers/hlo_op.hpp"

namespace podsim {

/// matmul, attention, elementwise, copy, a collective (all-gather, ... permute), `collective` (an asynchronous one of unknown kind), send (to other
/// programs), host (infeed, outfeed), control (loops and calls, without what they contain), custom-call, other.
///
/// Decided by the opcode for collectives and products, else by hlo_category, else by the opcode. A custom call is attention if its name, text or
/// category says so.
std::string step_category(const HloOp& op, std::string_view text, std::string_view hlo_category);

/// Whether the name is that of one end of an asynchronous operation: `all-gather-start.3`, `async-collective-done`, `copy-start.1`.
bool is_start(std::string_view name);
bool is_done(std::string_view name);
/// `all-gather-update.3`: in between, where the core turned to it.
bool is_update(std::string_view name);
/// `all-gather.3` for either end.
std::string without_end(std::string_view name);

/// The name of the start that belongs to a done or update: its first operand, "%all-gather-start.3", of a send's or receive's "%send.3"; else derived from
/// its own name.
std::string start_of_done(std::string_view name, std::string_view text);

/// Converts a start to the operation that it starts: the results of a start are (operands, results, ...); if the kind of collective is not stated, it
/// follows from their sizes. Other operations are returned unchanged.
HloOp as_synchronous(HloOp op);

}  // namespace podsim
