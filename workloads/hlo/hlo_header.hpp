// The header of a module. Internal to the reader.
#pragma once

#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// From behind "HloModule" to the end of the line: `NAME, is_scheduled=true, num_partitions=8, …`.
Status read_hlo_header(HloCursor& cursor, HloModule& module);
/// {{0}: (3, {1}, may-alias), ..}: outputs in the places of parameters, or of operands.
Status read_hlo_aliases(HloCursor& cursor, std::vector<HloAlias>& aliases);

}  // namespace podsim
