// The time of a device by operation: products, memory traffic and collectives of a schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/node_activity.hpp"
#include "sim/model/played_call.hpp"

namespace podsim {

/// Operations in the order of their first task. `busy` sums to the device's TimeSplit::compute and `exposed` to its exposed_communication, exactly.
/// Work of the dma unit is left out: time in which the core waits for it counts as waiting. The timeline must be recorded and complete.
///   cost    O(n log n) for the n tasks of the device's program
std::vector<OperationMetrics> measure_operations(const Model& model, const Timeline& timeline, DeviceId device);

/// One occurrence of an operation on a device.
struct OperationOccurrence {
  std::uint32_t operation = 0;  // position in OperationTimeline::operations
  TaskId first;                 // of its tasks
  bool flies = false;           // something of it was in flight
  Interval flight;              // from the first beginning to the last end
  Picoseconds overlapped;       // in flight while the core is busy
};

/// Time of the core's line that belongs to one occurrence: the core works on it, or waits for it.
struct OperationStretch {
  Interval when;
  std::uint32_t occurrence = 0;  // position in OperationTimeline::occurrences
  bool waits = false;            // all of it
};

/// What measure_operations() adds up, in time.
struct OperationTimeline {
  std::vector<OperationMetrics> operations;
  std::vector<OperationOccurrence> occurrences;  // in program order
  std::vector<std::vector<AxisView>> views;      // per operation: of a collective those that its transfers move on
  std::vector<OperationStretch> stretches;       // by time, none empty; they never overlap. Those of a Call are within its task
};
/// The same requirements and cost. The stretches of an operation sum to its busy and exposed time, exactly.
OperationTimeline operation_timeline(const Model& model, const Timeline& timeline, DeviceId device);

/// An interval in which one of several things was in flight.
struct Flight {
  Interval when;
  std::uint32_t thing = 0;
};

/// Attributes the time in which the core is idle and something is in flight to one of `things` things. A moment counts to the thing that the core
/// waits for: of those that end before the core continues, the one that ends last; if none does, the one that began first. Ties: the lowest. `core`
/// must be merged.
///   cost    O(n log n + n * things in flight at a time)
std::vector<Picoseconds> exposed_by(const std::vector<Interval>& core, const std::vector<Flight>& flights, std::size_t things);
/// The same, piece by piece in order of time.
void each_exposure(const std::vector<Interval>& core, const std::vector<Flight>& flights, std::size_t things,
                   const std::function<void(std::uint32_t thing, const Interval& when)>& visit);

/// What a task of a lowered schedule works on or moves, as OperationMetrics::category: "matmul", "attention", "all-gather" of a collective's tasks, "send", "call".
std::string_view category_of(const Task& task);

/// The label without the word for its slice: `s` and digits.
std::string without_slice(std::string_view label);

}  // namespace podsim
