#include "topologies/system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/base/blame.hpp"
#include "sim/base/rng.hpp"
#include "sim/config/files.hpp"
#include "sim/machine/hardware_ranges.hpp"
#include "topologies/machines.hpp"
#include "topologies/mesh_placement.hpp"
#include "topologies/nccl/nccl_system.hpp"

namespace podsim {

std::string to_text(const MeshOrder& order) {
  if (const auto* listed = std::get_if<ListedOrder>(&order)) return listed->file;
  return std::holds_alternative<SnakeOrder>(order) ? "snake" : std::holds_alternative<JaxOrder>(order) ? "jax" : "row-major";
}

namespace {

/// The grid that a mesh is laid over. It wraps where going on from the last coordinate to the first is a step like any other: on dimensions that the
/// topology closes, between slices, and between the two devices of a chip; over switches any part of a dimension does, too.
Expected<Grid> layout_of(const Machine& machine, const Slice& slice, const Topology& one, int slices) {
  std::vector<GridDimension> dimensions;
  if (slices > 1) dimensions.push_back({slices, true, {}, true});
  for (int d = 0; d < static_cast<int>(slice.extents.size()); ++d)
    dimensions.push_back({slice.extents[static_cast<std::size_t>(d)], one.closes(d), {}, one.parts_close(d)});
  if (machine.chip.devices > 1) dimensions.push_back({machine.chip.devices, true, {}});
  return Grid::make(std::move(dimensions));
}

MeshSizes default_axes(const Machine& machine, const Slice& slice, int slices) {
  static constexpr std::array names = {"row", "col", "depth", "axis3"};
  MeshSizes sizes;
  if (slices > 1) sizes.emplace_back("pod", slices);
  for (std::size_t d = 0; d < slice.extents.size(); ++d) sizes.emplace_back(names[d], slice.extents[d]);
  if (machine.chip.devices > 1) sizes.emplace_back("core", machine.chip.devices);
  return sizes;
}

/// What JAX calls this kind of device; other machines are laid out as GPUs are: by number.
DeviceKind kind_of(const Machine& machine) {
  const std::string name = machine.name.substr(0, machine.name.find(':'));  // NAME:spec, the data sheet, is the same device
  if (name == "tpu7x") return DeviceKind::tpu_v7;
  const auto kind = parse_device_kind(name, {});
  return kind ? *kind : DeviceKind::gpu;
}

Expected<PlacedMesh> place_as_jax(const Machine& machine, const Slice& slice, const Grid& grid, const MeshSizes& sizes, const JaxOrder& order) {
  const auto devices = jax_devices(device_list(machine, slice));
  if (!devices) return devices.error();
  std::vector<int> shape;
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes) names.push_back(name), shape.push_back(size);
  const auto assigned = assign_device_mesh(kind_of(machine), *devices, shape, {order.contiguous_submeshes, order.allow_split_axes});
  if (!assigned) return assigned.error();
  return place_device_mesh(*assigned, names, grid);
}

Expected<PlacedMesh> place_as_listed(const Grid& grid, const MeshSizes& sizes, const std::string& file) {
  const auto text = read_file(file, list_limit);
  if (!text) return blamed_on(of_field("mesh_order"), in_context("expected row-major, jax, snake or a file of chip numbers", text.error()));
  const auto order = parse_device_order(*text, file, grid);
  if (!order) return order.error();
  return place_in_order(grid, sizes, *order);
}

/// The devices that a mesh is laid over; empty: all in row-major order, whether listed or not.
Expected<std::vector<int>> devices_of(const SystemSpec& spec, const Grid& layout) {
  if (spec.devices.empty()) return std::vector<int>{};
  const auto wrong = [](std::string message) { return Diagnostic{of_field("devices"), std::move(message)}; };
  if (!spec.slice) return wrong("numbers devices of the `slice`, which is missing");
  if (!std::holds_alternative<RowMajorOrder>(spec.order))
    return wrong(fmt::format("says the order of devices itself; expected `mesh_order` row-major beside it, found {}", quoted(to_text(spec.order))));
  std::vector<bool> taken(static_cast<std::size_t>(layout.chips()), false);
  bool in_order = spec.devices.size() == taken.size();
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    const int device = spec.devices[i];
    if (device < 0 || device >= layout.chips())
      return wrong(fmt::format("expected devices from 0 to {} of the slice {}, found {}", layout.chips() - 1, to_text(*spec.slice), device));
    if (taken[static_cast<std::size_t>(device)]) return wrong(fmt::format("expected every device once, found {} again", device));
    taken[static_cast<std::size_t>(device)] = true;
    in_order = in_order && static_cast<std::size_t>(device) == i;
  }
  return in_order ? std::vector<int>{} : spec.devices;
}

