// When everything happened: what timing engines return.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/quantity.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// One task instance: a work, or one half of a transfer. A half spans from max(send-ready, receive-ready) to its own end.
struct Span {
  enum class Part : std::uint8_t { work, send, receive };
  Picoseconds start, end;
  DeviceId device;
  TaskId task;
  DeviceId peer;  // of a half: the other side
  Part part = Part::work;
  friend bool operator==(const Span&, const Span&) = default;
};

/// Ordered by (start, device, task, part), never by the order in which an engine found out.
struct Timeline {
  std::vector<Span> spans;
  Picoseconds makespan;
  std::int64_t events = 0;  // of the engine's own loop; not part of the result's identity
};

/// Of one activity, as an engine records it: a work has sent = received = its end.
struct ActivityTimes {
  Picoseconds start, sent, received;
};

/// The Timeline of recorded activities (one entry per activity of the graph).
Timeline make_timeline(const ActivityGraph& graph, const std::vector<ActivityTimes>& times, std::int64_t events);

/// One line per span in picoseconds, with task labels: for goldens.
std::string to_text(const Timeline& timeline, const Schedule& lowered);

}  // namespace podsim
