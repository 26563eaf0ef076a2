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
  std::optional<Seconds> bound{};  // the least time by the cuts of the topology (cut_bound.hpp)
  std::string no_bound{};          // why there is none
};

/// algbw = S / time. S is the larger of a device's input and output: P inputs for an all-gather, one input for the other kinds.
/// busbw = algbw times the part of S that must cross the links of a device: 2 (P-1)/P for all-reduce, (P-1)/P for all-gather, reduce-scatter and
/// all-to-all, 1 for broadcast, reduce and permute. It does not depend on P if links are the bound.
/// nullopt: the time is zero.
/// source: NCCL, nccl-tests, doc/PERFORMANCE.md
struct Bandwidths {
  BytesPerSecond algorithm, bus;
};
std::optional<Bandwidths> bandwidths_of(const CollectiveSummary& collective, Seconds time);

}  // namespace podsim
