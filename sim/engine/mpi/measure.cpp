#include "sim/engine/mpi/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "sim/base/csv.hpp"
#include "sim/base/statistics.hpp"

namespace podsim {

namespace {

/// A task instance as it travels to the root.
struct Instance {
  std::uint32_t device = 0, task = 0, peer = 0, program = 0, activity = 0;
  RankTask::Part part = RankTask::Part::work;
  bool on_core = false;
  std::int64_t start_ns = 0, end_ns = 0;
};

Instance instance_of(const Activity& activity, const RankTask& task, const Times& times, Moment began) {
  Instance instance;
  const bool receives = task.part == RankTask::Part::receive;
  const DeviceId device = receives ? activity.receiver : activity.device, peer = receives ? activity.device : activity.receiver;
  instance.device = static_cast<std::uint32_t>(device.value);
  instance.task = static_cast<std::uint32_t>((receives ? activity.receiver_task : activity.task).value);
  instance.peer = static_cast<std::uint32_t>(peer.value);
  instance.program = receives ? activity.receiver_program : activity.program;
  instance.activity = task.activity;
  instance.part = task.part;
  instance.on_core = task.on_core;
  instance.start_ns = times.start.ns - began.ns;
  instance.end_ns = times.end.ns - began.ns;
  return instance;
}

std::string_view name_of(const Instance& instance) {
  switch (instance.part) {
    case RankTask::Part::work: return instance.on_core ? "core" : "dma";
    case RankTask::Part::send: return "send";
    case RankTask::Part::receive: return "receive";
  }
  return "";
}

std::string row_of(const Schedule& lowered, const Instance& instance) {
  const Task& task = lowered.programs[instance.program].tasks[instance.task];
  const std::string peer = instance.part == RankTask::Part::work ? "" : fmt::format("{}", instance.peer);
  const std::string collective = task.origin ? fmt::format("{}", task.origin->collective) : "";
  const std::string_view origin = task.origin ? name_of(task.origin->kind) : "";
  return csv_row({std::to_string(instance.device), std::to_string(instance.task), std::string{name_of(instance)}, peer,
                  fmt::format("{:.9f}", 1e-9 * static_cast<double>(instance.start_ns)),
                  fmt::format("{:.9f}", 1e-9 * static_cast<double>(instance.end_ns)), task.label, collective, std::string{origin}});
}

/// Of all ranks, at the root.
std::vector<Instance> gathered(const RankRunner& runner, const Measured& measured, const Team& team) {
  std::string mine(runner.tasks().size() * sizeof(Instance), '\0');
  for (std::size_t t = 0; t < runner.tasks().size(); ++t) {
    const RankTask& task = runner.tasks()[t];
    const Instance instance = instance_of(runner.graph().activities[task.activity], task, measured.fastest[t], measured.began);
    std::memcpy(mine.data() + t * sizeof(Instance), &instance, sizeof(Instance));
  }
  const std::string all = team.at_root(mine);
  std::vector<Instance> instances(all.size() / sizeof(Instance));
  if (!instances.empty()) std::memcpy(instances.data(), all.data(), all.size());
  return instances;
}

}  // namespace

Seconds minimum(const Measured& measured) { return *std::min_element(measured.makespans.begin(), measured.makespans.end()); }

Seconds median(const Measured& measured) {
  std::vector<double> seconds;
  for (const Seconds makespan : measured.makespans) seconds.push_back(makespan.count());
  return Seconds{podsim::median(std::move(seconds))};
}

Measured measure(RankRunner& runner, const Team& team, const MeasureOptions& options) {
  Measured measured;
  for (int i = 0; i <= options.repeat; ++i) {
    if (i == 0 || options.fill_each) runner.fill(options.seed, Filling::uniform);
    const Moment together = team.start_together(runner.between_looks());
    runner.run();
    Moment first{INT64_MAX}, last = together;
    for (const Times& times : runner.times()) first = std::min(first, times.start), last = std::max(last, times.end);
    const Moment began = team.earliest(first), ended = team.latest(last);
    if (i == 0) continue;
    const Seconds makespan = std::max(ended - std::min(began, ended), Seconds{});  // no task at all: no time
    const bool best = measured.makespans.empty() || makespan < minimum(measured);
    measured.makespans.push_back(makespan);
    if (!best) continue;
    measured.began = std::min(began, ended);
    measured.fastest.assign(runner.times().begin(), runner.times().end());
  }
  Seconds core;
  for (std::size_t t = 0; t < measured.fastest.size(); ++t)
    if (runner.tasks()[t].on_core) core = core + (measured.fastest[t].end - measured.fastest[t].start);
  measured.core = team.largest(core);
  return measured;
}

Status worked_on_its_data(const RankRunner& runner, const Team& team) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  const std::int64_t mine = runner.failure() ? runner.failure()->task : none;
  const bool first = team.least(mine) == mine && mine != none;
  return team.agree(first ? Status{runner.failure()->why} : success());
}

std::string timeline_csv(const Schedule& lowered, const RankRunner& runner, const Measured& measured, const Team& team) {
  std::vector<Instance> instances = gathered(runner, measured, team);
  std::sort(instances.begin(), instances.end(), [](const Instance& a, const Instance& b) {
    return std::tuple{a.start_ns, a.device, a.task, a.part} < std::tuple{b.start_ns, b.device, b.task, b.part};
  });
  std::string text = "device,task,part,peer,start_s,end_s,label,collective,origin\n";
  for (const Instance& instance : instances) text += row_of(lowered, instance);
  return text;
}

Expected<Timeline> measured_timeline(const RankRunner& runner, const Measured& measured, const Team& team) {
  const std::vector<Instance> instances = gathered(runner, measured, team);
  if (!team.is_root()) return Timeline{};
  std::vector<ActivityTimes> times(runner.graph().activities.size());
  const auto clock = [](std::int64_t ns) { return Picoseconds{1000 * std::max<std::int64_t>(ns, 0)}; };
  for (const Instance& instance : instances) {
    ActivityTimes& activity = times[instance.activity];
    activity.start = std::max(activity.start, clock(instance.start_ns));  // of a transfer, when both halves are posted
    (instance.part == RankTask::Part::receive ? activity.received : activity.sent) = clock(instance.end_ns);
  }
  for (ActivityTimes& activity : times) {
    activity.sent = std::max(activity.sent, activity.start);
    activity.received = std::max(activity.received, activity.sent);
  }
  return make_timeline(times, {}, 0);
}

}  // namespace podsim