/// The mesh on the chips, in the order asked for.
Expected<PlacedMesh> place(const SystemSpec& spec, const Slice& slice, const Topology& topology, const Grid& layout, const MeshSizes& sizes) {
  const Machine& machine = spec.machine;
  const auto* jax = std::get_if<JaxOrder>(&spec.order);
  if (std::holds_alternative<RowMajorOrder>(spec.order) || (jax != nullptr && kind_of(machine) == DeviceKind::gpu)) {
    auto mesh = mesh_over(layout, sizes);
    if (!mesh) return mesh.error();
    PlacedMesh placed{*std::move(mesh), {}};
    for (int d = 0; d < placed.mesh.devices(); ++d) {
      placed.placement.chip_of.emplace_back(d / machine.chip.devices);
      if (machine.chip.devices > 1) placed.placement.core_of.push_back(d % machine.chip.devices);
    }
    return placed;
  }
  const Grid* grid = topology.grid();
  if (grid == nullptr || spec.slices > 1)
    return Diagnostic{of_field("mesh_order"), "expected row-major on switches and on several slices, found " + quoted(to_text(spec.order))};
  if (jax != nullptr) return place_as_jax(machine, slice, *grid, sizes, *jax);
  const auto* listed = std::get_if<ListedOrder>(&spec.order);
  if (listed != nullptr && machine.chip.devices > 1)
    return Diagnostic{of_field("mesh_order"), "expected row-major, jax or snake on chips of two devices, found " + quoted(to_text(spec.order))};
  if (listed != nullptr) return place_as_listed(*grid, sizes, listed->file);
  return place_in_order(*grid, sizes, snake_order(*grid), machine.chip.devices);
}

/// The speed of every device; none: all as the machine says.
std::vector<double> speeds_of(const Faults& faults, const Placement& placement) {
  const std::size_t devices = placement.chip_of.size();
  std::vector<double> speed(faults.slow_devices.empty() ? 0 : devices, 1.0);
  for (const SlowDevices& slow : faults.slow_devices) {
    if (slow.chip) {
      for (std::size_t d = 0; d < devices; ++d)
        if (placement.chip_of[d] == *slow.chip) speed[d] = slow.speed;
      continue;
    }
    std::vector<std::size_t> order(devices);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Rng rng{faults.seed, stream_of("stragglers")};
    const auto count = static_cast<std::size_t>(std::ceil(slow.fraction * static_cast<double>(devices)));
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(order[i], order[i + rng.below(devices - i)]);
      speed[order[i]] = slow.speed;
    }
  }
  return speed;
}

/// Whether what joins the slice is not what the vendor offers.
bool joined_otherwise(const SystemSpec& spec, const Slice& slice) {
  using Kind = TopologySpec::Kind;
  // The slices of full cubes of 4 are offered twisted too: Google Cloud, "TPU v5p", supported topologies.
  const bool offered_twisted = spec.machine.slices.cube == 4 && std::all_of(slice.extents.begin(), slice.extents.end(), [](int e) { return e % 4 == 0; });
  switch (spec.topology.kind) {
    case Kind::as_built:
    case Kind::torus:
    case Kind::mesh: return false;
    case Kind::twisted: return !offered_twisted;
    case Kind::rail: return spec.machine.interconnect != Interconnect::rail;
    default: return true;
  }
}

Wrap wired(const SystemSpec& spec) {
  if (spec.topology.kind == TopologySpec::Kind::torus) return {Wrap::Rule::all, {}};
  if (spec.topology.kind == TopologySpec::Kind::mesh) return {Wrap::Rule::none, {}};
  return spec.wrap;
}

/// "the nodes and the GPUs of a node, as 1x8 or 4x8"
std::string slices_to_name(const Machine& machine) {
  const std::vector<int>& largest = machine.slices.largest;
  if (machine.interconnect == Interconnect::rail && largest.size() == 2) return fmt::format("the nodes and the GPUs of a node, as 1x{} or 4x{}", largest[1], largest[1]);
  const std::string examples = largest.size() == 3 ? "4x4x4 or 4x8x8" : largest.size() == 2 ? "4x4 or 16x16" : "16x16 or 4x8x8";
  const std::string name = machine.slices.name_prefix.empty() ? "" : fmt::format(", or the name of a slice, as {}-{}", machine.slices.name_prefix, (largest.size() == 3 ? 64 : 16) * machine.slices.cores_per_chip);
  return fmt::format("the chips per physical dimension, as {}{}", examples, name);
}

