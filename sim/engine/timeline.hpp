// When everything happened: what timing engines return.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// Of one activity: a work has sent = received = its end. A transfer starts at max(send-ready, receive-ready).
struct ActivityTimes {
  Picoseconds start, sent, received;
  friend bool operator==(const ActivityTimes&, const ActivityTimes&) = default;
};

/// One entry per activity, in the order of unroll()'s graph: never the order in which an engine found out.
struct Timeline {
  std::vector<ActivityTimes> times;
  Picoseconds makespan;
  std::int64_t events = 0;  // of the engine's own loop; not part of the result's identity
};

/// The Timeline of recorded activities (one entry per activity of the graph). Errors: an engine came to end_of_clock.
Expected<Timeline> make_timeline(const ActivityGraph& graph, std::vector<ActivityTimes> times, std::int64_t events);

/// One task instance as people see it: a work, or one half of a transfer. A half spans from the transfer's start to its own end.
struct Span {
  enum class Part : std::uint8_t { work, send, receive };
  Picoseconds start, end;
  DeviceId device;
  TaskId task;
  DeviceId peer;  // of a half: the other side
  Part part = Part::work;
  friend bool operator==(const Span&, const Span&) = default;
};

/// Ordered by (start, device, task, part).
std::vector<Span> spans_of(const ActivityGraph& graph, const Timeline& timeline);

/// One line per span in picoseconds, with task labels: for goldens.
std::string to_text(const Timeline& timeline, const Schedule& lowered);

}  // namespace podsim
