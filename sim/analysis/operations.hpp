// What a device did with its time, by operation: the products, memory traffic and collectives that a schedule is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/node_activity.hpp"

namespace podsim {

/// All occurrences on one device of tasks that differ in their slice alone ("ff1: gather W s0", "... s1"). A Collective is one occurrence, however
/// many tasks it was lowered to; a Shift, Send or Recv that an algorithm wrote is one each.
struct OperationMetrics {
  std::string name;           // the label, without slice
  std::string_view category;  // matmul, attention, elementwise, copy, send, or the name of a CollectiveKind (of a Shift: permute)
  std::int64_t count = 0;
  Picoseconds busy;        // the core is, with it
  Picoseconds exposed;     // the core is idle, and this is what it waits for (exposed_by())
  Picoseconds overlapped;  // it is in flight while the core is busy with anything
  MatmulExtents extents;   // of one occurrence of a matmul
  Flops flops;             // of it: 2mnk
  Bytes bytes;             // of one occurrence: the input of a collective on each device, the payload of a Shift or Send
  int devices = 0;         // that take part in a collective
};

/// In the order of their first task. `busy` sums to TimeSplit::compute of the device and `exposed` to exposed_communication, to the picosecond. Work
/// of the dma unit, in a Collective or by itself, is not among them: the time in which the core waits for it is waiting. The timeline is recorded and complete.
///   cost    O(n log n) for the n tasks of the device's program
std::vector<OperationMetrics> measure_operations(const Model& model, const Timeline& timeline, DeviceId device);

/// When one of several things was in flight.
struct Flight {
  Interval when;
  std::uint32_t thing = 0;
};

/// How much of the time in which the core is idle and something is in flight is due to each of `things` things. A moment counts to one of them: of
/// those that end for good before the core goes on, to the one that does so last, as that is what the core waits for; where none does, to the one
/// that began first. Ties: the lowest. `core` is merged.
///   cost    O(n log n + n * things in flight at a time)
std::vector<Picoseconds> exposed_by(const std::vector<Interval>& core, const std::vector<Flight>& flights, std::size_t things);

/// The label without the word that numbers a slice: an `s` and digits.
std::string without_slice(std::string_view label);

}  // namespace podsim
