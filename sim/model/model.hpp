// A lowered schedule on a machine, with every cost computed, for timing engines and metrics. Devices with equal costs share tables. A folded model
// (fold.hpp) has one node per class of equivalent devices, any other model one node per device. Only this folder and machine.cpp apply the rules of
// costs; engines add durations, share links and serialise the core.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/machine/machine.hpp"
#include "sim/model/played_call.hpp"
#include "sim/schedule/deploy.hpp"
#include "sim/topology/placement.hpp"

namespace podsim {

/// The cost of a task on any device; its regions have the same sizes everywhere. A transfer starts at s = max(send-ready, receive-ready). Until s +
/// launch + per_message + latency of its path it uses no link. Then a flow of `flow_bytes` holds every link of its path at its max-min fair rate (no
/// flow if there are no bytes or no links). At the end of the flow it is `sent`, and after the receiving task's `reduction` it is `received`.
struct TaskCost {
  enum class Kind : std::uint8_t { work, transfer, receive };  // receive: a Recv, which has no activity of its own
  Kind kind = Kind::work;
  bool on_core = false;               // a Matmul or Local on the core: occupies it in program order; `work` scales with the core's speed
  Seconds work;                       // of a work that has the memory to itself
  Seconds launch, rest;               // of a work: its first and last part, in which it draws no memory
  double memory_bytes = 0;            // of a work: what it moves through the memory in between
  Seconds delay;                      // of a transfer, without the latency of its path: launch (operations that an algorithm wrote) + per_message
  Bytes payload;                      // of a transfer
  double flow_bytes = 0;              // payload / efficiency
  Seconds reduction;                  // of a Shift or Recv
  std::uint32_t routing = no_device;  // of a transfer: position in Model::routings
};

/// The time that the cores of a program spend on operations that go on beside them: Collectives, transfers and dma tasks with a core share. It stands
/// in program order as pieces. A piece waits for the core only, and only the core waits for it, so it delays what the core does next. README.md has
/// the rule.
struct CoreShares {
  struct Piece {
    TaskId of;                  // the transfer, dma task or launch of the Collective
    std::uint32_t place = 0;    // the piece stands before the task at this position of the program
    std::vector<Seconds> time;  // per node of the program; zero where the operation is absent
  };
  std::vector<Piece> pieces;  // by place, then operation
  /// The sums of the pieces behind each task on the core, [task][node of the program]; empty: none. On a node where a core task is absent, its pieces
  /// stand behind the one before. `first`: before all core tasks.
  std::vector<std::vector<Seconds>> behind;
  std::vector<Seconds> first;
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
  BytesPerSecond bottleneck = unlimited<BytesPerSecond>;  // what a flow alone on the path gets
};

/// A link, or a class of equivalent links. The memory of a device is a link too, where devices share it and it may be short (shared_memory.hpp).
struct ModelLink {
  BytesPerSecond bandwidth;  // of a memory: memory_unit() times that of the memory, as flows have whole weights
  LinkId representative;     // of a memory: Model::first_memory + the device
  std::uint32_t links = 1;   // links in the class
  bool is_memory = false;
};

/// Copies share what routes and deployment are made of. recost() (recost.hpp) makes models that share it from one another.
struct Model {
  const Schedule* schedule = nullptr;  // schedule and machine must outlive the model
  const Machine* machine = nullptr;

  Deployment deployment;                             // of a folded model: its devices are the nodes
  SharedVector<DeviceId> device_of;                  // per node: the device, or the lowest of its class
  SharedVector<std::uint32_t> devices_in;            // per node
  SharedVector<std::uint32_t> node_of;               // per device
  std::vector<double> speed;                         // per node, of cores and reductions; empty: 1
  std::vector<std::vector<TaskCost>> costs;          // [program][task]
  std::vector<CoreShares> core_shares;               // per program; empty: no operation of this schedule has a share
  SharedVector<std::vector<std::uint32_t>> routings; // per node of the program: the path of its transfer
  std::vector<Path> paths;
  SharedVector<PathLink> path_links;
  std::vector<ModelLink> links;             // unfolded: by link id, then the memories by device
  std::vector<std::uint32_t> memory_paths;  // per node: the path of its works' bytes; empty: memory is not shared, or is never short
  std::shared_ptr<const PlayedCalls> calls;  // of a schedule with calls
  int first_memory = 0;                     // the topology's link slots: LinkIds from here on are memories

