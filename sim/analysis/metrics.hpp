// Metrics of a run from its timeline. A folded model gives the same metrics as the model with one node per device.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/analysis/device_times.hpp"
#include "sim/analysis/peak_memory.hpp"
#include "sim/engine/times_reader.hpp"

namespace podsim {

/// The makespan of one device split in three parts, which sum to it exactly.
struct TimeSplit {
  Picoseconds compute;                // core at work on its tasks, launches included
  Picoseconds exposed_communication;  // core not at work while a transfer half or collective launch of the device is in flight, or takes its share of the core
  Picoseconds waiting;                // the rest; also while the dma unit works alone, as in the addition that ends a reduce-scatter on a line
  friend bool operator==(const TimeSplit&, const TimeSplit&) = default;
};

/// The mesh axis that a transfer moves along; -1: a Send, which may move along several.
int moving_axis(const Task& task);

/// Metrics of the transfers along one mesh axis. A transfer of a lowered Collective counts to the axis that it moves along, a Send to none.
struct AxisMetrics {
  int axis = 0;           // of the mesh; -1: Sends
  double link_bytes = 0;  // sum of payload * hops
  std::int64_t transfers = 0;
  Picoseconds in_flight;  // on the busiest device: time in which at least one of its halves along this axis is in flight
  Picoseconds exposed;    // the part of `in_flight` in which the core is idle
  friend bool operator==(const AxisMetrics&, const AxisMetrics&) = default;
};

struct Metrics {
  Picoseconds makespan;
  DeviceId busiest;               // the device whose core is busy longest; ties: lowest
  TimeSplit split;                // of that device
  Flops flops;                    // sum over devices of 2mnk, unpadded; of factorisations and solutions; of what opaque operations state for the matrix unit
  std::array<double, product_dtype_count> products{};  // the same by dtype, without the 2
  std::optional<double> mfu;      // sum over products of flops / peak_of() their operands, over devices * makespan; nullopt without matmuls
  double link_bytes = 0;          // sum of payload * hops
  Bytes peak_memory;              // largest over devices and time of live buffers: earliest write to last use; inputs and outputs always live
  std::int64_t tasks = 0;         // lowered instances; a transfer counts once
  std::vector<AxisMetrics> axes;  // axes with traffic, in mesh order, Sends last
};

/// The timeline must be recorded and complete (asserts). Cost O(task instances of the model) plus sorting those of the busiest device.
Metrics measure(const Model& model, const Timeline& timeline);

/// The same from times as an engine tells them, of a model without calls: no timeline is kept but that of one node. Which one is the busiest is known in the end only.
/// Where it was not the one that was kept, its times are still to be read, by a run with a second reader of that node.
class MetricsReader final : public TimesReader {
 public:
  /// Keeps the node whose core would be busy longest if no memory were short; of several the first.
  explicit MetricsReader(const Model& model);
  MetricsReader(const Model& model, std::uint32_t node);

  void read(std::uint32_t program, std::size_t task, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) override;
  /// When all has been read: the busiest node, if it is not the one whose times were kept.
  [[nodiscard]] std::optional<std::uint32_t> still_to_read();
  /// Otherwise the metrics, and the timeline of what the node does and receives.
  struct Measured {
    Metrics metrics;
    Timeline timeline;
  };
  [[nodiscard]] Measured measured(Picoseconds makespan);

 private:
  struct Kept {
    std::uint32_t activity = 0;
    Picoseconds start, sent, reduction;
  };
  void keep(std::uint32_t program, std::size_t task, std::size_t local, std::span<const Picoseconds> start, std::span<const Picoseconds> sent);

  const Model& model_;
  std::uint32_t node_;
  CoreTimes cores_;
  BufferLives lives_;
  std::vector<Kept> kept_;
  std::vector<Picoseconds> busy_;  // per node
};

/// Metrics of one node, in device order.
struct DeviceMetrics {
  DeviceId device;            // the lowest of its class
  std::uint32_t devices = 1;  // that are equivalent
  TimeSplit split;
  Bytes sent, received;  // payloads
  Bytes peak_memory;
};
std::vector<DeviceMetrics> measure_devices(const Model& model, const Timeline& timeline);

/// Metrics of one link, or class of links, with traffic, in link order; then of the memories of devices whose bandwidth is limited.
struct LinkMetrics {
  LinkId link;                        // the lowest of its class; unset of a memory
  std::optional<DeviceId> memory_of;  // the lowest device of its class
  std::uint32_t links = 1;            // that are equivalent
  double bytes = 0;                   // payload that crossed each link; bytes of works and transfers that passed each memory
  double utilisation = 0;             // bytes / (bandwidth * makespan)
};
std::vector<LinkMetrics> measure_links(const Model& model, const Timeline& timeline);

}  // namespace podsim
