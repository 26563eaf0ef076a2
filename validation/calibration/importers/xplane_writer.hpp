// Writes XProf profiles, event by event: the other direction of xplane.hpp, with the same messages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// The statistic, 1, of the device that a simulation's figures are of.
inline constexpr std::string_view busiest_stat = "busiest";

/// Names and statistics of one plane. Statistics are named, and numbered in the order of their first use.
class XPlaneNames {
 public:
  using Value = std::variant<std::int64_t, std::uint64_t, double, std::string>;
  using Stats = std::vector<std::pair<std::string, Value>>;

  struct Event {
    std::string name, display_name;
    Stats stats;
  };
  /// The number of a new kind of event, from 1.
  std::int64_t add(Event event);
  /// The number of a statistic, from 1; the same for the same name.
  std::int64_t stat(std::string_view name);

  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] const std::vector<std::string>& stats() const { return stats_; }

 private:
  std::vector<Event> events_;
  std::vector<std::string> stats_;
};

/// One event: its kind, its place in time, and numbers of its own (statistic, value).
struct XPlaneEvent {
  std::int64_t metadata = 0, begin_ps = 0, duration_ps = 0;
  std::span<const std::pair<std::int64_t, std::int64_t>> stats{};
};

/// A line of a plane. `each` passes its events in order, the same whenever it is called: twice, as a message begins with its length.
struct XPlaneLine {
  std::int64_t id = 0;
  std::string name;
  std::int64_t duration_ps = 0;
  std::function<void(const std::function<void(const XPlaneEvent&)>&)> each;
};

struct XPlaneOut {
  std::int64_t id = 0;
  std::string name;
  std::vector<XPlaneLine> lines;
  XPlaneNames names;
  XPlaneNames::Stats stats{};  // of the device
};

/// Writes the fields of one XSpace. Nothing of a plane is kept after it was written, and no event before. Times count from 0.
class XSpaceWriter {
 public:
  /// `write` receives the bytes, in pieces.
  explicit XSpaceWriter(std::function<void(std::string_view)> write) : write_{std::move(write)} {}

  void hostname(std::string_view name);
  /// Errors: a plane beyond 2 GiB, which no reader of Protobuf takes; nothing of it is written then.
  Status plane(XPlaneOut plane);

 private:
  std::function<void(std::string_view)> write_;
};

}  // namespace podsim
