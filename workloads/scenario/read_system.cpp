#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/machine/machine_fields.hpp"
#include "topologies/machines.hpp"
#include "topologies/nccl/nccl_system.hpp"
#include "workloads/chakra/read_chakra.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/tuning/part_costs.hpp"

namespace podsim {

namespace {

Expected<MeshOrder> read_order(const Fields& fields) {
  const std::string text = fields.text("mesh_order");
  if (text == "row-major") return MeshOrder{RowMajorOrder{}};
  if (text == "snake") return MeshOrder{SnakeOrder{}};
  if (text == "jax") return MeshOrder{JaxOrder{fields.flag("allow_split_axes"), fields.flag("contiguous_submeshes")}};
  return MeshOrder{ListedOrder{text}};
}

/// Of a saved schedule, which says what it is for.
Expected<MeshSizes> mesh_of_schedule(const Fields& fields) {
  const auto schedule = schedule_named(fields);
  if (!schedule) return schedule.error();
  MeshSizes sizes;
  for (const MeshAxis& axis : schedule->mesh.axes()) sizes.emplace_back(axis.name, axis.size);
  return sizes;
}

/// Of execution traces: as podsim wrote down, if that has as many devices; else one axis of all ranks, where the slice is not given either.
Expected<MeshSizes> mesh_of_traces(const Fields& fields) {
  const std::string prefix = fields.text("chakra");
  const int ranks = chakra_ranks(prefix);
  if (ranks == 0) return Diagnostic{{chakra_file(prefix, 0)}, "expected the traces PREFIX.0.et, PREFIX.1.et, .., found none"};
  const auto first = read_chakra(prefix, 0);
  if (!first) return first.error();
  if (auto written = parse_mesh(first->mesh, {first->file}); written) {
    std::int64_t devices = 1;
    for (const auto& [name, size] : *written) devices = std::min<std::int64_t>(devices * size, std::int64_t{1} << 32);
    if (devices == ranks) return written;
  }
  return fields.has("slice") ? MeshSizes{} : MeshSizes{{"rank", ranks}};
}

/// Of a training step, which has a mesh of its own, or takes all devices; the slice and the number of slices too, where nothing is said of them.
Status complete_for_training(const Fields& fields, SystemSpec& spec) {
  MaxTextSystem system;
  if (fields.has("pods")) system.slices = spec.slices;
  if (spec.slice) system.devices = chips_of(*spec.slice) * spec.machine.chip.devices;
  const auto mesh = mesh_of_training(fields, system);
  if (!mesh) return mesh.error();
  for (const std::string_view axis : training_axes)
    if (const std::int64_t size = size_of(*mesh, axis); size > 1) spec.mesh.emplace_back(axis, static_cast<int>(size));
  if (spec.mesh.empty()) spec.mesh.emplace_back("data", 1);
  if (!fields.has("pods")) spec.slices = static_cast<int>(mesh->slice);
  if (spec.slice) return success();
  const std::int64_t devices = mesh->devices() / mesh->slice;
  const auto offered = devices % spec.machine.chip.devices == 0 ? offered_slices(spec.machine, devices / spec.machine.chip.devices) : std::vector<Slice>{};
  if (offered.empty()) return Diagnostic{fields.where("slice"), fmt::format("is missing, and {} has no slice of {} devices", spec.machine.name, devices)};
  spec.slice = offered.front();
  return success();
}

/// Of a topology that NCCL wrote; empty: none, or not known.
std::string machine_with_gpus_of(const Fields& fields) {
  const auto topology = fields.has("topology") ? parse_topology(fields.text("topology"), {}) : Expected<TopologySpec>{TopologySpec{}};
  return topology && topology->nccl ? std::string{topology->nccl->machine} : "";
}

}  // namespace

Expected<Machine> load_machine(const std::string& name_or_file, const std::vector<Override>& overrides) {
  auto machine = find_machine(name_or_file);
  if (!machine) return machine;
  return with_values(*std::move(machine), overrides, "--set", of_field("set"));
}

Expected<Machine> read_machine(const Fields& fields) {
  if (const std::string machine = fields.has("machine") ? "" : machine_with_gpus_of(fields); !machine.empty())
    return Diagnostic{{}, fmt::format("`machine` is missing; the GPUs of {} are those of {}", fields.text("topology"), machine)};
  if (!fields.has("machine"))
    return Diagnostic{{}, fmt::format("`machine` is missing; shipped are {} (or give a textproto file)", fmt::join(shipped_machines(), ", "))};
  auto machine = machine_named(fields, fields.text("machine"));
  if (!machine) return fields.of_named_file("machine", machine.error());
  Machine changed = *machine;
  for (const FieldText& set : fields.texts("set")) {
    const std::size_t equals = set.text.find('=');
    if (equals == std::string::npos) return Diagnostic{set.where, "expected PATH=VALUE, found " + quoted(set.text)};
    if (auto ok = set_machine_value(changed, set.text.substr(0, equals), set.text.substr(equals + 1), "--set", set.where); !ok) return ok.error();
  }
  if (fields.has("set") && !same_values(*machine, changed)) changed.trust.level = TrustLevel::hypothetical;  // what it was fitted to had other values
  return changed;
}

Expected<SystemSpec> read_system_spec(const Fields& fields, Machine machine) {
  SystemSpec spec;
  spec.machine = std::move(machine);
  if (fields.has("precision")) {
    const auto precision = fields.word("precision");
    if (!precision) return precision.error();
    spec.machine.chip.float32_passes = *precision == "default" ? 1 : *precision == "high" ? 3 : most_float32_passes;  // as jax.lax.Precision has them on TPUs
  }
  auto mesh = fields.has("mesh")       ? parse_mesh(fields.text("mesh"), fields.where("mesh"))
              : fields.has("schedule") ? mesh_of_schedule(fields)
              : fields.has("chakra")   ? mesh_of_traces(fields)
                                       : Expected<MeshSizes>{MeshSizes{}};
  if (!mesh) return fields.has("mesh") ? mesh.error() : fields.of_named_file(fields.has("schedule") ? "schedule" : "chakra", mesh.error());
  spec.mesh = *std::move(mesh);
  const bool trains = fields.has("training") || fields.has("maxtext");
  if (trains)
    for (auto& [axis, size] : spec.mesh) axis = training_axis(axis);
  if (fields.has("slice")) {
    auto slice = parse_slice(fields.text("slice"), spec.machine, fields.where("slice"));
    if (!slice) return slice.error();
    spec.slice = *std::move(slice);
  }
  spec.strict_slice = fields.flag("strict_slice");
  const auto wrap = parse_wrap(fields.text("wrap"), fields.where("wrap"));
  if (!wrap) return wrap.error();
  spec.wrap = *wrap;
  auto topology = parse_topology(fields.text("topology"), fields.where("topology"));
  if (!topology) return topology.error();
  spec.topology = *std::move(topology);
  const auto slices = fields.count("pods");
  if (!slices) return slices.error();
  spec.slices = static_cast<int>(*slices);
  if (trains && !fields.has("mesh") && (spec.slice || fields.has("maxtext")))
    if (auto ok = complete_for_training(fields, spec); !ok) return ok.error();
  if (trains && fields.has("mesh") && !spec.slice && spec.slices > 1) {  // what slices have beside the axis that tells them apart
    spec.slice = Slice{};
    for (const auto& [axis, size] : spec.mesh)
      if (axis != "slice") spec.slice->extents.push_back(size);
    if (spec.slice->extents.empty()) spec.slice->extents.push_back(1);
  }
  auto order = read_order(fields);
  if (!order) return order.error();
  spec.order = *std::move(order);
  if (!fields.has("devices")) return spec;
  if (!spec.slice) return Diagnostic{fields.where("devices"), "numbers devices of the `slice`, which is missing"};
  const std::int64_t count = chips_of(*spec.slice) * spec.machine.chip.devices * spec.slices;
  auto devices = parse_devices(fields.text("devices"), count, fields.where("devices"));
  if (!devices) return devices.error();
  spec.devices = *std::move(devices);
  return spec;
}

Expected<SystemSpec> read_system_spec(const Fields& fields) {
  auto machine = read_machine(fields);
  if (!machine) return machine.error();
  return read_system_spec(fields, *std::move(machine));
}

namespace {

/// Of "0.0-0.1=0.5" or "0.0-0.1=50%", behind `equals`. `what`: of the bandwidth, of the speed.
Expected<double> part_of(const std::string& text, std::size_t equals, std::string_view what, const SourceLocation& where) {
  std::string number = text.substr(equals + 1);
  const bool in_percent = number.ends_with('%');
  if (in_percent) number.pop_back();
  const auto part = parse_number(number, where);
  if (!part) return part.error();
  const double share = in_percent ? *part / 100 : *part;
  if (!(share > 0 && share <= 1)) return Diagnostic{where, fmt::format("expected a part of the {} above 0 and up to 1, found {}", what, quoted(text))};
  return share;
}
Expected<double> part_of_rate(const std::string& text, std::size_t equals, const SourceLocation& where) { return part_of(text, equals, "bandwidth", where); }

/// All cables of the switch that "rail:3" or "node:0" names; empty: the text has no such form. Errors: no such switch.
Expected<std::vector<CableEnds>> cables_of_switch(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text.find('-') != std::string::npos) return std::vector<CableEnds>{};
  const auto node = chip_named(topology, text.substr(0, colon) + " " + text.substr(colon + 1), where);
  if (!node) return node.error();
  std::vector<CableEnds> cables;
  for (const OutLink& out : topology.out_links(*node)) cables.push_back({out.to, *node});
  return cables;
}

}  // namespace

