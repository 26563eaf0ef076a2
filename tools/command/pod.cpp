#include "tools/command/pod.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/blame.hpp"
#include "sim/base/rng.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/machine/machine_fields.hpp"
#include "topologies/machines.hpp"
#include "workloads/plan_config.hpp"

namespace podsim {

namespace {

Expected<std::vector<std::pair<std::string, int>>> parse_mesh(const std::string& text) {
  std::vector<std::pair<std::string, int>> sizes;
  for (const std::string& piece : split(text)) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string::npos || equals == 0)
      return Diagnostic{option("mesh"), "expected NAME=SIZE separated by commas, as row=32,col=8, found " + quoted(text)};
    const auto size = parse_integer(piece.substr(equals + 1), 1, 1 << 24, option("mesh"));
    if (!size) return size.error();
    sizes.emplace_back(piece.substr(0, equals), static_cast<int>(*size));
  }
  return sizes;
}

/// The grid that a mesh is laid over. It wraps where going on from the last coordinate to the first is a step like any other: on dimensions that the
/// topology closes, between slices, and between the two devices of a chip.
Expected<Grid> layout_of(const Machine& machine, const Slice& slice, const Topology& topology, int pods) {
  std::vector<GridDimension> dimensions;
  if (pods > 1) dimensions.push_back({pods, true, {}});
  for (std::size_t d = 0; d < slice.extents.size(); ++d) dimensions.push_back({slice.extents[d], topology.closes(static_cast<int>(d)), {}});
  if (machine.chip.devices > 1) dimensions.push_back({machine.chip.devices, true, {}});
  return Grid::make(std::move(dimensions));
}

std::vector<std::pair<std::string, int>> default_axes(const Machine& machine, const Slice& slice, int pods) {
  static constexpr std::array names = {"row", "col", "depth", "axis3"};
  std::vector<std::pair<std::string, int>> sizes;
  if (pods > 1) sizes.emplace_back("pod", pods);
  for (std::size_t d = 0; d < slice.extents.size(); ++d) sizes.emplace_back(names[d], slice.extents[d]);
  if (machine.chip.devices > 1) sizes.emplace_back("core", machine.chip.devices);
  return sizes;
}

/// "3.2=0.8": the devices of a chip; "random:1%=0.8": that part of all devices, rounded up, by the seed.
Done slow_down(const Topology& topology, const std::string& text, std::uint64_t seed, Placement& placement) {
  const std::size_t equals = text.find('=');
  const Diagnostic wrong{option("straggler"), "expected CHIP=PART or random:PERCENT%=PART, as 3.2=0.8 or random:1%=0.8, found " + quoted(text)};
  if (equals == std::string::npos) return wrong;
  const auto part = parse_number(text.substr(equals + 1), option("straggler"));
  if (!part) return part.error();
  if (!(*part > 0 && *part <= 1)) return Diagnostic{option("straggler"), "expected a part of the speed above 0 and up to 1, found " + quoted(text)};
  const std::size_t devices = placement.chip_of.size();
  placement.speed.resize(devices, 1.0);
  const std::string who = text.substr(0, equals);
  if (!who.starts_with("random:")) {
    const auto chip = chip_named(topology, who, option("straggler"));
    if (!chip) return chip.error();
    for (std::size_t d = 0; d < devices; ++d)
      if (placement.chip_of[d] == *chip) placement.speed[d] = *part;
    return done();
  }
  if (!who.ends_with('%')) return wrong;
  const auto percent = parse_number(who.substr(7, who.size() - 8), option("straggler"));
  if (!percent) return percent.error();
  if (!(*percent >= 0 && *percent <= 100)) return wrong;
  std::vector<std::size_t> order(devices);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng rng{seed, stream_of("stragglers")};
  const auto count = static_cast<std::size_t>(std::ceil(*percent / 100 * static_cast<double>(devices)));
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(order[i], order[i + rng.below(devices - i)]);
    placement.speed[order[i]] = *part;
  }
  return done();
}

/// What JAX calls this kind of device; other machines are laid out as GPUs are: by number.
DeviceKind kind_of(const Machine& machine) {
  if (machine.name == "tpu7x") return DeviceKind::tpu_v7;
  const auto kind = parse_device_kind(machine.name, {});
  return kind ? *kind : DeviceKind::gpu;
}

}  // namespace

DeviceList device_list(const Machine& machine, const Slice& slice) {
  DeviceList list;
  list.kind = kind_of(machine);
  list.extents = slice.extents;
  list.extents.resize(3, 1);
  list.cores = machine.chip.devices;
  return list;
}

