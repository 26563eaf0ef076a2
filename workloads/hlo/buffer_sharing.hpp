// Which operand's place the result of an instruction may take, by what the instruction does.
#pragma once

#include <cstddef>
#include <vector>

#include "workloads/hlo/hlo_header.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim::hlo_buffers {

/// The outputs that stand in the places of operands (`parameter`), as output_to_operand_aliasing says. None where the text is none of XLA's.
std::vector<HloAlias> operand_aliases_of(const HloAttributes& attributes);

/// Whether it writes into its first operand, which XLA copies before it where the old value is needed: dynamic-update-slice, a scatter into one array.
/// Source: openxla/xla, HloDataflowAnalysis::IsInPlaceOperation; kept by the compiler of JAX 0.10.2 for GPUs, which writes such a copy.
bool updates_in_place(const HloInstruction& instruction);

/// Of each leaf of a fused computation's result the parameter that it updates in place, or -1; also through a fusion of one array inside it.
std::vector<int> updated_parameters(const HloModule& module, const HloComputation& fused);

/// A leaf of a result that may be written over an operand, or a parameter of a fused computation.
struct Overwrite {
  std::size_t operand = 0, leaf = 0;
  friend bool operator==(const Overwrite&, const Overwrite&) = default;
};
/// What a fused computation may write over, parameters in their order: each element is only read where that of the leaf is made. A reduction among
/// the results is made before the others are written, so that it may read what they write over; a scatter writes into its arrays, a sort over what it sorts. Beside a result that is
/// transposed another one lies in the place only of what has its dimensions and layout (the compiler of JAX 0.10.2: svd_h100, and the same without transposing).
/// Source: openxla/xla, xla/service/gpu/buffer_sharing.cc, FusionCanShareBufferHint.
std::vector<Overwrite> overwrites_of_fused(const HloComputation& fused);

/// The same of any other instruction whose result has this many leaves: elementwise work, all-reduce, sort, scatter. Source: openxla/xla,
/// hlo_dataflow_analysis.cc, CanShareOperandBufferWithUser, and CanShareBufferHint.
std::vector<Overwrite> overwrites_of(const HloInstruction& instruction, std::size_t leaves);

}  // namespace podsim::hlo_buffers
