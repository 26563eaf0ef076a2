// Executes a CostedGraph: waits, cores, delays and durations. The clock and the sharing of links belong to FlowNetwork.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "sim/model/costed_graph.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/engine/simgrid/flow_network.hpp"

namespace podsim::simgrid_engine {

class Player final : public Driver {
 public:
  Player(const CostedGraph& graph, FlowNetwork& network);

  /// Starts everything that can start at time zero.
  void begin();
  [[nodiscard]] double next_date() const override;
  void advance(double now, std::span<const std::uint32_t> ended) override;

  // After the run.
  [[nodiscard]] std::int64_t events() const { return events_; }
  [[nodiscard]] bool finished(std::size_t activity) const { return received_[activity] >= 0; }
  /// Times of a finished activity, rounded to the nearest picosecond.
  [[nodiscard]] ActivityTimes times(std::size_t activity) const;
  /// When the last core has worked off its shares.
  [[nodiscard]] Picoseconds cores_end() const;

 private:
  /// An event of an activity, or of the core of a device, at a date known in advance.
  struct Event {
    enum class What : std::uint8_t { done, core_free, flow, received };
    double date = 0;
    std::uint32_t activity = 0;  // of core_free: the device
    What what = What::done;
    friend bool operator>(const Event& a, const Event& b) {
      if (a.date != b.date) return a.date > b.date;
      return a.activity != b.activity ? a.activity > b.activity : a.what > b.what;
    }
  };

  void index_successors();
  void collect_core_work();
  void at(double date, std::uint32_t activity, Event::What what);
  void work_off();
  void happen(const Event& event);
  void open(std::uint32_t activity, bool receive, double date);
  void reach_next(DeviceId device, double date);
  void sent(std::uint32_t activity, double date);
  void pass(std::uint32_t activity, bool received, double date);

  const CostedGraph& graph_;
  FlowNetwork& network_;
  double now_ = 0, cores_end_ = 0;
  std::int64_t events_ = 0;

  // Two gates per activity: start or send, receive.
  std::vector<std::uint32_t> closed_;  // waits left per gate; the start or send gate of a core activity also waits for the core
  std::vector<double> ready_;          // per gate, the latest of its waits
  // Two lists per activity: gates that wait for `sent` (or done), gates that wait for `received`.
  std::vector<std::uint32_t> successor_rows_, successors_;
  std::vector<double> sent_, received_;  // negative: not yet

  std::vector<std::uint32_t> core_rows_, core_;  // per device, its core activities in order
  std::vector<std::uint32_t> core_next_;         // per device, position in core_ of what the core comes to next

  std::priority_queue<Event, std::vector<Event>, std::greater<>> dates_;
  std::vector<Event> due_;  // a queue of events at `now`
};

}  // namespace podsim::simgrid_engine
