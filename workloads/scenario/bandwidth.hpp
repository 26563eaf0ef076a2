// The bandwidths of a collective, as nccl-tests defines them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/quantity.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// A problem that is one collective.
struct CollectiveSummary {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::string axes;          // "row,col"
  Bytes input;               // on each device; broadcast: the root's
  std::int64_t devices = 1;  // of one group: along the axes
};

/// algbw = S / time, where S is the larger of a device's input and output: P inputs of an all-gather, one input of any other.
/// busbw = algbw times the part of S that crosses the links of a device at least: 2 (P-1)/P of an all-reduce, (P-1)/P of an all-gather, a
/// reduce-scatter and an all-to-all, 1 of a broadcast, a reduce and a permute. It does not depend on P where links are the bound.
/// Nothing: no time passes.
/// source: NCCL, nccl-tests, doc/PERFORMANCE.md
struct Bandwidths {
  BytesPerSecond algorithm, bus;
};
std::optional<Bandwidths> bandwidths_of(const CollectiveSummary& collective, Seconds time);

}  // namespace podsim
