// What one device did, as events on lines. The times are those of the device's node, peers are the device's own: a folded model and an unfolded one
// give the same.
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
    core_share,  // the core's part of an off-core task
    send,        // the halves of a transfer: from its start to its own end
    receive,
  };
  Picoseconds begin, end;
  TaskId task;
  DeviceId peer;           // of a half: the other side
  std::uint32_t hops = 0;  // of a half
  std::uint32_t line = 0;  // position in DeviceEvents::lines
  Kind kind = Kind::work;
  int sign = 0;           // of a Shift's half: which way the data travels along the axis, +1 or -1
  std::int64_t flow = 0;  // of a half: the number of the transfer, the same on both sides and for no other transfer
};

/// Lines in their order: `compute`, `dma`, and for each mesh axis `row + send`, `row + receive`, `row - send`, `row - receive`, then `channel send`,
/// `channel receive`; only those that have events. + and - are the ways that data travels (a Shift goes the shorter way round where its view wraps,
/// half way round as its sign says). Where events of a line would overlap, they stand on further ones, `row + send 2`, so that no two events of a
/// line overlap (allot_lines()). Events are ordered by (line, begin, end, task, kind).
struct DeviceEvents {
  std::vector<std::string> lines;
  std::vector<TraceEvent> events;
};

/// Of a device that idles: none. The timeline is recorded and complete.
///   cost    O(n log n) for the n tasks of the device's program
DeviceEvents events_of(const Model& model, const Timeline& timeline, DeviceId device);

}  // namespace podsim
