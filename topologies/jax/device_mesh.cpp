#include "topologies/jax/device_mesh.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/invariant.hpp"
#include "sim/base/units.hpp"

namespace podsim {

std::string shape_text(const std::vector<int>& shape) { return fmt::format("({})", fmt::join(shape, ",")); }
namespace {

constexpr std::int64_t most_devices = std::int64_t{1} << 24;

struct KindName {
  DeviceKind kind;
  std::string_view name;
};
constexpr std::array kind_names = {KindName{DeviceKind::cpu, "cpu"},
                                   KindName{DeviceKind::gpu, "gpu"},
                                   KindName{DeviceKind::tpu_v2, "tpu_v2"},
                                   KindName{DeviceKind::tpu_v3, "tpu_v3"},
                                   KindName{DeviceKind::tpu_v4_lite, "tpu_v4_lite"},
                                   KindName{DeviceKind::tpu_v4, "tpu_v4"},
                                   KindName{DeviceKind::tpu_v5e, "tpu_v5e"},
                                   KindName{DeviceKind::tpu_v5p, "tpu_v5p"},
                                   KindName{DeviceKind::tpu_v6e, "tpu_v6e"},
                                   KindName{DeviceKind::tpu_v7, "tpu_v7"}};

bool is_tpu(DeviceKind kind) { return kind != DeviceKind::cpu && kind != DeviceKind::gpu; }

Diagnostic plain(std::string message) { return {{}, std::move(message)}; }

std::string extents_text(const std::vector<int>& extents) { return fmt::format("{}", fmt::join(extents, "x")); }

/// The number of devices; beyond most_devices it only says that it is more.
std::int64_t product(const std::vector<int>& sizes) {
  std::int64_t result = 1;
  for (const int size : sizes) result = result > most_devices ? result : result * size;
  return result;
}

Status check_shape(const std::vector<int>& shape) {
  if (shape.empty()) return plain("expected a mesh of at least one axis, got none");
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] < 1)
      return plain(fmt::format("expected axes of size 1 or more, got {} for axis {} of the mesh {}", shape[axis], axis, shape_text(shape)));
  return success();
}

// ---- Physical axes --------------------------------------------------------------------------------------------------------------------

/// The devices of a slice as a row-major array over its physical axes.
struct Physical {
  std::vector<int> extents;          // x, y, z, and the core on chips of two devices
  std::vector<std::size_t> devices;  // positions in the list
};

/// How much of each physical axis goes to each mesh axis: [physical axis][mesh axis].
using Assignment = std::vector<std::vector<int>>;

std::string_view axis_name(std::size_t axis) { return std::array<std::string_view, 4>{"x", "y", "z", "core"}[axis]; }

Expected<Physical> physical_array(DeviceKind kind, const std::vector<JaxDevice>& devices) {
  std::array<int, 4> low, high;
  low.fill(std::numeric_limits<int>::max());
  high.fill(std::numeric_limits<int>::min());
  const auto place_of = [](const JaxDevice& device) { return std::array{device.coords[0], device.coords[1], device.coords[2], device.core_on_chip}; };
  for (const JaxDevice& device : devices)
    for (std::size_t axis = 0; axis < 4; ++axis) {
      low[axis] = std::min(low[axis], place_of(device)[axis]);
      high[axis] = std::max(high[axis], place_of(device)[axis]);
    }
  Physical physical;
  for (std::size_t axis = 0; axis < 4; ++axis)
    physical.extents.push_back(static_cast<int>(std::min(std::int64_t{high[axis]} - low[axis] + 1, most_devices + 1)));
  const int cores = physical.extents[3];
  const bool has_core_axis = kind == DeviceKind::tpu_v7 || (kind == DeviceKind::tpu_v5p && cores > 1);
  if (!has_core_axis && cores > 1) return plain(fmt::format("expected one device per chip of {}, got {}", to_text(kind), cores));

  std::vector<std::optional<std::size_t>> found(devices.size());
  const bool fits = product(physical.extents) == static_cast<std::int64_t>(devices.size());
  for (std::size_t i = 0; fits && i < devices.size(); ++i) {
    std::size_t at = 0;
    for (std::size_t axis = 0; axis < 4; ++axis)
      at = at * static_cast<std::size_t>(physical.extents[axis]) + static_cast<std::size_t>(place_of(devices[i])[axis] - low[axis]);
    found[at] = i;
  }
  for (const std::optional<std::size_t>& device : found) {
    if (!device)
      return plain(fmt::format("expected the devices of a cuboid without holes, got {} devices within {}x{}x{} chips of {}", devices.size(),
                               physical.extents[0], physical.extents[1], physical.extents[2], cores));
    physical.devices.push_back(*device);
  }
  if (!has_core_axis) physical.extents.pop_back();
  return physical;
}