namespace {

Expected<PlacedMesh> place_as_jax(const Machine& machine, const Slice& slice, const Grid& grid, const std::vector<std::pair<std::string, int>>& sizes,
                                  const PodRequest& request) {
  const auto devices = jax_devices(device_list(machine, slice));
  if (!devices) return devices.error();
  std::vector<int> shape;
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes) names.push_back(name), shape.push_back(size);
  const auto assigned = assign_device_mesh(kind_of(machine), *devices, shape, {request.contiguous_submeshes, request.allow_split_axes});
  if (!assigned) return assigned.error();
  return place_device_mesh(*assigned, names, grid);
}

/// The mesh on the chips, in the order asked for.
Expected<PlacedMesh> place(const Machine& machine, const Slice& slice, const Topology& topology, const Grid& layout,
                           const std::vector<std::pair<std::string, int>>& sizes, const PodRequest& request) {
  const Grid* grid = topology.grid();
  if (request.mesh_order == "row-major" || (request.mesh_order == "jax" && kind_of(machine) == DeviceKind::gpu)) {
    auto mesh = mesh_over(layout, sizes);
    if (!mesh) return mesh.error();
    PlacedMesh placed{*std::move(mesh), {}};
    for (int d = 0; d < placed.mesh.devices(); ++d) {
      placed.placement.chip_of.emplace_back(d / machine.chip.devices);
      if (machine.chip.devices > 1) placed.placement.core_of.push_back(d % machine.chip.devices);
    }
    return placed;
  }
  if (grid == nullptr || request.what_if.pods > 1)
    return Diagnostic{option("mesh-order"), "expected row-major on switches and on several slices, found " + quoted(request.mesh_order)};
  if (request.mesh_order == "jax") return place_as_jax(machine, slice, *grid, sizes, request);
  if (machine.chip.devices > 1)
    return Diagnostic{option("mesh-order"), "expected row-major or jax on chips of two devices, found " + quoted(request.mesh_order)};
  if (request.mesh_order == "snake") return place_in_order(*grid, sizes, snake_order(*grid));
  const auto text = read_file(request.mesh_order, list_limit);
  if (!text)
    return blamed_on(option("mesh-order"), in_context("expected row-major, jax, snake or a file of chip numbers", text.error()));
  const auto order = parse_device_order(*text, request.mesh_order, *grid);
  if (!order) return order.error();
  return place_in_order(*grid, sizes, *order);
}

Diagnostic no_machine() {
  return {{}, fmt::format("--machine is missing; shipped are {} (or give a textproto file)", fmt::join(shipped_machines(), ", "))};
}

}  // namespace

namespace {

bool same_values(const Machine& a, const Machine& b) {
  for (const MachineField& field : machine_fields())
    for (int entry = 0; entry < static_cast<int>(index_names(field.index).size()); ++entry)
      if (value_text(field, a, entry) != value_text(field, b, entry)) return false;
  return true;
}

}  // namespace

namespace {

/// "PATH=VALUE"
Done apply_set(Machine& machine, const std::string& set, const SourceLocation& where) {
  const std::size_t equals = set.find('=');
  if (equals == std::string::npos) return Diagnostic{where, "expected PATH=VALUE, found " + quoted(set)};
  return set_machine_value(machine, set.substr(0, equals), set.substr(equals + 1), "--set", where);
}

}  // namespace

int slow_devices(const Pod& pod) {
  return static_cast<int>(std::count_if(pod.placement.speed.begin(), pod.placement.speed.end(), [](double speed) { return speed != 1; }));
}

bool is_hypothetical(const Pod& pod) { return pod.hypothetical || pod.machine.trust.level == TrustLevel::hypothetical; }

