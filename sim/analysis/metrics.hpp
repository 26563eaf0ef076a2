// What a timeline means: the figures of a run. A folded model gives the same figures as the model with a node per device.
#pragma once

#include <optional>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

/// How a device spent the makespan; the three sum to it, to the picosecond.
struct TimeSplit {
  Picoseconds compute;                // core busy, launches and core shares included
  Picoseconds exposed_communication;  // core idle while at least one transfer half or collective launch of the device is in flight
  Picoseconds waiting;                // the rest: also for the dma unit's own work, as the sum that ends a reduce-scatter on a line
  friend bool operator==(const TimeSplit&, const TimeSplit&) = default;
};

/// The mesh axis that a transfer moves on; -1: a Send, which may move on several.
int moving_axis(const Task& task);

/// Of the transfers along one mesh axis; those of a lowered Collective count to the axis that they move on, Sends to none.
struct AxisMetrics {
  int axis = 0;           // of the mesh; -1: Sends
  double link_bytes = 0;  // sum of payload * hops
  std::int64_t transfers = 0;
  Picoseconds in_flight;  // on the busiest device: while at least one of its halves along this axis is
  Picoseconds exposed;    // there: the part of it with an idle core
  friend bool operator==(const AxisMetrics&, const AxisMetrics&) = default;
};

struct Metrics {
  Picoseconds makespan;
  DeviceId busiest;               // core busy longest; ties: lowest
  TimeSplit split;                // there
  Flops flops;                    // sum over devices of 2mnk, unpadded
  std::optional<double> mfu;      // sum over products of flops / peak of its dtype, over devices * makespan; none without matmuls
  double link_bytes = 0;          // sum of payload * hops
  Bytes peak_memory;              // largest over devices and time of live buffers: earliest write to last use; inputs and outputs always
  std::int64_t tasks = 0;         // lowered instances, a transfer once
  std::vector<AxisMetrics> axes;  // that carry something, in mesh order, Sends last
};

/// The timeline is recorded and complete (asserts). Cost O(task instances of the model), sorting only the busiest device's.
Metrics measure(const Model& model, const Timeline& timeline);

/// One per node, by device.
struct DeviceMetrics {
  DeviceId device;            // the lowest of its class
  std::uint32_t devices = 1;  // that are equivalent
  TimeSplit split;
  Bytes sent, received;  // payloads
  Bytes peak_memory;
};
std::vector<DeviceMetrics> measure_devices(const Model& model, const Timeline& timeline);

/// One per link or class of links that carried something, by link.
struct LinkMetrics {
  LinkId link;              // the lowest of its class
  std::uint32_t links = 1;  // that are equivalent
  double bytes = 0;         // payload that crossed each
  double utilisation = 0;   // bytes / (bandwidth * makespan)
};
std::vector<LinkMetrics> measure_links(const Model& model, const Timeline& timeline);

}  // namespace podsim
