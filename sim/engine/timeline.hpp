// Timelines: when everything happened. The result of timing engines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// The times of one activity. Work has sent = received = its end. A transfer starts at max(send-ready, receive-ready).
struct ActivityTimes {
  Picoseconds start, sent, received;
  friend bool operator==(const ActivityTimes&, const ActivityTimes&) = default;
};

/// Start and end of every activity of a model, indexed by Deployment::activity(), independent of the order in which an engine computed them. 16 bytes
/// per activity. Reductions at receivers are run-length encoded: many successive activities have the same.
class Timeline {
 public:
  struct Reduction {  // holds for activities from `first` to the next entry
    std::uint32_t first = 0;
    Picoseconds duration;
  };

  Timeline() = default;
  /// `sent` has one entry per activity, or none if not recorded. Reductions by increasing `first`, the first one at 0.
  Timeline(std::vector<Picoseconds> start, std::vector<Picoseconds> sent, std::vector<Reduction> reductions)
      : start_{std::move(start)}, sent_{std::move(sent)}, reductions_{std::move(reductions)} {}
  /// Of some activities only, in increasing order: start() and sent() then take O(log n), and nothing may be asked of other activities.
  Timeline(std::vector<std::uint32_t> activities, std::vector<Picoseconds> start, std::vector<Picoseconds> sent, std::vector<Reduction> reductions)
      : activities_{std::move(activities)}, start_{std::move(start)}, sent_{std::move(sent)}, reductions_{std::move(reductions)} {}

  /// The number of activities whose times are here.
  [[nodiscard]] std::size_t size() const { return sent_.size(); }
  [[nodiscard]] ActivityTimes at(std::size_t activity) const;
  /// start() and sent() in O(1), without `received`.
  [[nodiscard]] Picoseconds start(std::size_t activity) const { return start_[position(activity)]; }
  [[nodiscard]] Picoseconds sent(std::size_t activity) const { return sent_[position(activity)]; }
  /// Of all activities that are here.
  [[nodiscard]] std::span<const Picoseconds> starts() const { return start_; }
  [[nodiscard]] std::span<const Picoseconds> sents() const { return sent_; }

  Picoseconds makespan;        // the last end of an activity or of a core share
  std::int64_t events = 0;    // of the engine's own loop; not compared between engines
  std::string_view pass;      // of des, how it was computed: max-plus, mixed (flows that meet apart) or events
  std::int64_t finished = 0;  // activities
  bool interrupted = false;   // cancelled, or past its limit: times of unfinished activities are meaningless, the makespan is the time reached
  bool is_long = false;       // interrupted by RunControl::most_work

 private:
  [[nodiscard]] std::size_t position(std::size_t activity) const { return activities_.empty() ? activity : position_among_some(activity); }
  [[nodiscard]] std::size_t position_among_some(std::size_t activity) const;

  std::vector<std::uint32_t> activities_;  // empty: all
  std::vector<Picoseconds> start_, sent_;
  std::vector<Reduction> reductions_;
};

/// The error of a run that reached end_of_clock.
Diagnostic beyond_the_clock();

/// The timeline of recorded activities and of cores that are busy until `cores_end`. Errors: a time reached end_of_clock.
Expected<Timeline> make_timeline(const std::vector<ActivityTimes>& times, Picoseconds cores_end, std::int64_t events);

/// One task instance for display: work, or one half of a transfer. A half lasts from the start of the transfer to the half's own end.
struct Span {
  enum class Part : std::uint8_t { work, send, receive };
  Picoseconds start, end;
  DeviceId device;
  TaskId task;
  DeviceId peer;  // of a half: the other device
  Part part = Part::work;
  friend bool operator==(const Span&, const Span&) = default;
};

/// Ordered by (start, device, task, part).
std::vector<Span> spans_of(const ActivityGraph& graph, const Timeline& timeline);

/// One line per span in picoseconds, with task labels: for goldens.
std::string to_text(const Timeline& timeline, const Schedule& lowered);

}  // namespace podsim
