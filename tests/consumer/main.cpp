// A program of another project: writes a schedule, has it proven, and lists what could time it.
#include <iostream>

#include "sim/engines/engines.hpp"
#include "sim/mesh/mesh.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"
#include "topologies/embedded_machines.hpp"

namespace {

/// Every device of a ring sends its shard to the next one.
podsim::Schedule neighbour_shift(const podsim::Mesh& mesh) {
  using namespace podsim;
  Program program{.devices = every_device(mesh), .buffers = {}, .tasks = {}};
  program.buffers.push_back({.name = "mine", .extents = {8}, .dtype = DType::f32, .role = Role::scratch, .tensor = {}, .sharding = {}});
  program.buffers.push_back({.name = "theirs", .extents = {8}, .dtype = DType::f32, .role = Role::scratch, .tensor = {}, .sharding = {}});
  Shift shift;
  shift.axis = mesh.whole(0);
  shift.by = 1;
  shift.source = {BufferId{0}, {all(8)}};
  shift.target = {BufferId{1}, {all(8)}};
  program.tasks.push_back({.label = "pass on", .op = shift, .after = {}, .where = {}, .origin = {}});
  return {.name = "neighbour shift", .mesh = mesh, .programs = {program}, .computes = {}};
}

}  // namespace

int main() {
  const auto mesh = podsim::Mesh::make({{"row", 4, true}});
  if (!mesh) {
    std::cerr << podsim::to_text(mesh.error()) << '\n';
    return 1;
  }
  const podsim::Schedule schedule = neighbour_shift(*mesh);
  const podsim::Validation validation = podsim::validate(schedule);
  std::cout << podsim::to_text(schedule) << podsim::to_text(validation.all());
  for (const podsim::EngineEntry& engine : podsim::all_timing_engines()) std::cout << "engine " << engine.name << '\n';
  for (const podsim::EmbeddedFile& machine : podsim::embedded_machines()) std::cout << "machine " << machine.name << '\n';
  return validation.ok() && !podsim::all_timing_engines().empty() && !podsim::embedded_machines().empty() ? 0 : 1;
}
