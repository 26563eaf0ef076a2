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

/// When every activity of a model started and ended, in the order of Deployment::activity(): never the order in which an engine found out. 16 bytes
/// per activity; a reduction at a receiver takes as long for many activities in a row and is kept once for them.
class Timeline {
 public:
  struct Reduction {  // of the activities from `first` on
    std::uint32_t first = 0;
    Picoseconds duration;
  };

  Timeline() = default;
  /// `sent` has an entry per activity or, unrecorded, none. Reductions by increasing `first`, the first one at 0.
  Timeline(std::vector<Picoseconds> start, std::vector<Picoseconds> sent, std::vector<Reduction> reductions)
      : start_{std::move(start)}, sent_{std::move(sent)}, reductions_{std::move(reductions)} {}

  [[nodiscard]] std::size_t size() const { return sent_.size(); }
  [[nodiscard]] ActivityTimes at(std::size_t activity) const;
  /// The same without `received`: O(1).
  [[nodiscard]] Picoseconds start(std::size_t activity) const { return start_[activity]; }
  [[nodiscard]] Picoseconds sent(std::size_t activity) const { return sent_[activity]; }

  Picoseconds makespan;
  std::int64_t events = 0;    // of the engine's own loop; not part of the result's identity
  std::int64_t finished = 0;  // activities
  bool interrupted = false;   // the run was told to stop, or would pass its limit: the times of what did not finish mean nothing, the makespan is how far it came

 private:
  std::vector<Picoseconds> start_, sent_;
  std::vector<Reduction> reductions_;
};

/// The Timeline of recorded activities. Errors: an engine came to end_of_clock.
Expected<Timeline> make_timeline(const std::vector<ActivityTimes>& times, std::int64_t events);

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
