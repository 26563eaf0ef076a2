#include "sim/machine/machine_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "sim/base/units.hpp"
#include "sim/machine/field_text.hpp"
#include "sim/machine/hardware_ranges.hpp"
#include "sim/topology/grid.hpp"

namespace podsim {
namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();

// Beyond these a value is a slip of a unit, and sums of durations could leave the clock.
constexpr double longest_time = 3600;
constexpr double least_bandwidth = 1e3;
constexpr double least_flops = 1e6;
constexpr double most_devices = 2;  // per chip
constexpr double largest_tile = 65536;
constexpr double least_efficiency = 1e-3;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

template <BytesPerSecond Chip::*member>
double get_rate(const Machine& machine, int) {
  return (machine.chip.*member).count();
}
template <BytesPerSecond Chip::*member>
void set_rate(Machine& machine, int, double value) {
  machine.chip.*member = BytesPerSecond{value};
}
template <int Chip::*member>
double get_integer(const Machine& machine, int) {
  return machine.chip.*member;
}
template <int Chip::*member>
void set_integer(Machine& machine, int, double value) {
  machine.chip.*member = static_cast<int>(value);
}
template <double Chip::*member>
double get_number(const Machine& machine, int) {
  return machine.chip.*member;
}
template <double Chip::*member>
void set_number(Machine& machine, int, double value) {
  machine.chip.*member = value;
}

template <BytesPerSecond Chip::*member>
constexpr MachineField chip_rate(std::string_view name, std::string_view meaning) {
  return {"chip", name, FieldIndex::none, false, FieldUnit::bytes_per_second, least_bandwidth, no_bound, meaning, get_rate<member>, set_rate<member>};
}
template <int Chip::*member>
constexpr MachineField chip_integer(std::string_view name, double high, std::string_view meaning) {
  return {"chip", name, FieldIndex::none, false, FieldUnit::integer, 1, high, meaning, get_integer<member>, set_integer<member>};
}
template <double Chip::*member>
constexpr MachineField chip_number(std::string_view name, double low, double high, std::string_view meaning) {
  return {"chip", name, FieldIndex::none, false, FieldUnit::number, low, high, meaning, get_number<member>, set_number<member>};
}

template <BytesPerSecond DataCentre::*member>
constexpr MachineField dcn_rate(std::string_view name, std::string_view meaning) {
  return {"dcn",
          name,
          FieldIndex::none,
          false,
          FieldUnit::bytes_per_second,
          least_bandwidth,
          no_bound,
          meaning,
          [](const Machine& m, int) { return (m.dcn.*member).count(); },
          [](Machine& m, int, double v) { m.dcn.*member = BytesPerSecond{v}; }};
}
template <Seconds DataCentre::*member>
constexpr MachineField dcn_time(std::string_view name, std::string_view meaning) {
  return {"dcn",
          name,
          FieldIndex::none,
          false,
          FieldUnit::seconds,
          0,
          longest_time,
          meaning,
          [](const Machine& m, int) { return (m.dcn.*member).count(); },
          [](Machine& m, int, double v) { m.dcn.*member = Seconds{v}; }};
}

constexpr MachineField optional(MachineField field) {
  field.optional = true;
  return field;
}

// Capacity is whole bytes; the largest count stands for "unlimited", as infinity does in the table.
double get_hbm(const Machine& machine, int) {
  const std::int64_t count = machine.chip.hbm.count();
  return count == std::numeric_limits<std::int64_t>::max() ? no_bound : static_cast<double>(count);
}
void set_hbm(Machine& machine, int, double value) {
  machine.chip.hbm = Bytes{std::isinf(value) ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(value)};
}

std::vector<EfficiencyPoint>& curve_of(Machine& machine, int collective) {
  return machine.software.efficiency[at(static_cast<int>(cost_kind_of(static_cast<CollectiveKind>(collective))))];
}
const std::vector<EfficiencyPoint>& curve_of(const Machine& machine, int collective) {
  return machine.software.efficiency[at(static_cast<int>(cost_kind_of(static_cast<CollectiveKind>(collective))))];
}

constexpr std::array table{
    optional(chip_integer<&Chip::devices>("devices", most_devices, "devices per chip, which share its links")),
    optional({"chip", "inner_bandwidth", FieldIndex::none, false, FieldUnit::bytes_per_second, least_bandwidth, no_bound,
              "of one direction of the link between two devices of a chip", [](const Machine& m, int) { return m.chip.inner.bandwidth.count(); },
              [](Machine& m, int, double v) { m.chip.inner.bandwidth = BytesPerSecond{v}; }}),
    optional({"chip", "inner_latency", FieldIndex::none, false, FieldUnit::seconds, 0, longest_time, "of the link between two devices of a chip",
              [](const Machine& m, int) { return m.chip.inner.latency.count(); },
              [](Machine& m, int, double v) { m.chip.inner.latency = Seconds{v}; }}),
    MachineField{"chip", "peak", FieldIndex::peak, false, FieldUnit::flops_per_second, least_flops, no_bound, "matmul rate of one device",
                 [](const Machine& m, int i) { return m.chip.peak[at(i)].count(); },
                 [](Machine& m, int i, double v) { m.chip.peak[at(i)] = FlopsPerSecond{v}; }, "f32", false, static_cast<int>(DType::f8e4m3fn)},
    chip_integer<&Chip::float32_passes>("float32_passes", most_float32_passes, "of one float32 product: in bf16 where the f32 peak is derived, otherwise TF32 below 6"),
    MachineField{"chip", "vector_peak", FieldIndex::none, false, FieldUnit::flops_per_second, least_flops, no_bound, "rate of everything but matmuls",
                 [](const Machine& m, int) { return m.chip.vector_peak.count(); },
                 [](Machine& m, int, double v) { m.chip.vector_peak = FlopsPerSecond{v}; }},
    chip_integer<&Chip::matmul_tile_m>("matmul_tile_m", largest_tile, "rows of the result are padded to multiples of this"),
    chip_integer<&Chip::matmul_tile_n>("matmul_tile_n", largest_tile, "columns of the result are padded to multiples of this"),
    chip_integer<&Chip::matmul_tile_k>("matmul_tile_k", largest_tile, "the contraction is padded to multiples of this"),
    chip_integer<&Chip::layout_sublanes>("layout_sublanes", largest_tile, "rows of the tile in which memory is laid out"),
    chip_integer<&Chip::layout_lanes>("layout_lanes", largest_tile, "columns of the tile in which memory is laid out"),
    MachineField{"chip", "matmul_efficiency", FieldIndex::none, false, FieldUnit::matmul_efficiency, least_efficiency, 1,
                 "share of the peak that padded matmuls reach, by their extents", [](const Machine& m, int) { return m.chip.matmul_efficiency; },
                 [](Machine& m, int, double v) { m.chip.matmul_efficiency = v, m.chip.matmul_table = {}, m.chip.matmul_surface = {}; }},
    optional({"chip", "attention_efficiency", FieldIndex::none, false, FieldUnit::number, least_efficiency, 1,
              "share of a matmul's rate that attention reaches, whose products alternate with a softmax", get_number<&Chip::attention_efficiency>,
              set_number<&Chip::attention_efficiency>}),
    optional(chip_integer<&Chip::matmul_units>("matmul_units", largest_tile, "that blocks of a product are dealt out to in waves, by an efficiency surface")),
    MachineField{"chip", "hbm", FieldIndex::none, false, FieldUnit::bytes, 1, no_bound, "memory of one device", get_hbm, set_hbm},
    chip_rate<&Chip::hbm_bandwidth>("hbm_bandwidth", "between memory and core"),
    chip_number<&Chip::overlap_hbm>("overlap_hbm", 0, 1, "1: arithmetic hides memory traffic completely, 0: they add up"),
    optional({"chip", "memory_sharing", FieldIndex::none, false, FieldUnit::sharing, 0, 1,
              "whether products, Locals and transfers share hbm_bandwidth", [](const Machine& m, int) { return m.chip.memory_shared ? 1.0 : 0.0; },
              [](Machine& m, int, double v) { m.chip.memory_shared = v != 0; }}),
    optional({"chip", "transfer_memory_passes", FieldIndex::none, false, FieldUnit::quarters, 0, 16,
              "how often the bytes of a transfer pass the memory at each end", get_number<&Chip::transfer_memory_passes>,
              set_number<&Chip::transfer_memory_passes>}),
    chip_rate<&Chip::reduce_bandwidth>("reduce_bandwidth", "of adding what has been received to what is there, off the core"),
    chip_rate<&Chip::injection_bandwidth>("injection_bandwidth", "from the device into its router, all links together"),
    chip_rate<&Chip::ejection_bandwidth>("ejection_bandwidth", "from the router into its device, all links together"),
    optional(chip_rate<&Chip::stack_bandwidth>("stack_bandwidth", "of copies into the array that a loop over layers has for all of them")),
    optional(chip_rate<&Chip::own_block_bandwidth>("own_block_bandwidth", "of the copy of the own block in an out-of-place collective")),
    optional({"chip", "pivot_latency", FieldIndex::none, false, FieldUnit::seconds, 0, longest_time, "of each column of an LU factorisation, which waits for the one before it",
              [](const Machine& m, int) { return m.chip.pivot_latency.count(); },
              [](Machine& m, int, double v) { m.chip.pivot_latency = Seconds{v}; }}),
    optional({"chip", "cycle", FieldIndex::none, false, FieldUnit::seconds, 0, longest_time, "of the core's units, which estimated_cycles of a compiler count; 0: not known",
              [](const Machine& m, int) { return m.chip.cycle.count(); }, [](Machine& m, int, double v) { m.chip.cycle = Seconds{v}; }}),
    optional({"chip", "memory_wait", FieldIndex::none, false, FieldUnit::seconds, 0, longest_time, "of a kernel of a TPU's compiler that has an array in memory, before the first of it is there",
              [](const Machine& m, int) { return m.chip.memory_wait.count(); }, [](Machine& m, int, double v) { m.chip.memory_wait = Seconds{v}; }}),
    optional(chip_rate<&Chip::vmem_load_bandwidth>("vmem_load_bandwidth", "from a TPU's VMEM into its vector registers")),
    optional(chip_rate<&Chip::vmem_store_bandwidth>("vmem_store_bandwidth", "from a TPU's vector registers into its VMEM")),
    MachineField{"link", "bandwidth", FieldIndex::dimension, true, FieldUnit::bytes_per_second, least_bandwidth, no_bound,
                 "of one direction of one link", [](const Machine& m, int i) { return m.link[at(i)].bandwidth.count(); },
                 [](Machine& m, int i, double v) { m.link[at(i)].bandwidth = BytesPerSecond{v}; }},
    MachineField{"link", "latency", FieldIndex::dimension, true, FieldUnit::seconds, 0, longest_time, "of one hop",
                 [](const Machine& m, int i) { return m.link[at(i)].latency.count(); },
                 [](Machine& m, int i, double v) { m.link[at(i)].latency = Seconds{v}; }},
    optional({"link", "in_switch_efficiency", FieldIndex::dimension, true, FieldUnit::number, 0, 1,
              "share of the bandwidth of transfers that the switch adds up or copies; 0: it does not",
              [](const Machine& m, int i) { return m.link[at(i)].in_switch_efficiency; },
              [](Machine& m, int i, double v) { m.link[at(i)].in_switch_efficiency = v; }}),
    MachineField{"software", "per_message", FieldIndex::none, false, FieldUnit::seconds, 0, longest_time, "before every transfer",
                 [](const Machine& m, int) { return m.software.per_message.count(); },
                 [](Machine& m, int, double v) { m.software.per_message = Seconds{v}; }},
    MachineField{"software", "launch", FieldIndex::cost_kind, false, FieldUnit::seconds, 0, longest_time, "once per operation of an algorithm",
                 [](const Machine& m, int i) { return m.software.launch[at(i)].count(); },
                 [](Machine& m, int i, double v) { m.software.launch[at(i)] = Seconds{v}; }},
    optional({"software", "in_switch_launch", FieldIndex::none, false, FieldUnit::seconds, 0, longest_time,
              "added to the launch of a collective that a switch adds up or copies", [](const Machine& m, int) { return m.software.in_switch_launch.count(); },
              [](Machine& m, int, double v) { m.software.in_switch_launch = Seconds{v}; }}),
    MachineField{"software", "core_share", FieldIndex::cost_kind, false, FieldUnit::number, 0, 1,
                 "of the time of a transfer or copy beside the core, taken from the core",
                 [](const Machine& m, int i) { return m.software.core_share[at(i)]; },
                 [](Machine& m, int i, double v) { m.software.core_share[at(i)] = v; }},
    MachineField{"collective", "efficiency", FieldIndex::collective_kind, true, FieldUnit::efficiency, least_efficiency, 1,
                 "share of the link bandwidth that its transfers reach, by input bytes per device",
                 [](const Machine& m, int i) { return curve_of(m, i).empty() ? 1 : curve_of(m, i).back().efficiency; },
                 [](Machine& m, int i, double v) { curve_of(m, i) = constant_curve(v); }},
    optional(dcn_rate<&DataCentre::nic_bandwidth>("nic_bandwidth", "of one host into the data-centre network, one direction")),
    optional(dcn_rate<&DataCentre::host_bandwidth>("host_bandwidth", "between a chip and its host, one direction")),
    optional(dcn_time<&DataCentre::latency>("latency", "one way between the hosts of two slices")),
    optional(dcn_time<&DataCentre::sync>("sync", "added to an exchange between slices per doubling of their number")),
};

// ---- Paths ----------------------------------------------------------------------------------------------------------------------------

struct Path {
  std::string_view group, name;
  std::optional<std::string_view> index;
  bool index_on_group = false;
};

/// group[index].name or group.name[index]; nothing if it has another form.
std::optional<Path> split_path(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  Path path{text.substr(0, dot), text.substr(dot + 1), std::nullopt, false};
  for (std::string_view* part : {&path.group, &path.name}) {
    const std::size_t open = part->find('[');
    if (open == std::string_view::npos) continue;
    if (!part->ends_with(']') || path.index) return std::nullopt;
    path.index = part->substr(open + 1, part->size() - open - 2);
    path.index_on_group = part == &path.group;
    *part = part->substr(0, open);
  }
  return path;
}

bool has_entry(const MachineField& field, std::string_view index) {
  const std::vector<std::string> names = index_names(field.index);
  return field.index != FieldIndex::none && std::find(names.begin(), names.end(), index) != names.end();
}

Diagnostic unknown_path(std::string_view text, const std::optional<Path>& path, const SourceLocation& where) {
  // An index that is right stays in what is proposed.
  std::vector<std::string> candidates;
  for (const MachineField& field : table)
    candidates.push_back(path_of(field, path && path->index && has_entry(field, *path->index) ? *path->index : ""));
  const std::string near = did_you_mean(text, candidates);
  const std::string_view groups = "; fields begin with chip., link., software., collective. or dcn.";
  return Diagnostic{where, fmt::format("unknown machine field {}{}", quoted(text), near.empty() ? groups : near)};
}

/// The field and the entries that a path names.
struct Target {
  const MachineField* field;
  std::vector<int> entries;
};

Expected<Target> find_target(std::string_view text, const SourceLocation& where) {
  const std::optional<Path> path = split_path(text);
  if (!path) return unknown_path(text, path, where);
  const auto field = std::find_if(table.begin(), table.end(), [&](const MachineField& f) { return f.group == path->group && f.name == path->name; });
  if (field == table.end()) return unknown_path(text, path, where);
  const std::vector<std::string> names = index_names(field->index);
  Target target{&*field, {}};
  if (!path->index) {
    for (std::size_t i = 0; i < names.size(); ++i) target.entries.push_back(static_cast<int>(i));
    return target;
  }
  if (field->index == FieldIndex::none) return Diagnostic{where, fmt::format("{} has no entries, got {}", path_of(*field, ""), quoted(text))};
  const auto name = std::find(names.begin(), names.end(), *path->index);
  if (name == names.end()) {
    return Diagnostic{where,
                      fmt::format("unknown entry {} of {}, expected one of {}", quoted(*path->index), path_of(*field, ""), fmt::join(names, ", "))};
  }
  if (path->index_on_group != field->index_on_group) return unknown_path(text, path, where);
  target.entries.push_back(static_cast<int>(name - names.begin()));
  return target;
}

}  // namespace