Expected<Faults> read_faults(const Fields& fields, const System& system) {
  Faults faults;
  for (const FieldText& given : fields.texts("fail")) {
    const auto of_switch = cables_of_switch(*system.whole_slice, given.text, given.where);
    if (!of_switch) return of_switch.error();
    faults.broken.insert(faults.broken.end(), of_switch->begin(), of_switch->end());
    if (!of_switch->empty()) continue;
    const auto cable = parse_cable(*system.whole_slice, given.text, given.where);
    if (!cable) return cable.error();
    faults.broken.push_back(*cable);
  }
  for (const FieldText& given : fields.texts("degrade")) {
    const std::size_t equals = given.text.find('=');
    const auto of_switch = cables_of_switch(*system.whole_slice, given.text.substr(0, equals), given.where);
    if (!of_switch) return of_switch.error();
    if (!of_switch->empty() && equals != std::string::npos) {
      const auto part = part_of_rate(given.text, equals, given.where);
      if (!part) return part.error();
      for (const CableEnds& cable : *of_switch) faults.slow_cables.push_back({cable, *part});
      continue;
    }
    const auto slow = parse_slow_cable(*system.whole_slice, given.text, given.where);
    if (!slow) return slow.error();
    faults.slow_cables.push_back(*slow);
  }
  for (const FieldText& given : fields.texts("straggler")) {
    const auto slow = parse_slow_devices(*system.topology, given.text, given.where);
    if (!slow) return slow.error();
    faults.slow_devices.push_back(*slow);
  }
  const auto seed = fields.count("seed");
  if (!seed) return seed.error();
  faults.seed = static_cast<std::uint64_t>(*seed);
  return faults;
}

