#include "tools/page/recorded_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/analysis/peak_memory.hpp"
#include "tools/page/recorded_network.hpp"
#include "tools/page/recorded_pipeline.hpp"
#include "tools/page/recorded_timelines.hpp"

namespace podsim {

namespace {

/// The names of what memory is live for, by program and buffer: of a training step its kinds; otherwise roles, and of scratch what writes it.
class MemoryKinds {
 public:
  MemoryKinds(const Run& run, std::vector<std::string>& names) : run_{run}, names_{names}, of_(run.model.schedule->programs.size()) {}

  std::uint32_t of(std::uint32_t program, const std::optional<BufferId>& buffer) {
    if (!buffer) return number("functions");
    std::vector<std::string_view>& kinds = of_[program];
    if (kinds.empty()) kinds = kinds_of(program);
    return number(kinds[buffer->index()]);
  }

 private:
  static constexpr std::string_view other = "other";

  static std::string_view name_of(MemoryKind kind) {
    switch (kind) {
      case MemoryKind::weights: return "weights";
      case MemoryKind::gradients: return "gradients";
      case MemoryKind::optimizer: return "optimizer";
      case MemoryKind::activations: return "activations";
      case MemoryKind::working: break;
    }
    return "working";
  }

  [[nodiscard]] std::vector<std::string_view> kinds_of(std::uint32_t p) const {
    const Program& program = run_.model.schedule->programs[p];
    std::vector<std::string_view> kinds(program.buffers.size(), other);
    if (run_.row.problem.training != nullptr) {
      const std::vector<MemoryKind>& known = run_.row.problem.training->memory[p];
      for (std::size_t b = 0; b < kinds.size(); ++b) kinds[b] = name_of(b < known.size() ? known[b] : MemoryKind::working);
      return kinds;
    }
    for (std::size_t b = 0; b < kinds.size(); ++b) {
      if (program.buffers[b].role == Role::input) kinds[b] = "inputs";
      if (program.buffers[b].role == Role::output) kinds[b] = "outputs";
    }
    // What a transfer and a product or copy write, such as a gathered array with the own block in it, is received; products come before copies.
    const auto written = [&](const Region& region, std::string_view kind, auto... weaker) {
      if (std::string_view& known = kinds[region.buffer.index()]; known == other || ((known == weaker) || ...)) known = kind;
    };
    constexpr std::string_view received = "received", products = "products", copies = "copies and elementwise";
    for (const Task& task : program.tasks) {
      if (const auto* matmul = std::get_if<Matmul>(&task.op)) written(matmul->out, products, copies);
      if (const auto* local = std::get_if<Local>(&task.op))
        for (const Region& region : local->writes) written(region, copies);
      if (const auto* shift = std::get_if<Shift>(&task.op)) written(shift->target, received, products, copies);
      if (const auto* recv = std::get_if<Recv>(&task.op)) written(recv->target, received, products, copies);
    }
    return kinds;
  }

  std::uint32_t number(std::string_view name) {
    const auto known = std::find(names_.begin(), names_.end(), name) - names_.begin();
    if (known == std::ssize(names_)) names_.emplace_back(name);
    return static_cast<std::uint32_t>(known);
  }

  const Run& run_;
  std::vector<std::string>& names_;
  std::vector<std::vector<std::string_view>> of_;  // by program and buffer, once asked for
};

/// One change per time and kind: a buffer that ends where one of its kind begins changes nothing.
std::vector<RecordedChange> joined(const std::vector<MemoryChange>& history, std::uint32_t program, MemoryKinds& kinds) {
  std::vector<RecordedChange> joined;
  std::size_t moment = 0;  // the first change of the time
  for (const MemoryChange& change : history) {
    if (moment < joined.size() && joined[moment].at != change.at) moment = joined.size();
    const std::uint32_t kind = kinds.of(program, change.buffer);
    const auto same = std::find_if(joined.begin() + static_cast<std::ptrdiff_t>(moment), joined.end(), [&](const RecordedChange& known) { return known.kind == kind; });
    if (same == joined.end())
      joined.push_back({change.at, kind, change.by});
    else
      same->by += change.by;
  }
  std::erase_if(joined, [](const RecordedChange& change) { return change.by == Bytes{}; });
  return joined;
}

void add_memory(Record& record, const Run& run) {
  std::vector<DeviceId> devices;
  for (const RecordedTimeline& timeline : record.timelines) devices.push_back(DeviceId{timeline.device});
  const auto histories = memory_histories(run.model, run.timeline, devices);
  MemoryKinds kinds{run, record.memory_kinds};
  std::size_t changes = 0;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const std::uint32_t program = run.model.deployment.places[run.model.node_of[devices[d].index()]].program;
    std::vector<RecordedChange> memory = joined(histories[d], program, kinds);
    if ((changes += memory.size()) > most_changes) {
      record.missing.push_back(fmt::format("live memory of {} of {} devices", devices.size() - d, devices.size()));
      return;
    }
    record.timelines[d].memory = std::move(memory);
  }
}

}  // namespace

Expected<Record> record_of(const Run& run, const Details& details, std::string command, std::string podsim_version, Cancellation stop,
                           const TimelineCounting& counting) {
  Record record{std::move(podsim_version), std::move(command), recorded_result(result_json(run, details)), sourced_values(run.system->machine), {}, {}, {}};
  add_timelines(record, run, details.devices, counting);
  add_memory(record, run);
  record.pipeline = pipeline_of(run);
  if (run.system->topology->nodes() > most_drawn_nodes) {
    record.missing.push_back(fmt::format("the drawing of the links: {} nodes, and at most {} are drawn", run.system->topology->nodes(), most_drawn_nodes));
    return record;
  }
  auto network = network_of(run, stop);
  if (!network) return network.error();
  record.network = *std::move(network);
  return record;
}

}  // namespace podsim
