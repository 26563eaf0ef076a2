// The operations of one device, arranged as XLA's profiles have them: on one line what the core is busy with or waits for, on another what is in flight
// from its start to its done.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/operations.hpp"

namespace podsim {

/// One event. An occurrence of an asynchronous operation is a start, a done and, where the core turned to it in between, updates; of any other operation
/// it is one event.
struct OperationEvent {
  enum class Part : std::uint8_t { whole, start, update, done };
  Picoseconds begin, end;        // equal where the core spends no time on a start or done
  std::uint32_t occurrence = 0;  // position in OperationTimeline::occurrences
  Part part = Part::whole;
};

struct OperationLines {
  OperationTimeline timeline;
  std::vector<bool> asynchronous;        // per operation: some occurrence is in flight while the core does something else
  std::vector<OperationEvent> core;      // by time. None overlap; a Call contains what the core waits for meanwhile, and any event may contain instants
  std::vector<OperationEvent> in_flight;  // of asynchronous operations, from start to done; by begin
};

/// The events of `core` sum to each operation's busy and exposed time, exactly, but for Calls, whose events also last while the core idles in them.
/// The timeline must be recorded and complete. Empty for a device that idles.
///   cost    O(n log n) for the n tasks of the device's program
OperationLines operation_lines(const Model& model, const Timeline& timeline, DeviceId device);

}  // namespace podsim