Expected<System> read_system(const Fields& fields, Machine machine) {
  const auto spec = read_system_spec(fields, std::move(machine));
  if (!spec) return spec.error();
  auto system = make_system(*spec);
  if (!system) return fields.placed(system.error());
  auto faults = read_faults(fields, *system);
  if (!faults) return faults.error();
  system = with_faults(*system, *std::move(faults));
  return system ? system : fields.placed(system.error());
}

Expected<System> read_system(const Fields& fields) {
  auto machine = read_machine(fields);
  if (!machine) return machine.error();
  return read_system(fields, *std::move(machine));
}

Expected<MeshSizes> parse_mesh(const std::string& text, const SourceLocation& where) {
  MeshSizes sizes;
  for (const std::string& piece : split(text)) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string::npos || equals == 0)
      return Diagnostic{where, "expected NAME=SIZE separated by commas, as row=32,col=8, found " + quoted(text)};
    const auto size = parse_integer(piece.substr(equals + 1), 1, 1 << 24, where);
    if (!size) return size.error();
    sizes.emplace_back(piece.substr(0, equals), static_cast<int>(*size));
  }
  return sizes;
}

Expected<Mesh> parse_axes(const std::string& text, const SourceLocation& where) {
  const auto sizes = parse_mesh(text, where);
  if (!sizes) return sizes.error();
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : *sizes) axes.push_back({name, size});
  auto mesh = Mesh::make(std::move(axes));
  if (!mesh) return Diagnostic{where, mesh.error().message};
  return mesh;
}