std::span<const MachineField> machine_fields() { return table; }

std::vector<std::string> index_names(FieldIndex index) {
  const auto names = [](int count, auto name) {
    std::vector<std::string> result;
    for (int i = 0; i < count; ++i) result.emplace_back(name(i));
    return result;
  };
  switch (index) {
    case FieldIndex::none: return {""};
    case FieldIndex::dimension: return names(max_dimensions, [](int i) { return std::string(1, dimension_name(i)); });
    case FieldIndex::peak: return names(peak_count, [](int i) { return i == tf32_peak ? "tf32" : name_of(static_cast<DType>(i)); });
    case FieldIndex::cost_kind: return names(cost_kind_count, [](int i) { return name_of(static_cast<CostKind>(i)); });
    case FieldIndex::collective_kind: return names(collective_kind_count, [](int i) { return name_of(static_cast<CollectiveKind>(i)); });
  }
  PODSIM_ASSERT(false);
  return {};
}

std::string path_of(const MachineField& field, std::string_view index) {
  const std::string entry = index.empty() ? "" : fmt::format("[{}]", index);
  return fmt::format("{}{}.{}{}", field.group, field.index_on_group ? entry : "", field.name, field.index_on_group ? "" : entry);
}

namespace {

/// `text` of what the field holds: a curve, a table or one value.
template <class Text>
std::string text_by(const MachineField& field, const Machine& machine, int index, Text text) {
  if (field.unit == FieldUnit::efficiency) return text(curve_of(machine, index));
  if (field.unit == FieldUnit::matmul_efficiency && !machine.chip.matmul_surface.empty()) return text(machine.chip.matmul_surface);
  if (field.unit == FieldUnit::matmul_efficiency && !machine.chip.matmul_table.points.empty()) return text(machine.chip.matmul_table);
  const double value = field.get(machine, index);
  if (!field.derivable.empty() && value == 0) return "derived";
  return text(field.unit, value);
}

}  // namespace