/// The array with its axes in another order: axis i of the result is axis order[i].
Physical transposed(const Physical& physical, const std::vector<std::size_t>& order) {
  std::vector<std::size_t> strides(order.size(), 1);
  for (std::size_t axis = order.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * static_cast<std::size_t>(physical.extents[axis + 1]);
  Physical result;
  for (const std::size_t axis : order) result.extents.push_back(physical.extents[axis]);
  for (std::size_t i = 0; i < physical.devices.size(); ++i) {
    std::size_t at = 0, rest = i;
    for (std::size_t axis = order.size(); axis-- > 0;) {
      at += rest % static_cast<std::size_t>(result.extents[axis]) * strides[order[axis]];
      rest /= static_cast<std::size_t>(result.extents[axis]);
    }
    result.devices.push_back(physical.devices[at]);
  }
  return result;
}

// ---- Assignment -----------------------------------------------------------------------------------------------------------------------

/// The largest set of the physical axes left (0 = taken) whose product is `size`, of equally large sets the first in lexicographic order.
std::optional<std::vector<std::size_t>> largest_set(const std::vector<int>& left, int size) {
  for (std::size_t count = left.size(); count > 0; --count) {
    std::vector<bool> chosen(left.size(), false);
    std::fill_n(chosen.begin(), count, true);
    do {
      std::int64_t reached = 1;
      std::vector<std::size_t> axes;
      for (std::size_t axis = 0; axis < left.size(); ++axis) {
        if (!chosen[axis]) continue;
        reached *= left[axis];
        axes.push_back(axis);
      }
      if (reached == size) return axes;
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
  }
  return std::nullopt;
}

Expected<Assignment> whole_axes(const std::vector<int>& extents, const std::vector<int>& shape, const std::vector<std::size_t>& order) {
  Assignment assignment(extents.size(), std::vector<int>(shape.size(), 1));
  std::vector<int> left = extents;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::optional<std::vector<std::size_t>> taken = largest_set(left, shape[axis]);
    if (!taken && shape[axis] > 1) {
      std::string rest;
      for (std::size_t p = 0; p < left.size(); ++p)
        if (left[p] > 0) rest += fmt::format("{}{}={}", rest.empty() ? "" : ",", axis_name(order[p]), left[p]);
      return plain(
          fmt::format("expected axis {} of the mesh {} to be a product of whole physical axes that are left ({}), got {}; physical axes are "
                      "split only where that is allowed",
                      axis, shape_text(shape), rest.empty() ? "none" : rest, shape[axis]));
    }
    for (const std::size_t p : taken.value_or(std::vector<std::size_t>{})) assignment[p][axis] = std::exchange(left[p], 0);
  }
  return assignment;
}

/// Calls visit(v) for every v with v[i] dividing left[i] and the product `size`.
template <class Visit>
void for_each_split(const std::vector<int>& left, int size, std::vector<int>& split, const Visit& visit) {
  const std::size_t axis = split.size();
  if (axis == left.size()) {
    if (size == 1) visit(split);
    return;
  }
  for (int factor = 1; factor <= std::min(size, left[axis]); ++factor) {
    if (size % factor != 0 || left[axis] % factor != 0) continue;
    split.push_back(factor);
    for_each_split(left, size / factor, split, visit);
    split.pop_back();
  }
}

Assignment split_axes(const std::vector<int>& extents, const std::vector<int>& shape) {
  Assignment assignment(extents.size(), std::vector<int>(shape.size(), 1));
  std::vector<int> left = extents;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    // Rules (a) to (d) of the header, compared in that order. All products divide `size`: they fit.
    using Worth = std::tuple<int, int, int, std::vector<int>>;
    std::optional<Worth> best;
    std::vector<int> start;
    for_each_split(left, shape[axis], start, [&](const std::vector<int>& split) {
      int in_whole = 1, whole = 0, in_used = 1;
      for (std::size_t p = 0; p < split.size(); ++p) {
        if (split[p] == extents[p]) in_whole *= split[p], ++whole;  // an extent of 1 counts alike for all
        if (left[p] < extents[p]) in_used *= split[p];
      }
      best = std::max(best, std::optional<Worth>{{in_whole, whole, in_used, split}});
    });
    PODSIM_ASSERT(best.has_value());  // `size` divides the product of what is left, so its prime factors find places
    const std::vector<int>& split = std::get<3>(*best);
    for (std::size_t p = 0; p < split.size(); ++p) {
      assignment[p][axis] = split[p];
      left[p] /= split[p];
    }
  }
  return assignment;
}