  [[nodiscard]] std::size_t nodes() const { return device_of.size(); }
  [[nodiscard]] bool folded() const { return nodes() < node_of.size(); }
  [[nodiscard]] std::span<const PathLink> links_of(const Path& path) const {
    return {path_links.data() + path.first, static_cast<std::size_t>(path.last - path.first)};
  }
  /// The path of a transfer that the local node sends.
  [[nodiscard]] const Path& path(const TaskCost& cost, std::size_t local) const { return paths[routings[cost.routing][local]]; }
  /// The duration of a task's work on a local node of a program.
  [[nodiscard]] Seconds work(std::uint32_t program, const TaskCost& cost, std::size_t local) const {
    return cost.on_core ? at_speed(cost.work, deployment.programs[program].devices[local]) : cost.work;
  }
  /// The time of core shares that the core of a local node spends behind one of its tasks, and before the first.
  [[nodiscard]] Seconds shares_behind(std::uint32_t program, std::size_t task, std::size_t local) const {
    return core_shares.empty() || core_shares[program].behind[task].empty() ? Seconds{} : core_shares[program].behind[task][local];
  }
  [[nodiscard]] Seconds shares_first(std::uint32_t program, std::size_t local) const {
    return core_shares.empty() ? Seconds{} : core_shares[program].first[local];
  }
  /// The time in which the receiver adds what the local node sends: the reduction of the Shift, or of the matching Recv.
  [[nodiscard]] Seconds reduction(std::uint32_t program, std::size_t task, std::size_t local) const;
  /// The path on which a work moves its bytes through the memory of a node; no_device: none.
  [[nodiscard]] std::uint32_t memory_path(const TaskCost& cost, std::uint32_t node) const {
    return memory_paths.empty() || cost.memory_bytes == 0 ? no_device : memory_paths[node];
  }
  /// What a task calls; nullptr: it is no Call.
  [[nodiscard]] const PlayedCall* call(std::uint32_t program, std::size_t task) const {
    const auto* call = std::get_if<Call>(&schedule->programs[program].tasks[task].op);
    return call == nullptr ? nullptr : &(*calls)[program][static_cast<std::size_t>(call->function)];
  }
  [[nodiscard]] Seconds at_speed(Seconds work, std::uint32_t node) const { return speed.empty() ? work : work / speed[node]; }
  [[nodiscard]] const Task& task(std::uint32_t program, std::size_t task) const { return schedule->programs[program].tasks[task]; }
};

/// The uncontended duration of a transfer, without its reduction.
Seconds unshared(const TaskCost& cost, const Path& path);

/// The uncontended duration of the activity of a task on a local node: work, or a transfer that it sends, with its reduction.
Seconds uncontended(const Model& model, std::uint32_t program, std::size_t task, std::size_t local);

/// Errors: a duration does not fit the clock, so that engines could not round it; cancelled work.
Status check_durations(const Model& model, Cancellation stop = {});

/// One node per device. Errors: the schedule does not deploy (its first problem), a placement of another size, chips that are not connected, a
/// duration that does not fit the clock; cancelled work.
/// Cost O(tasks + distinct participants * devices); a route is searched once per distinct (from, to, options).
/// A schedule with calls needs what they take (an assert), and cores of equal speed.
Expected<Model> make_model(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                           Cancellation stop = {}, std::shared_ptr<const PlayedCalls> calls = {});

struct Orbits;

/// The same for a deployment without problems. `orbits`: it has one node per orbit. Paths and links of the result are then those of the lowest device of
/// each.
Expected<Model> cost_deployment(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                Deployment deployment, Cancellation stop = {}, std::shared_ptr<const PlayedCalls> calls = {},
                                const Orbits* orbits = nullptr);

}  // namespace podsim