std::string value_text(const MachineField& field, const Machine& machine, int index) {
  return text_by(field, machine, index, [](const auto&... value) { return text_of(value...); });
}

std::string rounded_text(const MachineField& field, const Machine& machine, int index) {
  return text_by(field, machine, index, [](const auto&... value) { return rounded_text_of(value...); });
}

Status set_machine_value(Machine& machine, std::string_view path, std::string_view value, std::string_view source, const SourceLocation& where) {
  const Expected<Target> target = find_target(path, where);
  if (!target) return target.error();
  const MachineField& field = *target->field;
  const std::vector<std::string> names = index_names(field.index);
  const std::string name{path};
  const bool derived =
      value == "derived" && !field.derivable.empty() && target->entries.size() == 1 &&
      (names[at(target->entries[0])] == field.derivable || field.is_optional(target->entries[0]));
  if (field.unit == FieldUnit::efficiency) {
    const Expected<std::vector<EfficiencyPoint>> points = parse_curve(field, name, value, where);
    if (!points) return points.error();
    for (const int entry : target->entries) curve_of(machine, entry) = *points;
  } else if (field.unit == FieldUnit::matmul_efficiency && is_surface_text(value)) {
    Expected<MatmulSurface> surface = parse_matmul_surface(field, name, value, where);
    if (!surface) return surface.error();
    set_matmul_surface(machine.chip, *std::move(surface));
  } else if (field.unit == FieldUnit::matmul_efficiency && value.find(" at ") != std::string_view::npos) {
    const Expected<std::vector<MatmulPoint>> points = parse_matmul_points(field, name, value, where);
    if (!points) return points.error();
    set_matmul_points(machine.chip, *points);
  } else {
    const Expected<double> number = derived ? Expected<double>{0.0} : parse_admissible(field, name, value, where);
    if (!number) return number.error();
    for (const int entry : target->entries) field.set(machine, entry, *number);
  }
  for (const int entry : target->entries) {
    const std::string entry_path = path_of(field, names[at(entry)]);
    machine.sources[entry_path] = source;
    machine.doubtful.by_path.erase(entry_path);
    if (auto doubt = doubt_about(path_of(field, ""), field.get(machine, entry), name)) machine.doubtful.by_path[entry_path] = {where, *std::move(doubt)};
  }
  return success();
}

}  // namespace podsim