/// The devices row-major over the mesh: along a mesh axis its parts of the physical axes follow each other in their order, the last fastest;
/// inside a physical axis the earlier mesh axis is the major one.
std::vector<std::size_t> laid_out(const Physical& physical, const Assignment& assignment) {
  struct Part {
    std::size_t size, stride;  // stride in physical.devices
  };
  const std::size_t axes = assignment.front().size();
  std::vector<std::vector<Part>> parts_of(axes);  // of each mesh axis, the last physical axis first
  std::size_t stride = 1;
  for (std::size_t p = assignment.size(); p-- > 0;)
    for (std::size_t axis = axes; axis-- > 0;) {
      const auto size = static_cast<std::size_t>(assignment[p][axis]);
      parts_of[axis].push_back({size, stride});
      stride *= size;
    }
  std::vector<std::size_t> result;
  result.reserve(physical.devices.size());
  for (std::size_t i = 0; i < physical.devices.size(); ++i) {
    std::size_t at = 0, rest = i;
    for (std::size_t axis = axes; axis-- > 0;)
      for (const Part& part : parts_of[axis]) {
        at += rest % part.size * part.stride;
        rest /= part.size;
      }
    result.push_back(physical.devices[at]);
  }
  return result;
}

/// The order of physical axes that makes each host's devices a block of the mesh.
Expected<std::vector<std::size_t>> contiguous_order(const std::vector<int>& extents, const std::vector<int>& shape) {
  struct Row {
    std::vector<int> extents, shape;
    std::vector<std::size_t> order;
  };
  static const std::vector<Row> table = {
      {{2, 2, 1}, {2, 2}, {0, 1, 2}},  {{2, 2, 4}, {4, 4}, {0, 1, 2}},  {{4, 4, 4}, {16, 4}, {0, 2, 1}},    {{4, 8, 8}, {64, 4}, {0, 2, 1}},
      {{4, 8, 8}, {4, 64}, {0, 2, 1}}, {{8, 8, 8}, {64, 8}, {0, 2, 1}}, {{8, 16, 16}, {256, 8}, {0, 2, 1}}, {{8, 16, 16}, {8, 256}, {0, 2, 1}},
  };
  std::vector<int> sizes = shape;
  std::erase(sizes, 1);
  std::string offered;
  for (const Row& row : table) {
    if (row.extents != extents) continue;
    if (row.shape == sizes) return row.order;
    offered += fmt::format("{}{}", offered.empty() ? "" : " or ", shape_text(row.shape));
  }
  if (offered.empty())
    return plain(
        fmt::format("expected one of the slices 2x2x1, 2x2x4, 4x4x4, 4x8x8, 8x8x8, 8x16x16 for contiguous submeshes, got {}", extents_text(extents)));
  return plain(
      fmt::format("expected the mesh {} for contiguous submeshes of the slice {}, got {}", offered, extents_text(extents), shape_text(shape)));
}

// ---- Orders of a kind -----------------------------------------------------------------------------------------------------------------

using Order = std::vector<std::size_t>;  // positions in the list of devices

