// The collectives of a product as schedules of their own, for bounds where no formula is close.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topologies/system.hpp"
#include "workloads/part.hpp"
#include "workloads/tuning/bound.hpp"

namespace podsim {

/// One of the equal collectives that a GEMM of a part does along an axis.
struct LoneCollective {
  std::size_t gemm = 0;  // in gemms_of(part)
  int axis = 0;          // 0: row, 1: col
  std::string key;       // equal for collectives that take equally long on systems with equal rings
  Schedule schedule;
};

/// Those of `collective` and `meshslice` along axes that fold several unlike dimensions, or along any where the part names a lowering, if all of these dimensions are the same for
/// all their chips: rings, or pairs of chips. Then all devices begin and end a collective together, and those of an axis run one after the other on links of their own.
/// Empty: no such axis, or a part that cannot be built. Cost: that of building the part.
std::vector<LoneCollective> lone_collectives(const WorkloadPart& part, const PartOptions& options, const System& system,
                                             const std::optional<AxisRings>& rings);

/// What a collective takes at least in its part, if it takes `alone` by itself: half a percent less. It is slowed down by what else uses the memory,
/// and never helped; but of two chunks that are ready within a picosecond, another one may go first there (0.1 % in 1 of 8,000 random cases).
inline Seconds least_in_part(Picoseconds alone) { return 0.995 * to_seconds(alone); }

}  // namespace podsim