Expected<Slice> slice_of(const SystemSpec& spec) {
  if (spec.slice) return *spec.slice;
  if (spec.mesh.empty() && spec.topology.nccl != nullptr) return parse_slice(fmt::format("1x{}", spec.topology.nccl->gpus.size()), spec.machine, of_field("slice"));  // one node
  if (spec.mesh.empty()) return Diagnostic{{}, fmt::format("`slice` is missing: {}", slices_to_name(spec.machine))};
  std::string shape;
  for (const auto& [name, size] : spec.mesh) shape += (shape.empty() ? "" : "x") + std::to_string(size);
  return parse_slice(shape, spec.machine, of_field("slice"));
}

}  // namespace

Expected<System> make_system(const SystemSpec& spec) {
  auto slice = slice_of(spec);
  if (!slice) return slice.error();
  if (spec.strict_slice)
    if (auto offered = check_offered(spec.machine, *slice, of_field("strict_slice")); !offered) return offered.error();
  auto whole = build_topology(spec.machine, *slice, spec.wrap, spec.topology);
  if (!whole) return whole.error();
  auto layout = layout_of(spec.machine, *slice, **whole, spec.slices);
  if (!layout) return layout.error();
  auto devices = devices_of(spec, *layout);
  if (!devices) return devices.error();
  const MeshSizes one_axis{{"row", static_cast<int>(spec.devices.size())}};
  const MeshSizes sizes = !spec.mesh.empty() ? spec.mesh : !spec.devices.empty() ? one_axis : default_axes(spec.machine, *slice, spec.slices);
  auto placed = devices->empty() ? place(spec, *slice, **whole, *layout, sizes)
                                 : place_on_devices(*joined(*whole, spec.machine, *slice, spec.slices), spec.machine.chip.devices, sizes, *devices);
  if (!placed) return placed.error().where.file.empty() ? blamed_on(of_field(devices->empty() ? "mesh" : "devices"), placed.error()) : placed.error();
  const bool hypothetical = joined_otherwise(spec, *slice) || is_hypothetical(spec.machine, *slice, wired(spec));
  System system{spec.machine, *std::move(slice), spec.wrap, spec.topology, spec.slices, {}, hypothetical, *std::move(whole), nullptr, *std::move(layout),
                std::move(placed->mesh), spec.order, *std::move(devices), std::move(placed->placement)};
  return with_faults(system, spec.faults);
}

Expected<System> with_machine(System changed, Machine machine) {
  changed.machine = std::move(machine);
  auto whole = build_topology(changed.machine, changed.slice, changed.wrap, changed.joined_by);
  if (!whole) return whole.error();
  changed.whole_slice = *std::move(whole);
  auto slice = damaged(changed.whole_slice, changed.faults.broken, changed.faults.slow_cables);
  if (!slice) return slice.error();
  changed.topology = joined(*std::move(slice), changed.machine, changed.slice, changed.slices);
  return changed;
}

bool differ_in_machine_only(const System& one, const System& other) {
  const TopologySpec &a = one.joined_by, &b = other.joined_by;
  return one.slice == other.slice && one.wrap == other.wrap && a.kind == b.kind && a.leaf == b.leaf && a.oversubscription == b.oversubscription && a.network == b.network && a.nccl == b.nccl &&
         one.slices == other.slices && one.faults.broken == other.faults.broken && one.faults.slow_cables == other.faults.slow_cables && one.mesh == other.mesh &&
         one.placement.chip_of == other.placement.chip_of && one.placement.core_of == other.placement.core_of;
}

Expected<System> with_faults(const System& system, Faults faults) {
  auto slice = damaged(system.whole_slice, faults.broken, faults.slow_cables);
  if (!slice) return slice.error();
  System changed = system;
  changed.faults = std::move(faults);
  changed.topology = joined(*std::move(slice), changed.machine, changed.slice, changed.slices);
  changed.placement.speed = speeds_of(changed.faults, changed.placement);
  return changed;
}

Expected<System> on_axes(const System& system, const MeshSizes& sizes) {
  System changed = system;
  if (!system.devices.empty()) {
    const auto healthy = joined(system.whole_slice, system.machine, system.slice, system.slices);
    auto placed = place_on_devices(*healthy, system.machine.chip.devices, sizes, system.devices);
    if (!placed) return placed.error();
    changed.mesh = std::move(placed->mesh);
    return changed;
  }
  auto mesh = mesh_over(system.layout, sizes);
  if (!mesh) return mesh.error();
  changed.mesh = *std::move(mesh);
  return changed;
}

int idle_devices(const System& system) { return system.layout.chips() - system.mesh.devices(); }

int slow_devices(const System& system) {
  return static_cast<int>(std::count_if(system.placement.speed.begin(), system.placement.speed.end(), [](double speed) { return speed != 1; }));
}