Order listed(std::size_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// `from`, rearranged: in each group of permutation.size() place i has the group's device permutation[i].
Order rearranged(const Order& from, std::span<const std::size_t> permutation) {
  PODSIM_ASSERT(from.size() % permutation.size() == 0);
  Order order;
  for (std::size_t group = 0; group < from.size(); group += permutation.size())
    for (const std::size_t place : permutation) order.push_back(from[group + place]);
  return order;
}

constexpr std::array<std::size_t, 4> ring_of_4 = {0, 1, 3, 2};
constexpr std::array<std::size_t, 8> tray_of_8 = {0, 1, 2, 3, 6, 7, 4, 5};
constexpr std::array<std::size_t, 8> ring_of_4x2 = {0, 1, 2, 3, 7, 6, 5, 4};
constexpr std::array<std::size_t, 8> cube_of_v5e = {0, 4, 2, 6, 1, 5, 3, 7};
constexpr std::array<std::size_t, 16> ring_of_4x4 = {0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4};

/// The order that a kind of TPU has for these devices and this shape, or none. Errors: as physical_array().
Expected<std::optional<Order>> kind_order(DeviceKind kind, const std::vector<JaxDevice>& devices, const std::vector<int>& shape) {
  const Order as_listed = listed(devices.size());
  const std::size_t count = devices.size();
  const auto sorted = [&] {
    Order order = as_listed;
    const auto key = [&](std::size_t i) { return std::tuple{devices[i].coords[2], devices[i].coords[1], devices[i].coords[0]}; };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  };
  const auto last = [](const JaxDevice& a, const JaxDevice& b) { return a.coords < b.coords; };
  const std::array<int, 3> corner = std::max_element(devices.begin(), devices.end(), last)->coords;  // JAX takes the slice to start at 0,0,0
  const bool is_cube = corner == std::array{1, 1, 1};

  switch (kind) {
    case DeviceKind::cpu:
    case DeviceKind::gpu:
    case DeviceKind::tpu_v4:
    case DeviceKind::tpu_v5p: break;
    case DeviceKind::tpu_v2:
    case DeviceKind::tpu_v3: return std::optional{count == 8 || shape.back() == 8 ? rearranged(as_listed, tray_of_8) : as_listed};
    case DeviceKind::tpu_v4_lite:
      if (count == 4) return std::optional{rearranged(as_listed, ring_of_4)};
      break;
    case DeviceKind::tpu_v5e:
    case DeviceKind::tpu_v6e:
      if (count == 4 && corner == std::array{1, 1, 0}) return std::optional{rearranged(sorted(), ring_of_4)};
      if (count == 8) return std::optional{rearranged(sorted(), is_cube ? cube_of_v5e : ring_of_4x2)};
      if (count == 16 && corner == std::array{3, 3, 0} && *std::max_element(shape.begin(), shape.end()) == 16)
        return std::optional{rearranged(sorted(), ring_of_4x4)};
      break;
    case DeviceKind::tpu_v7:
      if (count % 8 == 0 && count <= 32) {
        const Expected<Physical> physical = physical_array(kind, devices);
        if (!physical) return physical.error();
        if (physical->extents[0] <= 2 && physical->extents[1] <= 2) return std::optional{rearranged(as_listed, tray_of_8)};
      }
      break;
  }
  return std::optional<Order>{};
}

DeviceMesh in_order(const std::vector<JaxDevice>& devices, const Order& order, const std::vector<int>& shape, MeshOrigin origin) {
  DeviceMesh mesh{shape, {}, origin, {}};
  mesh.devices.reserve(order.size());
  for (const std::size_t device : order) mesh.devices.push_back(devices[device]);
  return mesh;
}

}  // namespace

std::string_view to_text(DeviceKind kind) {
  return std::find_if(kind_names.begin(), kind_names.end(), [&](const KindName& entry) { return entry.kind == kind; })->name;
}

Expected<DeviceKind> parse_device_kind(std::string_view text, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const KindName& entry : kind_names) {
    if (entry.name == text) return entry.kind;
    names.emplace_back(entry.name);
  }
  return Diagnostic{where, fmt::format("expected a kind of device ({}), got {}{}", fmt::join(names, ", "), quoted(text), did_you_mean(text, names))};
}

int devices_per_chip(DeviceKind kind) { return kind == DeviceKind::tpu_v2 || kind == DeviceKind::tpu_v3 || kind == DeviceKind::tpu_v7 ? 2 : 1; }

