// The events of one device, arranged on lines. Times are those of the device's node, peers are the device's own, so a folded and an unfolded model
// give equal events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

/// One bar of a trace.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    work,        // a Matmul or Local
    core_share,  // the core time of an off-core task with a core share
    send,        // halves of a transfer, from its start to the half's own end
    receive,
  };
  Picoseconds begin, end;
  TaskId task;
  DeviceId peer;           // of a half: the other device
  std::uint32_t hops = 0;  // of a half
  std::uint32_t line = 0;  // position in DeviceEvents::lines
  Kind kind = Kind::work;
  bool on_core = false;   // of work: on a line `compute`, not `dma`
  int sign = 0;           // of a Shift's half: the direction of travel along the axis, +1 or -1
  std::int64_t flow = 0;  // of a half: the number of the transfer, equal on both sides and unique
};

/// Lines in order: `compute`, `dma`; for each mesh axis `row + send`, `row + receive`, `row - send`, `row - receive`; then `channel send`, `channel
/// receive`. Only lines with events are listed. + and - are directions of travel (a Shift on a wrapped view goes the shorter way round; half way
/// round by its sign). Events that would overlap on a line continue on further lines, `row + send 2` (allot_lines()). Events are ordered by (line,
/// begin, end, task, kind).
struct DeviceEvents {
  std::vector<std::string> lines;
  std::vector<TraceEvent> events;
};

/// Empty for a device that idles. The timeline must be recorded and complete.
///   cost    O(n log n) for the n tasks of the device's program
DeviceEvents events_of(const Model& model, const Timeline& timeline, DeviceId device);

}  // namespace podsim
