// CostedGraphs written by hand, for the tests of this folder.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "sim/model/costed_graph.hpp"
#include "sim/engine/simgrid/simulate.hpp"

namespace podsim::simgrid_engine {

inline constexpr double us = 1e-6, GB = 1e9, MB = 1e6;

/// What a TransferCost and its places are, with what most tests want as defaults.
struct Transfer {
  int from = 0, to = 1;
  std::uint32_t route = 0;
  double bytes = 1 * MB;
  double delay = 0, reduction = 0;
  std::vector<Dependency> send = {}, receive = {};
};

class TestGraph {
 public:
  explicit TestGraph(int devices) : order_(static_cast<std::size_t>(devices)) { graph_.shares_first.resize(order_.size()); }

  LinkId link(double bandwidth) {
    graph_.links.push_back(BytesPerSecond{bandwidth});
    return LinkId{graph_.links.size() - 1};
  }
  LinkId unlimited_link() { return link(std::numeric_limits<double>::infinity()); }

  std::uint32_t route(std::vector<LinkId> links) {
    graph_.hops.push_back(static_cast<int>(links.size()));
    graph_.routes.push_back(std::move(links));
    return static_cast<std::uint32_t>(graph_.routes.size() - 1);
  }

  /// A work on the core, and the core shares behind it.
  std::uint32_t core(int device, double time, std::vector<Dependency> waits = {}, double shares = 0) {
    return work(device, time, std::move(waits), true, shares);
  }
  std::uint32_t dma(int device, double time, std::vector<Dependency> waits = {}) { return work(device, time, std::move(waits), false, 0); }
  void shares_first(int device, double time) { graph_.shares_first[static_cast<std::size_t>(device)] = Seconds{time}; }

  std::uint32_t transfer(Transfer t) {
    Activity activity;
    activity.kind = Activity::Kind::transfer;
    activity.device = DeviceId{t.from};
    activity.receiver = DeviceId{t.to};
    activity.receiver_task = next_task(t.from);
    graph_.work_time.emplace_back();
    graph_.transfers.push_back({Seconds{t.delay}, t.bytes, Bytes{static_cast<std::int64_t>(t.bytes)}, t.route, Seconds{t.reduction}});
    return add(activity, std::move(t.send), std::move(t.receive), false, 0);
  }

  [[nodiscard]] CostedGraph build() const {
    CostedGraph result = graph_;
    ActivityGraph& g = result.graph;
    g.wait_rows.push_back(0);
    for (const std::vector<Dependency>& row : waits_) {
      g.waits.insert(g.waits.end(), row.begin(), row.end());
      g.wait_rows.push_back(static_cast<std::uint32_t>(g.waits.size()));
    }
    g.order_rows.push_back(0);
    for (const std::vector<std::uint32_t>& row : order_) {
      g.order.insert(g.order.end(), row.begin(), row.end());
      g.order_rows.push_back(static_cast<std::uint32_t>(g.order.size()));
    }
    return result;
  }

 private:
  [[nodiscard]] TaskId next_task(int device) const { return TaskId{order_[static_cast<std::size_t>(device)].size()}; }

  std::uint32_t work(int device, double time, std::vector<Dependency> waits, bool on_core, double shares) {
    Activity activity;
    activity.device = DeviceId{device};
    graph_.work_time.emplace_back(time);
    graph_.transfers.emplace_back();
    return add(activity, std::move(waits), {}, on_core, shares);
  }

  std::uint32_t add(Activity activity, std::vector<Dependency> first, std::vector<Dependency> second, bool on_core, double shares) {
    activity.task = next_task(activity.device.value);
    const auto id = static_cast<std::uint32_t>(graph_.graph.activities.size());
    graph_.graph.activities.push_back(activity);
    graph_.on_core.push_back(on_core);
    graph_.shares_behind.emplace_back(shares);
    waits_.push_back(std::move(first));
    waits_.push_back(std::move(second));
    order_[activity.device.index()].push_back(id);
    return id;
  }

  CostedGraph graph_;
  std::vector<std::vector<Dependency>> waits_;
  std::vector<std::vector<std::uint32_t>> order_;
};

inline Dependency sent(std::uint32_t activity) { return {activity, false}; }
inline Dependency done(std::uint32_t activity) { return {activity, false}; }
inline Dependency received(std::uint32_t activity) { return {activity, true}; }

}  // namespace podsim::simgrid_engine