Expected<std::vector<JaxDevice>> jax_devices(const DeviceList& list) {
  if (list.extents.empty() || list.extents.size() > 3)
    return plain(fmt::format("expected a slice of 1 to 3 dimensions, got {}: {}", list.extents.size(), extents_text(list.extents)));
  std::vector<int> factors = list.extents;
  factors.insert(factors.end(), {list.cores, list.slices});
  factors.insert(factors.end(), list.host.begin(), list.host.end());
  if (std::any_of(factors.begin(), factors.end(), [](int factor) { return factor < 1; }))
    return plain(fmt::format("expected extents, devices per chip, host and slices of 1 or more, got slices {} x {}, {} per chip, hosts {}",
                             list.slices, extents_text(list.extents), list.cores, fmt::join(list.host, "x")));
  factors.resize(list.extents.size() + 2);
  if (product(factors) > most_devices) return plain(fmt::format("expected at most {} devices, got more: {}", most_devices, fmt::join(factors, "x")));

  std::array<int, 3> extents{1, 1, 1};
  std::copy(list.extents.begin(), list.extents.end(), extents.begin());
  const auto [X, Y, Z] = extents;
  const auto [host_x, host_y, host_z] = list.host;
  const int slice_devices = X * Y * Z * list.cores;
  std::vector<JaxDevice> devices;
  devices.reserve(static_cast<std::size_t>(slice_devices) * static_cast<std::size_t>(list.slices));
  int process = 0;
  for (int slice = 0; slice < list.slices; ++slice)
    for (int z0 = 0, dz = 0; z0 < Z; z0 += dz) {
      dz = std::min(host_z, Z - z0);
      for (int y0 = 0, dy = 0; y0 < Y; y0 += dy) {
        dy = std::min(host_y, Y - y0);
        for (int x0 = 0, dx = 0; x0 < X; x0 += dx) {
          dx = std::min(host_x, X - x0);
          for (int z = z0; z < z0 + dz; ++z)
            for (int y = y0; y < y0 + dy; ++y)
              for (int x = x0; x < x0 + dx; ++x)
                for (int core = 0; core < list.cores; ++core) {
                  const int chip = is_tpu(list.kind) ? x + X * (y + Y * z) : (x * Y + y) * Z + z;
                  devices.push_back({slice * slice_devices + core + list.cores * chip, process, {x, y, z}, core, slice});
                }
          ++process;
        }
      }
    }
  if (!is_tpu(list.kind)) std::sort(devices.begin(), devices.end(), [](const JaxDevice& a, const JaxDevice& b) { return a.id < b.id; });
  return devices;
}

std::string_view to_text(MeshOrigin origin) {
  switch (origin) {
    case MeshOrigin::listed: return "as listed";
    case MeshOrigin::kind_order: return "the order of this kind of device";
    case MeshOrigin::whole_axes: return "whole axes";
    case MeshOrigin::split_axes: return "split axes";
  }
  return "";
}

std::vector<int> device_ids(const DeviceMesh& mesh) {
  std::vector<int> ids;
  ids.reserve(mesh.devices.size());
  for (const JaxDevice& device : mesh.devices) ids.push_back(device.id);
  return ids;
}

