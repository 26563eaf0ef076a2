#include "sim/engine/simgrid/player.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace podsim::simgrid_engine {

namespace {

Picoseconds to_clock(double seconds) { return seconds * 1e12 < 0x1p63 ? Picoseconds{std::llround(seconds * 1e12)} : end_of_clock; }

std::size_t gate_of(std::uint32_t activity, bool receive) { return 2 * std::size_t{activity} + (receive ? 1 : 0); }

}  // namespace

Player::Player(const CostedGraph& graph, FlowNetwork& network) : graph_{graph}, network_{network} {
  const std::size_t n = graph.graph.activities.size();
  closed_.assign(2 * n, 1);  // the 1 is begin() or the core
  ready_.assign(2 * n, 0);
  sent_.assign(n, -1);
  received_.assign(n, -1);
  index_successors();
  collect_core_work();
}

void Player::index_successors() {
  const ActivityGraph& graph = graph_.graph;
  const auto n = static_cast<std::uint32_t>(graph.activities.size());
  const auto for_each_wait = [&](const auto& visit) {
    for (std::uint32_t a = 0; a < n; ++a)
      for (const bool receive : {false, true})
        for (const Dependency& wait : graph.waits_for(a, receive ? Gate::receive : Gate::start))
          visit(gate_of(a, receive), gate_of(wait.activity, wait.received));
  };
  successor_rows_.assign(2 * std::size_t{n} + 1, 0);
  for_each_wait([&](std::size_t gate, std::size_t list) { ++closed_[gate], ++successor_rows_[list + 1]; });
  for (std::size_t i = 1; i < successor_rows_.size(); ++i) successor_rows_[i] += successor_rows_[i - 1];
  successors_.resize(successor_rows_.back());
  std::vector<std::uint32_t> end(successor_rows_.begin(), successor_rows_.end() - 1);
  for_each_wait([&](std::size_t gate, std::size_t list) { successors_[end[list]++] = static_cast<std::uint32_t>(gate); });
}

void Player::collect_core_work() {
  const std::size_t devices = graph_.graph.order_rows.empty() ? 0 : graph_.graph.order_rows.size() - 1;
  core_rows_.push_back(0);
  for (std::size_t d = 0; d < devices; ++d) {
    for (const std::uint32_t activity : graph_.graph.program_order(DeviceId{d}))
      if (graph_.on_core[activity]) core_.push_back(activity);
    core_rows_.push_back(static_cast<std::uint32_t>(core_.size()));
  }
  core_next_.assign(core_rows_.begin(), core_rows_.end() - 1);
}

void Player::begin() {
  for (std::uint32_t a = 0; a < graph_.graph.activities.size(); ++a) {
    if (!graph_.on_core[a]) open(a, false, 0);
    open(a, true, 0);
  }
  for (std::uint32_t d = 0; d < core_next_.size(); ++d) {
    if (graph_.shares_first[d] > Seconds{})
      at(graph_.shares_first[d].count(), d, Event::What::core_free);
    else
      reach_next(DeviceId{static_cast<int>(d)}, 0);
  }
  work_off();
}

double Player::next_date() const { return dates_.empty() ? std::numeric_limits<double>::infinity() : dates_.top().date; }

void Player::advance(double now, std::span<const std::uint32_t> ended) {
  now_ = now;
  for (; !dates_.empty() && dates_.top().date <= now; dates_.pop()) due_.push_back(dates_.top());
  for (const std::uint32_t activity : ended) {
    ++events_;
    if (graph_.graph.activities[activity].kind == Activity::Kind::work)
      at(now + graph_.memory[activity].rest.count(), activity, Event::What::done);
    else
      sent(activity, now);
  }
  work_off();
}

void Player::at(double date, std::uint32_t activity, Event::What what) {
  if (date <= now_)
    due_.push_back({date, activity, what});
  else
    dates_.push({date, activity, what});
}

void Player::work_off() {
  for (std::size_t i = 0; i < due_.size(); ++i) happen(Event{due_[i]});
  due_.clear();
}

void Player::happen(const Event& event) {
  ++events_;
  const std::uint32_t a = event.activity;
  switch (event.what) {
    case Event::What::done:
      sent_[a] = received_[a] = event.date;
      pass(a, false, event.date);
      pass(a, true, event.date);
      if (graph_.on_core[a])
        at(event.date + graph_.shares_behind[a].count(), static_cast<std::uint32_t>(graph_.graph.activities[a].device.value), Event::What::core_free);
      break;
    case Event::What::core_free: reach_next(DeviceId{static_cast<int>(a)}, event.date); break;
    case Event::What::flow: {
      if (graph_.graph.activities[a].kind == Activity::Kind::work) {
        const MemoryCost& memory = graph_.memory[a];
        network_.start(memory.route, memory.bytes, a, memory.most.count());
        break;
      }
      const TransferCost& cost = graph_.transfers[a];
      if (cost.flow_bytes > 0 && network_.limits(cost.route))
        network_.start(cost.route, cost.flow_bytes, a, unbounded);
      else
        sent(a, event.date);
      break;
    }
    case Event::What::received:
      received_[a] = event.date;
      pass(a, true, event.date);
      break;
  }
}

/// One of the things that a gate waits for is there.
void Player::open(std::uint32_t activity, bool receive, double date) {
  const std::size_t gate = gate_of(activity, receive);
  ready_[gate] = std::max(ready_[gate], date);
  if (--closed_[gate] > 0) return;
  if (closed_[gate ^ 1] > 0) return;
  // Both gates of a transfer; the receive gate of a work opens at time zero and waits for nothing.
  const double start = std::max(ready_[gate], ready_[gate ^ 1]);
  if (graph_.graph.activities[activity].kind == Activity::Kind::work) {
    if (!graph_.memory.empty() && graph_.memory[activity].bytes > 0)
      at(start + graph_.memory[activity].launch.count(), activity, Event::What::flow);
    else
      at(start + graph_.work_time[activity].count(), activity, Event::What::done);
    return;
  }
  at(start + graph_.transfers[activity].delay.count(), activity, Event::What::flow);
}

void Player::reach_next(DeviceId device, double date) {
  cores_end_ = std::max(cores_end_, date);
  if (core_next_[device.index()] < core_rows_[device.index() + 1]) open(core_[core_next_[device.index()]++], false, date);
}

void Player::sent(std::uint32_t activity, double date) {
  sent_[activity] = date;
  pass(activity, false, date);
  at(date + graph_.transfers[activity].reduction.count(), activity, Event::What::received);
}

void Player::pass(std::uint32_t activity, bool received, double date) {
  const std::size_t list = gate_of(activity, received);
  for (std::uint32_t i = successor_rows_[list]; i < successor_rows_[list + 1]; ++i) open(successors_[i] / 2, successors_[i] % 2 == 1, date);
}

Picoseconds Player::cores_end() const { return to_clock(cores_end_); }

ActivityTimes Player::times(std::size_t activity) const {
  const double start = std::max(ready_[2 * activity], ready_[2 * activity + 1]);
  return {to_clock(start), to_clock(sent_[activity]), to_clock(received_[activity])};
}

}  // namespace podsim::simgrid_engine
