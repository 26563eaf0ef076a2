// What a device has on its links and in its memory over time, for the counters of a trace.
#pragma once

#include <string>
#include <vector>

#include "sim/model/model.hpp"
#include "tools/report/device_events.hpp"

namespace podsim {

/// What a device sends one way: `row + send`, `channel send`.
struct DirectionSample {
  Picoseconds at;              // from here on
  std::int64_t in_flight = 0;  // bytes: the payloads of the transfers that have begun and are not sent
  std::int64_t rate = 0;       // bytes per second
  std::int64_t used_ppm = 0;   // the rate over the bandwidth of the links that are the slowest of some path that way, each once; at most a million
};
struct DirectionCounter {
  std::string name;
  std::vector<DirectionSample> samples;
};

/// What a device sends along a mesh axis, `row`, or by channels.
struct AxisSample {
  Picoseconds at;         // from here on
  std::int64_t rate = 0;  // bytes per second; those of a transfer over h links count h times
};
struct AxisCounter {
  std::string name;
  std::vector<AxisSample> samples;
};

/// By time, changes only; the last sample of each is 0. Rates are means over each transfer, in whole bytes per second, so that their sums are exact.
/// In a direction, where the means of transfers that shared a link add up to more than it carries, what is too much crosses as soon as there is room while
/// others are in flight, or else as late before: over time the rates add up to the payloads, and none is above the bandwidth.
/// Of a Call's transfers only the axes are counted, at their mean rate over the Call: which way they went is not known of a function that was played once.
struct TrafficCounters {
  std::vector<DirectionCounter> directions;  // in the order of the lines
  std::vector<AxisCounter> axes;             // in mesh order, channels last
};
///   cost    O(n log n) for n events
TrafficCounters traffic_of(const Model& model, DeviceId device, const DeviceEvents& events);

}  // namespace podsim
