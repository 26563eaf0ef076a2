// A lowered schedule on a machine, with every cost computed, for timing engines and metrics. Devices with equal costs share tables. A folded model
// (fold.hpp) has one node per class of equivalent devices, any other model one node per device. Only this folder and machine.cpp apply the rules of
// costs; engines add durations, share links and serialise the core.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/machine/machine.hpp"
#include "sim/topology/placement.hpp"
#include "sim/schedule/deploy.hpp"

namespace podsim {

/// The cost of a task on any device; its regions have the same sizes everywhere. A transfer starts at s = max(send-ready, receive-ready). Until s +
/// launch + per_message + latency of its path it uses no link. Then a flow of `flow_bytes` holds every link of its path at its max-min fair rate (no
/// flow if there are no bytes or no links). At the end of the flow it is `sent`, and after the receiving task's `reduction` it is `received`.
struct TaskCost {
  enum class Kind : std::uint8_t { work, transfer, receive };  // receive: a Recv, which has no activity of its own
  Kind kind = Kind::work;
  /// Whether the task occupies the core in program order. A Matmul or Local on the core does, for its `work`. A dma task or transfer with a core
  /// share starts when the core reaches it and its waits hold (for a transfer: those of the send gate); the core is then busy for `core_time` while
  /// the task itself continues off the core.
  bool on_core = false;
  bool by_core = false;               // a Matmul or Local on the core: `work` scales with the core's speed
  Seconds work;                       // of a work
  Seconds core_time;                  // if on_core; the same on every device unless `core_times` is set
  Seconds delay;                      // of a transfer, without the latency of its path: launch (operations that an algorithm wrote) + per_message
  Bytes payload;                      // of a transfer
  double flow_bytes = 0;              // payload / efficiency
  Seconds reduction;                  // of a Shift or Recv
  std::uint32_t routing = no_device;     // of a transfer: position in Model::routings
  std::uint32_t core_times = no_device;  // position in Model::core_times
};

/// A flow on a path takes `weight` shares of the link: 1, or in a folded model the number of equivalent flows on each link of the class.
struct PathLink {
  std::uint32_t link = 0, weight = 1;
  friend bool operator==(const PathLink&, const PathLink&) = default;
};

struct Path {
  std::uint32_t first = 0, last = 0;  // in Model::path_links, in order of travel
  std::uint32_t hops = 0;             // links between chips
  Seconds latency;
  BytesPerSecond bottleneck = unlimited<BytesPerSecond>;  // the least bandwidth on the path
};

/// A link, or a class of equivalent links.
struct ModelLink {
  BytesPerSecond bandwidth;
  LinkId representative;
  std::uint32_t links = 1;  // links in the class
};

struct Model {
  const Schedule* schedule = nullptr;  // schedule and machine must outlive the model
  const Machine* machine = nullptr;

  Deployment deployment;                             // of a folded model: its devices are the nodes
  std::vector<DeviceId> device_of;                   // per node: the device, or the lowest of its class
  std::vector<std::uint32_t> devices_in;             // per node
  std::vector<std::uint32_t> node_of;                // per device
  std::vector<double> speed;                         // per node, of cores and reductions; empty: 1
  std::vector<std::vector<TaskCost>> costs;          // [program][task]
  std::vector<std::vector<Seconds>> core_times;      // per node of the program
  std::vector<std::vector<std::uint32_t>> routings;  // per node of the program: the path of its transfer
  std::vector<Path> paths;
  std::vector<PathLink> path_links;
  std::vector<ModelLink> links;  // unfolded: by link id

  [[nodiscard]] std::size_t nodes() const { return device_of.size(); }
  [[nodiscard]] bool folded() const { return nodes() < node_of.size(); }
  [[nodiscard]] std::span<const PathLink> links_of(const Path& path) const {
    return {path_links.data() + path.first, static_cast<std::size_t>(path.last - path.first)};
  }
  /// The path of a transfer that the local node sends.
  [[nodiscard]] const Path& path(const TaskCost& cost, std::size_t local) const { return paths[routings[cost.routing][local]]; }
  /// The duration of a task's work on a local node of a program, and the time that it holds the core.
  [[nodiscard]] Seconds work(std::uint32_t program, const TaskCost& cost, std::size_t local) const {
    return cost.by_core ? at_speed(cost.work, deployment.programs[program].devices[local]) : cost.work;
  }
  [[nodiscard]] Seconds core_time(std::uint32_t program, const TaskCost& cost, std::size_t local) const {
    if (cost.by_core) return work(program, cost, local);
    return cost.core_times == no_device ? cost.core_time : core_times[cost.core_times][local];
  }
  /// The time in which the receiver adds what the local node sends: the reduction of the Shift, or of the matching Recv.
  [[nodiscard]] Seconds reduction(std::uint32_t program, std::size_t task, std::size_t local) const;
  [[nodiscard]] Seconds at_speed(Seconds work, std::uint32_t node) const { return speed.empty() ? work : work / speed[node]; }
  [[nodiscard]] const Task& task(std::uint32_t program, std::size_t task) const { return schedule->programs[program].tasks[task]; }
};

/// The uncontended duration of a transfer, without its reduction.
Seconds unshared(const TaskCost& cost, const Path& path);

/// One node per device. Errors: the schedule does not deploy (its first problem), a placement of another size, chips that are not connected, a
/// duration that does not fit the clock; cancelled work.
/// Cost O(tasks + distinct participants * devices); a route is searched once per distinct (from, to, options).
Expected<Model> make_model(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                           Cancellation stop = {});

/// The same for a deployment without problems. It may contain part of the devices; its tables then still use device indices of the mesh.
Expected<Model> cost_deployment(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                Deployment deployment, Cancellation stop = {});

}  // namespace podsim
