// Collectives by their definition, on the arrays of all devices at once. Internal.
#pragma once

#include <vector>

#include "workloads/hlo_values/array_operation.hpp"

namespace podsim {

/// The groups of a collective as devices, replica * partitions + partition. Of several modes one written group is a group for each replica or
/// partition. Errors: ids beyond the devices; a device twice.
Expected<std::vector<std::vector<std::int64_t>>> collective_groups(const HloModule& module, const HloInstruction& instruction);
/// Likewise the pairs of a collective-permute.
Expected<std::vector<SourceTarget>> permute_pairs(const HloModule& module, const HloInstruction& instruction);

using CollectiveOperands = std::vector<std::vector<const HloArray*>>;  // [device][operand]; none: the device takes another branch

/// The results, [device]. `call` runs to_apply. Errors: shapes that do not fit; a group, or a pair, of which only some take part; more than `most_elements` in all
/// results.
Expected<std::vector<HloArrays>> collective_results(const HloModule& module, const HloInstruction& instruction, const CollectiveOperands& operands,
                                                    std::int64_t most_elements, HloArithmetic& arithmetic, const ArrayOperation::Call& call);

}  // namespace podsim