Expected<std::vector<int>> parse_devices(const std::string& text, std::int64_t count, const SourceLocation& where) {
  std::vector<int> devices;
  std::set<int> seen;
  std::size_t column = 1;
  for (const std::string& piece : split(text)) {
    SourceLocation here = where;
    if (here.line == 0 && !here.is_field) here = {where.file, 1, static_cast<int>(column)};  // of a command line
    const auto device = parse_integer(piece, 0, count - 1, here);
    if (!device)
      return Diagnostic{here, count == 1 ? fmt::format("expected 0, the only device, found {}", quoted(piece))
                                         : fmt::format("expected devices from 0 to {}, separated by commas, found {}", count - 1, quoted(piece))};
    if (!seen.insert(static_cast<int>(*device)).second) return Diagnostic{here, fmt::format("expected every device once, found {} again", *device)};
    devices.push_back(static_cast<int>(*device));
    column += piece.size() + 1;
  }
  return devices;
}

Expected<SlowCable> parse_slow_cable(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return Diagnostic{where, "expected CABLE=PART, as 0.0-0.1=0.5, found " + quoted(text)};
  const auto cable = parse_cable(topology, text.substr(0, equals), where);
  if (!cable) return cable.error();
  const auto part = part_of_rate(text, equals, where);
  if (!part) return part.error();
  return SlowCable{*cable, *part};
}

Expected<SlowDevices> parse_slow_devices(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const std::size_t equals = text.find('=');
  const Diagnostic wrong{where, "expected CHIP=PART or random:PERCENT%=PART, as 3.2=0.8 or random:1%=0.8, found " + quoted(text)};
  if (equals == std::string::npos) return wrong;
  const auto part = part_of(text, equals, "speed", where);
  if (!part) return part.error();
  const std::string who = text.substr(0, equals);
  if (!who.starts_with("random:")) {
    const auto chip = chip_named(topology, who, where);
    if (!chip) return chip.error();
    return SlowDevices{*chip, 0, *part};
  }
  if (!who.ends_with('%')) return wrong;
  const auto percent = parse_number(who.substr(7, who.size() - 8), where);
  if (!percent) return percent.error();
  if (!(*percent >= 0 && *percent <= 100)) return wrong;
  return SlowDevices{{}, *percent / 100, *part};
}

Expected<Fields> with_plan(Fields fields) {
  if (!fields.has("plan")) return fields;
  const auto plan = plan_named(fields);
  if (!plan) return fields.of_named_file("plan", plan.error());
  fields.complete(plan->system);
  return fields;
}

Expected<Machine> machine_named(const Fields& fields, const std::string& name_or_file) {
  if (fields.known != nullptr)
    if (const auto known = fields.known->machines.find(name_or_file); known != fields.known->machines.end()) return known->second;
  return find_machine(name_or_file);
}

Expected<Schedule> schedule_named(const Fields& fields) {
  const std::string path = fields.text("schedule");
  if (fields.known != nullptr)
    if (const auto known = fields.known->schedules.find(path); known != fields.known->schedules.end()) return known->second;
  return load_schedule(path);
}

Expected<TrainingModel> model_named(const Fields& fields, const std::string& name) {
  if (fields.known != nullptr)
    if (const auto known = fields.known->models.find(name); known != fields.known->models.end()) return known->second;
  return find_training_model(name);
}

Expected<SavedPlan> plan_named(const Fields& fields) {
  const std::string path = fields.text("plan");
  if (fields.known != nullptr)
    if (const auto known = fields.known->plans.find(path); known != fields.known->plans.end()) return known->second;
  return load_plan(path);
}

Expected<Schedule> load_schedule(const std::string& path) {
  const auto bytes = read_file(path, schedule_limit);
  if (!bytes) return bytes.error();
  return read_schedule(*bytes, path);
}

Expected<SavedPlan> load_plan(const std::string& path) {
  const auto text = read_file(path, config_limit);
  if (!text) return text.error();
  return read_plan(*text, path);
}

Expected<RunOptions> read_run_options(const Fields& fields) {
  RunOptions options;
  const auto engine = timing_engine(fields.text("engine"));
  if (!engine) return Diagnostic{fields.where("engine"), engine.error().message};
  options.engine = *engine;
  const auto fold = fields.word("fold"), calls = fields.word("calls");
  for (const auto* word : {&fold, &calls})
    if (!*word) return word->error();
  options.fold = *fold == "auto";
  options.inline_calls = *calls == "inline";
  options.force = fields.flag("force");
  return options;
}

}  // namespace podsim