Expected<DeviceMesh> assign_device_mesh(DeviceKind kind, const std::vector<JaxDevice>& devices, const std::vector<int>& shape,
                                        const DeviceMeshOptions& options) {
  const Status checked = check_shape(shape);
  if (!checked) return checked.error();
  if (product(shape) != static_cast<std::int64_t>(devices.size()))
    return plain(fmt::format("expected a mesh of {} devices, got {} with {}", devices.size(), shape_text(shape),
                             product(shape) > most_devices ? "more" : std::to_string(product(shape))));
  if (!is_tpu(kind)) {
    Order order = listed(devices.size());
    if (kind == DeviceKind::gpu)
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return devices[a].id < devices[b].id; });
    return in_order(devices, order, shape, MeshOrigin::listed);
  }

  const Expected<std::optional<Order>> known = kind_order(kind, devices, shape);
  if (!known) return known.error();
  if (*known) return in_order(devices, **known, shape, MeshOrigin::kind_order);

  Expected<Physical> physical = physical_array(kind, devices);
  if (!physical) return physical.error();
  std::vector<std::size_t> order = listed(physical->extents.size());
  if (options.contiguous_submeshes) {
    const Expected<std::vector<std::size_t>> contiguous = contiguous_order(physical->extents, shape);
    if (!contiguous) return contiguous.error();
    order = *contiguous;
    physical = transposed(*physical, order);
  }
  MeshOrigin origin = MeshOrigin::whole_axes;
  Expected<Assignment> assignment = whole_axes(physical->extents, shape, order);
  if (!assignment) {
    if (!options.allow_split_physical_axes) return assignment.error();
    assignment = split_axes(physical->extents, shape);
    origin = MeshOrigin::split_axes;
  }
  DeviceMesh mesh = in_order(devices, laid_out(*physical, *assignment), shape, origin);
  mesh.assignment.resize(order.size());
  for (std::size_t p = 0; p < order.size(); ++p) mesh.assignment[order[p]] = (*assignment)[p];
  return mesh;
}

Expected<DeviceMesh> make_device_mesh(DeviceKind kind, const std::vector<JaxDevice>& devices, const std::vector<int>& shape) {
  const Status checked = check_shape(shape);
  if (!checked) return checked.error();
  const auto other =
      std::find_if(devices.begin(), devices.end(), [&](const JaxDevice& device) { return device.slice_index != devices[0].slice_index; });
  if (other != devices.end())
    return plain(fmt::format("expected devices of one slice, got slices {} and {}: a mesh over several is laid slice by slice",
                             devices[0].slice_index, other->slice_index));
  if (product(shape) > static_cast<std::int64_t>(devices.size()))
    return plain(fmt::format("expected a mesh of at most {} devices, got {}", devices.size(), shape_text(shape)));
  const std::vector<JaxDevice> first(devices.begin(), devices.begin() + product(shape));
  return assign_device_mesh(kind, first, shape, {false, kind == DeviceKind::tpu_v5e});
}

Expected<DeviceMesh> assign_hybrid_device_mesh(DeviceKind kind, const std::vector<JaxDevice>& devices, const std::vector<int>& shape,
                                               const std::vector<int>& slices_shape, const DeviceMeshOptions& options) {
  for (const std::vector<int>* checked : {&shape, &slices_shape})
    if (const Status outcome = check_shape(*checked); !outcome) return outcome.error();
  if (shape.size() != slices_shape.size())
    return plain(fmt::format("expected as many axes over the slices as inside them, {} for {}, got {}: {}", shape.size(), shape_text(shape),
                             slices_shape.size(), shape_text(slices_shape)));
  std::map<int, std::vector<JaxDevice>> slices;
  for (const JaxDevice& device : devices) slices[device.slice_index].push_back(device);
  if (product(slices_shape) != static_cast<std::int64_t>(slices.size()))
    return plain(fmt::format("expected a shape of {} slices, got {}", slices.size(), shape_text(slices_shape)));
  std::vector<DeviceMesh> blocks;
  for (const auto& [index, slice] : slices) {
    Expected<DeviceMesh> block = assign_device_mesh(kind, slice, shape, options);
    if (!block) return plain(fmt::format("slice {}: {}", index, block.error().message));
    blocks.push_back(*std::move(block));
  }

  DeviceMesh mesh{{}, {}, blocks[0].origin, blocks[0].assignment};
  for (const DeviceMesh& block : blocks)
    if (block.assignment != mesh.assignment) mesh.assignment.clear();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) mesh.shape.push_back(slices_shape[axis] * shape[axis]);
  mesh.devices.reserve(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::size_t rest = i, block = 0, inside = 0, block_stride = 1, inside_stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      const auto size = static_cast<std::size_t>(shape[axis]), blocks_along = static_cast<std::size_t>(slices_shape[axis]);
      inside += rest % size * inside_stride;
      block += rest / size % blocks_along * block_stride;
      rest /= size * blocks_along;
      inside_stride *= size;
      block_stride *= blocks_along;
    }
    mesh.devices.push_back(blocks[block].devices[inside]);
  }
  return mesh;
}

}  // namespace podsim