std::string to_text(const WhatIf& what_if, int slow_devices) {
  std::vector<std::string> parts;
  if (!what_if.topology.empty()) parts.push_back(what_if.topology);
  if (what_if.pods > 1) parts.push_back(fmt::format("{} slices", what_if.pods));
  for (const std::string& cable : what_if.fail) parts.push_back("without " + cable);
  parts.insert(parts.end(), what_if.degrade.begin(), what_if.degrade.end());
  if (slow_devices > 0) parts.push_back(fmt::format("{} slow device{}", slow_devices, slow_devices == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string pod_text(const Pod& pod) {
  const std::string what_if = to_text(pod.what_if, slow_devices(pod));
  return fmt::format("{} {}{}{} {}", pod.machine.name, to_text(pod.slice), what_if.empty() ? "" : " ", what_if, to_text(pod.mesh));
}

Expected<Machine> machine_of(const std::string& name, const std::vector<std::string>& sets) {
  auto machine = find_machine(name);
  if (!machine || sets.empty()) return machine;
  const Machine found = *machine;
  for (const std::string& set : sets)
    if (auto ok = apply_set(*machine, set, option("set")); !ok) return ok.error();
  if (!same_values(found, *machine)) machine->trust.level = TrustLevel::hypothetical;  // what it was fitted to had other values
  return machine;
}

namespace {

Expected<Pod> make_pod_of(const PodRequest& request) {
  auto machine = machine_of(request.machine, request.sets);
  if (!machine) return machine.error();
  std::vector<std::pair<std::string, int>> sizes;
  if (!request.mesh.empty()) {
    auto parsed = parse_mesh(request.mesh);
    if (!parsed) return parsed.error();
    sizes = std::move(*parsed);
  }
  std::string shape = request.slice;
  if (shape.empty()) {
    if (sizes.empty()) return Diagnostic{{}, "--slice is missing: the chips per physical dimension, as 16x16 or 4x8x8"};
    for (const auto& [name, size] : sizes) shape += (shape.empty() ? "" : "x") + std::to_string(size);
  }
  auto slice = parse_slice(shape, *machine, option("slice"));
  if (!slice) return slice.error();
  if (request.strict_slice)
    if (auto offered = check_offered(*machine, *slice, option("strict-slice")); !offered) return offered.error();
  const auto wrap = parse_wrap(request.wrap, option("wrap"));
  if (!wrap) return wrap.error();
  auto topology = build_topology(*machine, *slice, *wrap, request.what_if);
  if (!topology) return topology.error();
  auto layout = layout_of(*machine, *slice, **topology, request.what_if.pods);
  if (!layout) return layout.error();
  auto placed = place(*machine, *slice, **topology, *layout, sizes.empty() ? default_axes(*machine, *slice, request.what_if.pods) : sizes, request);
  if (!placed) return placed.error().where.file.empty() ? blamed_on(option("mesh"), placed.error()) : placed.error();
  Placement placement = std::move(placed->placement);
  for (const std::string& straggler : request.stragglers)
    if (auto ok = slow_down(**topology, straggler, request.seed, placement); !ok) return ok.error();
  const std::string& asked = request.what_if.topology;
  const Wrap wired = asked == "torus" ? Wrap{Wrap::Rule::all, {}} : asked == "mesh" ? Wrap{Wrap::Rule::none, {}} : *wrap;
  // The slices of full cubes of 4 are offered twisted too: Google Cloud, "TPU v5p", supported topologies.
  const bool offered_twisted = asked == "twisted" && machine->slices.cube == 4 &&
                               std::all_of(slice->extents.begin(), slice->extents.end(), [](int extent) { return extent % 4 == 0; });
  const bool another =
      !asked.empty() && asked != "torus" && asked != "mesh" && !offered_twisted && !(asked == "rail" && machine->interconnect == Interconnect::rail);
  const bool hypothetical = another || is_hypothetical(*machine, *slice, wired);
  return Pod{*std::move(machine),     *std::move(slice),   *wrap, request.what_if, hypothetical, *std::move(topology), *std::move(layout),
             std::move(placed->mesh), std::move(placement)};
}

}  // namespace

Expected<Pod> make_pod(const PodRequest& request) {
  auto pod = make_pod_of(request);
  if (pod) return pod;
  // What an option is to blame for, where a plan stands in for it.
  const std::string& blamed = pod.error().where.file;
  const auto place = blamed.starts_with("--") ? request.places.find(std::string_view{blamed}.substr(2)) : request.places.end();
  return place == request.places.end() ? pod : blamed_on(place->second, pod.error());
}

Expected<Schedule> saved_schedule(const std::string& path) {
  const auto bytes = read_file(path, schedule_limit);
  if (!bytes) return bytes.error();
  return read_schedule(*bytes, path);
}

namespace {

/// All of a request but machine, slice and mesh.
Expected<PodRequest> request_of(const Options& options) {
  PodRequest request;
  request.wrap = options.text("wrap");
  request.sets = options.texts("set");
  request.mesh_order = options.text("mesh-order");
  request.allow_split_axes = options.flag("allow-split-axes");
  request.contiguous_submeshes = options.flag("contiguous-submeshes");
  request.strict_slice = options.flag("strict-slice");
  request.what_if.topology = options.has("topology") ? options.text("topology") : "";
  request.what_if.fail = options.texts("fail");
  request.what_if.degrade = options.texts("degrade");
  request.stragglers = options.texts("straggler");
  if (!options.has("pods")) return request;  // a verb without what-ifs
  const auto pods = options.integer("pods", 1, 1024);
  if (!pods) return pods.error();
  request.what_if.pods = static_cast<int>(*pods);
  const auto seed = options.integer("seed", 0, std::numeric_limits<std::int64_t>::max());
  if (!seed) return seed.error();
  request.seed = static_cast<std::uint64_t>(*seed);
  return request;
}

}  // namespace

Expected<Pod> pod_of(const Options& options, const std::string& default_machine) {
  const auto request = pod_request_of(options, default_machine);
  if (!request) return request.error();
  return make_pod(*request);
}

Expected<PodRequest> pod_request_anywhere(const Options& options, const std::string& default_machine) {
  if (!options.has("machine") && default_machine.empty() && !options.has("plan")) return no_machine();
  auto request = request_of(options);
  if (!request) return request.error();
  request->machine = options.has("machine") ? options.text("machine") : default_machine;
  return request;
}

namespace {

/// The machine that a plan names, with its values.
Done check_machine(const SavedPlan& plan) {
  auto machine = find_machine(plan.machine);
  if (!machine) return machine.error().where.file.empty() ? blamed_on(plan.places.at("machine"), machine.error()) : machine.error();
  for (std::size_t s = 0; s < plan.sets.size(); ++s)
    if (auto ok = apply_set(*machine, plan.sets[s], plan.places.at(fmt::format("set {}", s))); !ok) return ok;
  return done();
}

/// A plan says where it runs; the command line may say otherwise.
Done fill_in_plan(const Options& options, PodRequest& request) {
  const auto text = read_file(options.text("plan"), config_limit);
  if (!text) return text.error();
  const auto plan = read_plan(*text, options.text("plan"));
  if (!plan) return plan.error();
  if (!options.has("machine")) {
    if (auto ok = check_machine(*plan); !ok) return ok;
    request.machine = plan->machine;
    request.sets.insert(request.sets.begin(), plan->sets.begin(), plan->sets.end());
  }
  const auto fill_in = [&](const char* name, bool given, std::string& asked, const std::string& planned) {
    if (given) return;
    asked = planned;
    request.places[name] = plan->places.at(name);
  };
  fill_in("slice", !request.slice.empty(), request.slice, plan->slice);
  fill_in("mesh", !request.mesh.empty(), request.mesh, plan->mesh);
  fill_in("wrap", options.given("wrap"), request.wrap, plan->wrap);
  fill_in("mesh-order", options.given("mesh-order"), request.mesh_order, plan->mesh_order);
  fill_in("topology", options.has("topology"), request.what_if.topology, plan->topology);
  return done();
}

}  // namespace

Expected<PodRequest> pod_request_of(const Options& options, const std::string& default_machine) {
  const auto meshes = options.texts("mesh");
  if (meshes.size() > 1) return Diagnostic{option("mesh"), "expected one mesh; compare takes several"};
  auto request = pod_request_anywhere(options, default_machine);
  if (!request) return request.error();
  request->slice = options.has("slice") ? options.text("slice") : "";
  request->mesh = meshes.empty() ? "" : meshes.front();
  if (options.has("plan"))
    if (auto ok = fill_in_plan(options, *request); !ok) return ok.error();
  if (request->mesh.empty() && options.has("schedule")) {  // a saved schedule says what it is for
    const auto schedule = saved_schedule(options.text("schedule"));
    if (!schedule) return schedule.error();
    request->mesh = to_text(schedule->mesh);
  }
  return request;
}

Expected<std::vector<PodRequest>> pod_requests(const Options& options) {
  if (!options.has("machine")) return no_machine();
  std::vector<std::string> meshes = options.texts("mesh");
  if (meshes.empty()) meshes.emplace_back();
  const auto base = request_of(options);
  if (!base) return base.error();
  std::vector<PodRequest> requests;
  for (const std::string& machine : split(options.text("machine")))
    for (const std::string& slice : options.has("slice") ? split(options.text("slice")) : std::vector<std::string>{""})
      for (const std::string& topology : split(base->what_if.topology))
        for (const std::string& mesh : meshes) {
          PodRequest request = *base;
          request.machine = machine;
          request.slice = slice;
          request.what_if.topology = topology;
          request.mesh = mesh;
          if (mesh != "all") {
            requests.push_back(std::move(request));
            continue;
          }
          request.mesh.clear();
          const auto pod = make_pod(request);
          if (!pod) return pod.error();
          const int devices = pod->mesh.devices();
          for (int rows = devices; rows >= 1; --rows)
            if (devices % rows == 0) {
              request.mesh = fmt::format("row={},col={}", rows, devices / rows);
              requests.push_back(request);
            }
        }
  return requests;
}

}  // namespace podsim
