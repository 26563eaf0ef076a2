#include "workloads/chakra/chakra_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "workloads/chakra/groups.hpp"
#include "workloads/chakra/rank_writer.hpp"

namespace podsim {

namespace {

DeviceSet device_set(const std::vector<int>& ranks) {
  DeviceSet set;
  for (const int rank : ranks) {
    if (!set.intervals.empty() && set.intervals.back().last == rank)
      ++set.intervals.back().last;
    else
      set.intervals.push_back({rank, rank + 1});
  }
  return set;
}

/// Whether steps along the views never lead to another class.
bool closed(const Mesh& mesh, const std::vector<int>& class_of, const ProgramClass& ranks, const std::vector<AxisView>& axes) {
  for (const int rank : ranks.ranks)
    for (const AxisView& axis : axes)
      if (class_of[mesh.shifted(DeviceId{rank}, axis, 1).index()] != class_of[static_cast<std::size_t>(rank)]) return false;
  return true;
}

struct Classes {
  std::vector<ProgramClass> classes;
  std::vector<int> class_of;  // by rank
  std::string algorithm;
  int chunks = 0;
};

Expected<Classes> classes_of(const Mesh& mesh, const ChakraSource& read, GroupTable& groups, ChakraCost cost, bool shifts) {
  Classes found;
  MessageTable messages;
  std::vector<std::string> files;
  for (int rank = 0; rank < mesh.devices(); ++rank) {
    const auto trace = read(rank);
    if (!trace) return trace.error();
    files.push_back(trace->file);
    if (rank == 0) found.algorithm = trace->collective_algorithm, found.chunks = trace->collective_chunks;
    if (auto ok = groups.add(trace->groups); !ok) return Diagnostic{{trace->file}, ok.error().message};
    auto written = write_rank(mesh, groups, rank, cost, shifts, *trace, messages);
    if (!written) return written.error();
    const DeviceSet own = written->program.devices;
    const auto equal = std::find_if(found.classes.begin(), found.classes.end(), [&](ProgramClass& other) {
      written->program.devices = other.shared.program.devices;
      return written->program == other.shared.program;
    });
    found.class_of.push_back(static_cast<int>(equal - found.classes.begin()));
    if (equal != found.classes.end()) {
      equal->ranks.push_back(rank);
      continue;
    }
    written->program.devices = own;
    found.classes.push_back({*std::move(written), {rank}});
  }
  if (auto ok = messages.check(files); !ok) return ok.error();
  return found;
}

bool shifts_stay(const Mesh& mesh, const Classes& found) {
  for (const ProgramClass& one : found.classes) {
    std::set<AxisView> seen;
    for (const Task& task : one.shared.program.tasks)
      if (const auto* shift = std::get_if<Shift>(&task.op);
          shift != nullptr && seen.insert(shift->axis).second && !closed(mesh, found.class_of, one, {shift->axis}))
        return false;
  }
  return true;
}

/// Errors: a collective of ranks whose traces differ.
Status check_collectives(const Mesh& mesh, const Classes& found) {
  for (const ProgramClass& one : found.classes) {
    std::set<std::vector<AxisView>> seen;
    for (std::size_t t = 0; t < one.shared.program.tasks.size(); ++t) {
      const auto* collective = std::get_if<Collective>(&one.shared.program.tasks[t].op);
      if (collective == nullptr || !seen.insert(collective->axes).second || closed(mesh, found.class_of, one, collective->axes)) continue;
      return chakra_error(
          one.shared.file, one.shared.records[t],
          fmt::format("expected a collective of ranks whose traces have the same nodes and dependencies, found one of {} ranks with others",
                      devices_along(mesh, collective->axes, DeviceId{one.ranks.front()}).size()));
    }
  }
  return success();
}

}  // namespace

Expected<ChakraSchedule> chakra_schedule(const Mesh& mesh, const ChakraSource& read, const ChakraGroups& groups, ChakraCost cost) {
  GroupTable table{mesh, groups};
  auto found = classes_of(mesh, read, table, cost, true);
  if (!found) return found.error();
  if (!shifts_stay(mesh, *found)) {
    found = classes_of(mesh, read, table, cost, false);
    if (!found) return found.error();
  }
  if (!check_collectives(mesh, *found)) {
    found->classes = merged_by_shape(mesh, found->classes);
    for (std::size_t c = 0; c < found->classes.size(); ++c)
      for (const int rank : found->classes[c].ranks) found->class_of[static_cast<std::size_t>(rank)] = static_cast<int>(c);
    if (auto ok = check_collectives(mesh, *found); !ok) return ok.error();
  }
  ChakraSchedule result{{"chakra", mesh, {}, {}}, found->algorithm, found->chunks};
  for (ProgramClass& one : found->classes) {
    one.shared.program.devices = device_set(one.ranks);
    for (std::size_t t = 0; t < one.shared.labels.size(); ++t) one.shared.program.tasks[t].label = std::move(one.shared.labels[t]);
    result.schedule.programs.push_back(std::move(one.shared.program));
  }
  return result;
}

}  // namespace podsim