std::vector<int> hosts_of(const System& system) {
  const std::vector<int> of_chip = hosts_of(system.machine, system.slice);
  const int hosts = *std::ranges::max_element(of_chip) + 1;
  std::vector<int> of_device;
  for (const ChipId chip : system.placement.chip_of) {
    const std::size_t in_slice = chip.index() % of_chip.size();
    of_device.push_back(static_cast<int>(chip.index() / of_chip.size()) * hosts + of_chip[in_slice]);
  }
  return of_device;
}

std::vector<Diagnostic> doubts_about(const System& system) {
  std::vector<Diagnostic> doubts = doubts_about(system.machine);
  const NcclSystem* const node = system.joined_by.nccl.get();
  if (node != nullptr && !node->gcn.empty() && std::ranges::count(shipped_machines(), system.machine.name) > 0)
    doubts.push_back({{system.joined_by.name}, fmt::format("the GPUs are AMD's ({}), which no shipped machine has: all but the links, as FLOP/s, memory and the time of a launch, is that of {}", node->gcn, system.machine.name)});
  return doubts;
}

bool is_hypothetical(const System& system) {
  return system.hypothetical || system.machine.trust.level == TrustLevel::hypothetical || !system.faults.none();
}

SystemChanges changes_of(const System& system) {
  SystemChanges changes{system.joined_by.name, system.slices, {}, {}, slow_devices(system), idle_devices(system)};
  for (const CableEnds& cable : system.faults.broken) changes.broken.push_back(to_text(cable, *system.whole_slice));
  for (const SlowCable& slow : system.faults.slow_cables)
    changes.slowed.push_back(fmt::format("{}={}", to_text(slow.cable, *system.whole_slice), slow.part));
  return changes;
}

std::string to_text(const SystemChanges& changes) {
  std::vector<std::string> parts;
  if (!changes.topology.empty()) parts.push_back(changes.topology);
  if (changes.slices > 1) parts.push_back(fmt::format("{} slices", changes.slices));
  for (const std::string& cable : changes.broken) parts.push_back("without " + cable);
  parts.insert(parts.end(), changes.slowed.begin(), changes.slowed.end());
  if (changes.slow_devices > 0) parts.push_back(fmt::format("{} slow device{}", changes.slow_devices, changes.slow_devices == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string to_text(const System& system) {
  const std::string changes = to_text(changes_of(system));
  const std::string part = idle_devices(system) == 0 ? "" : fmt::format(" on {} of {} devices", system.mesh.devices(), system.layout.chips());
  return fmt::format("{} {}{}{} {}{}", system.machine.name, to_text(system.slice), changes.empty() ? "" : " ", changes, to_text(system.mesh), part);
}

DeviceList device_list(const Machine& machine, const Slice& slice) {
  DeviceList list;
  list.kind = kind_of(machine);
  list.extents = slice.extents;
  list.extents.resize(3, 1);
  list.cores = machine.chip.devices;
  return list;
}

std::vector<int> device_numbers(const System& system) {
  std::vector<int> numbers;
  for (std::size_t d = 0; d < system.placement.chip_of.size(); ++d)
    numbers.push_back(system.placement.chip_of[d].value * system.machine.chip.devices + (system.placement.core_of.empty() ? 0 : system.placement.core_of[d]));
  return numbers;
}

std::string other_jax_order(const System& system) {
  if (!std::holds_alternative<RowMajorOrder>(system.order) || !system.devices.empty() || system.slices > 1) return {};
  SystemSpec spec{system.machine, system.slice, false, system.wrap, system.joined_by};
  for (const MeshAxis& axis : system.mesh.axes()) spec.mesh.emplace_back(axis.name, axis.size);
  for (const bool split : {false, true}) {
    spec.order = JaxOrder{split, false};
    const auto jax = make_system(spec);
    if (!jax) continue;
    if (device_numbers(*jax) == device_numbers(system)) return {};
    return split ? "--mesh-order jax --allow-split-axes" : "--mesh-order jax";
  }
  return {};
}

std::vector<int> jax_device_ids(const System& system) {
  const DeviceList list = device_list(system.machine, system.slice);
  std::vector<int> ids;
  for (std::size_t d = 0; d < system.placement.chip_of.size(); ++d) {
    int chip = system.placement.chip_of[d].value;
    if (list.kind != DeviceKind::gpu) {  // chips of a slice are row-major, z fastest; JAX counts x fastest
      const std::vector<int>& e = list.extents;
      const int size = e[0] * e[1] * e[2], in_slice = chip % size;
      const int z = in_slice % e[2], y = in_slice / e[2] % e[1], x = in_slice / e[2] / e[1];
      chip += x + e[0] * (y + e[1] * z) - in_slice;
    }
    ids.push_back(list.cores * chip + (system.placement.core_of.empty() ? 0 : system.placement.core_of[d]));
  }
  return ids;
}

}  // namespace podsim
