// A lowered schedule on a machine, with every cost known: what timing engines play and metrics read. What devices share is kept once; a folded
// model (fold.hpp) has one node per class of equivalent devices, any other one node per device. The rules of costs are applied here and in
// machine.cpp, and nowhere else; engines only add up, share links and keep the core busy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/machine/machine.hpp"
#include "sim/topology/placement.hpp"
#include "sim/schedule/deploy.hpp"

namespace podsim {

/// What a task costs wherever it runs; regions have the same sizes on every device. A transfer starts at s = max(send-ready, receive-ready). From
/// s to s + launch + per_message + latency of its path it uses no link; then a flow of `flow_bytes` holds every link of its path at its max-min
/// fair rate (zero bytes or no links: no flow); `sent` is then, and `received` a `reduction` of the receiving task later.
struct TaskCost {
  enum class Kind : std::uint8_t { work, transfer, receive };  // receive: a Recv, which has no activity of its own
  Kind kind = Kind::work;
  /// Whether the core runs it in program order. A Matmul or Local on the core does, for its `work`. A dma work or transfer with a core share: it
  /// starts when the core reaches it and its waits hold, and the core is then busy for its core time while it goes its own way; of a transfer
  /// this is the send gate.
  bool on_core = false;
  bool by_core = false;               // a Matmul or Local on the core: its work is done at the core's speed
  Seconds work;                       // of a work
  Seconds core_time;                  // where on_core; the same everywhere unless `core_times`
  Seconds delay;                      // of a transfer, without its path's latency: launch (of ops that an algorithm wrote) + per_message
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
  BytesPerSecond bottleneck = unlimited<BytesPerSecond>;  // the least bandwidth on it, unshared
};

/// A link, or a class of equivalent links.
struct ModelLink {
  BytesPerSecond bandwidth;
  LinkId representative;
  std::uint32_t links = 1;  // in the class
};

struct Model {
  const Schedule* schedule = nullptr;  // these two outlive the model
  const Machine* machine = nullptr;

  Deployment deployment;                             // in a folded model of the classes: its devices are nodes
  std::vector<DeviceId> device_of;                   // per node: the device, or the lowest of its class
  std::vector<std::uint32_t> devices_in;             // per node
  std::vector<std::uint32_t> node_of;                // per device
  std::vector<double> speed;                         // per node, of cores and reductions; empty: 1
  std::vector<std::vector<TaskCost>> costs;          // [program][task]
  std::vector<std::vector<Seconds>> core_times;      // per node of the program
  std::vector<std::vector<std::uint32_t>> routings;  // per node of the program: the path of what it sends
  std::vector<Path> paths;
  std::vector<PathLink> path_links;
  std::vector<ModelLink> links;  // unfolded: by link id

  [[nodiscard]] std::size_t nodes() const { return device_of.size(); }
  [[nodiscard]] bool folded() const { return nodes() < node_of.size(); }
  [[nodiscard]] std::span<const PathLink> links_of(const Path& path) const {
    return {path_links.data() + path.first, static_cast<std::size_t>(path.last - path.first)};
  }
  /// Of a task that the local node sends.
  [[nodiscard]] const Path& path(const TaskCost& cost, std::size_t local) const { return paths[routings[cost.routing][local]]; }
  /// How long a task of the local node of a program works, and holds the core where it does.
  [[nodiscard]] Seconds work(std::uint32_t program, const TaskCost& cost, std::size_t local) const {
    return cost.by_core ? at_speed(cost.work, deployment.programs[program].devices[local]) : cost.work;
  }
  [[nodiscard]] Seconds core_time(std::uint32_t program, const TaskCost& cost, std::size_t local) const {
    if (cost.by_core) return work(program, cost, local);
    return cost.core_times == no_device ? cost.core_time : core_times[cost.core_times][local];
  }
  /// How long it takes the receiver of what the local node sends to add it up: of the Shift itself, or of the matching Recv.
  [[nodiscard]] Seconds reduction(std::uint32_t program, std::size_t task, std::size_t local) const;
  [[nodiscard]] Seconds at_speed(Seconds work, std::uint32_t node) const { return speed.empty() ? work : work / speed[node]; }
  [[nodiscard]] const Task& task(std::uint32_t program, std::size_t task) const { return schedule->programs[program].tasks[task]; }
};

/// The duration of a transfer that shares no link, without its reduction.
Seconds unshared(const TaskCost& cost, const Path& path);

/// One node per device. Errors: the schedule does not deploy (first problem), it and the placement disagree, chips that are not connected, a
/// duration that does not fit the clock; cancelled work.
/// Cost O(tasks + distinct participants * devices); routes are found once per distinct (from, to, options).
Expected<Model> make_model(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                           Cancellation stop = {});

/// The same of a deployment that is known to be right. It may be of a part of the devices; its tables then still name the devices of the mesh.
Expected<Model> cost_deployment(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                Deployment deployment, Cancellation stop = {});

}  // namespace podsim
