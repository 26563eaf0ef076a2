// What an operation of a profile is counted as when a step's time is split by kind, in the words that a simulated run uses.
#pragma once

#include <string>
#include <string_view>

#include "validation/calibration/importers/hlo_op.hpp"

namespace podsim {

/// matmul, attention, elementwise, copy, a collective (all-gather, ... permute), `collective` (an asynchronous one of which nothing tells the kind),
/// send (to other programs), host (infeed, outfeed), control (loops and calls, apart from what they contain), custom-call, other.
///
/// The opcode decides where it is a collective or a product, else hlo_category, else the opcode. A custom call is attention if its name, text or
/// category says so.
std::string step_category(const HloOp& op, std::string_view text, std::string_view hlo_category);

/// `all-gather-start.3`, `async-collective-done`, `copy-start.1`: the two ends of what runs beside other operations.
bool is_start(std::string_view name);
bool is_done(std::string_view name);
/// `all-gather.3` of either end.
std::string without_end(std::string_view name);

/// The name of the start that a done finishes: its first operand, "%all-gather-start.3"; else as the done's own name has it.
std::string start_of_done(std::string_view name, std::string_view text);

/// A start as the operation that it starts: its results are (operands, results, ...), the kind of a collective that does not tell it follows from
/// their sizes. Others as they are.
HloOp as_synchronous(HloOp op);

}  // namespace podsim
