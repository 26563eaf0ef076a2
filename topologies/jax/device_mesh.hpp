// JAX's assignment of a logical mesh to the devices of a slice, and other device orders, as placements on a grid.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// "(4,2)"
std::string shape_text(const std::vector<int>& shape);

// ---- JAX's view of devices ------------------------------------------------------------------------------------------------------------

enum class DeviceKind { cpu, gpu, tpu_v2, tpu_v3, tpu_v4_lite, tpu_v4, tpu_v5e, tpu_v5p, tpu_v6e, tpu_v7 };

/// "tpu_v4"
std::string_view to_text(DeviceKind kind);
/// Errors: no such kind (the message lists all kinds, similar ones first).
Expected<DeviceKind> parse_device_kind(std::string_view text, const SourceLocation& where);

/// The number of devices per chip in jax.devices(): 2 for TPU v2, v3 and v7; 1 for all others (v4 and v5p: two cores as one "megacore").
int devices_per_chip(DeviceKind kind);

struct JaxDevice {
  int id = 0;
  int process_index = 0;           // the number of its host
  std::array<int, 3> coords = {};  // of its chip: x, y, z
  int core_on_chip = 0;
  int slice_index = 0;
  friend bool operator==(const JaxDevice&, const JaxDevice&) = default;
};

/// The devices of a machine from which jax_devices() makes JAX's list.
struct DeviceList {
  DeviceKind kind = DeviceKind::tpu_v4;
  std::vector<int> extents;             // chips along x, y, z of one slice; 1 to 3 of them
  int cores = 1;                        // devices per chip
  std::array<int, 3> host = {2, 2, 1};  // chips along x, y, z of one host; hosts at the upper ends of a slice may have fewer
  int slices = 1;
};

/// The devices in the order of jax.devices(). It differs from the order of ids if a slice is wider than a host.
///
///   id      TPU: core + cores*(x + X*(y + Y*z)), x fastest; slice s starts at s * devices of a slice
///           GPU and CPU: row-major, the last dimension fastest (the GPUs of a node)
///   order   TPU: by slice, then host by host (z, y, x; x fastest), inside a host by z, y, x, core. Processes count hosts in that order
///           GPU and CPU: by id
///   errors  not 1 to 3 extents; an extent, host extent, core count or slice count below 1; more than 2^24 devices
Expected<std::vector<JaxDevice>> jax_devices(const DeviceList& list);

// ---- The logical mesh -----------------------------------------------------------------------------------------------------------------

/// The rule that placed the devices of a mesh.
enum class MeshOrigin {
  listed,      // GPU: by id, CPU: as listed; then reshaped
  kind_order,  // a fixed order for this kind of TPU and this shape
  whole_axes,  // every mesh axis is a product of whole physical axes
  split_axes,  // some physical axis is split over several mesh axes
};

/// "whole axes"
std::string_view to_text(MeshOrigin origin);

struct DeviceMesh {
  std::vector<int> shape;
  std::vector<JaxDevice> devices;  // row-major over `shape`
  MeshOrigin origin = MeshOrigin::listed;
  /// assignment[physical axis][mesh axis]: the factor of the physical axis (x, y, z; then the core if a chip has two devices) that belongs to the
  /// mesh axis. Rows multiply to the physical extents, columns to the shape. Empty unless origin is whole_axes or split_axes.
  std::vector<std::vector<int>> assignment;
  friend bool operator==(const DeviceMesh&, const DeviceMesh&) = default;
};

/// The ids of mesh.devices.
std::vector<int> device_ids(const DeviceMesh& mesh);

struct DeviceMeshOptions {
  bool contiguous_submeshes = false;  // each host's devices form a contiguous block of the mesh; only for some shapes
  bool allow_split_physical_axes = false;
};

/// jax.experimental.mesh_utils.create_device_mesh. `shape` is ordered by communication intensity, the most intensive axis last.
///
///   GPU, CPU     sorted by id, as listed
///   kind orders  checked first, whatever the options (positions in the list; "sorted": in the list sorted by z, y, x):
///                  v2, v3          8 devices, or last axis of 8: 0,1,2,3,6,7,4,5 in every eight; otherwise as listed
///                  v4 lite         4 devices: 0,1,3,2
///                  v5e, v6e sorted 2x2: 0,1,3,2; 8 devices: 0,1,2,3,7,6,5,4, but 2x2x2: 0,4,2,6,1,5,3,7;
///                                  4x4 as one axis of 16: 0,1,2,3,7,6,5,9,10,11,15,14,13,12,8,4
///                  v5p             none. JAX has one for 2x2x2 of "TPU v5p", as Pathways calls these devices: 0,1,3,2,6,7,5,4. TPU VMs and
///                                  ahead-of-time topologies (libtpu) call them "TPU v5", which takes the rules below
///                  v7              8, 16, 24 or 32 devices, x and y at most 2: 0,1,2,3,6,7,4,5 in every eight
///   contiguous   physical axes are permuted by a table: 2x2x1 for (2,2) and 2x2x4 for (4,4): x,y,z; 4x4x4 for (16,4), 4x8x8 for (64,4) and
///                (4,64), 8x8x8 for (64,8), 8x16x16 for (256,8) and (8,256): x,z,y. Mesh axes of size 1 do not count
///   whole axes   mesh axes, from last to first, each take the largest set of remaining physical axes whose product is the mesh axis's size; among
///                sets of equal size the first one in the order of axes
///   split axes   if an axis finds no such set and splitting is allowed, the assignment starts again with splitting. An axis considers all ways to
///                write its size as factors of what is left of each physical axis. It takes the one with (a) the largest product over completely used
///                physical axes, (b) the most of them, (c) the largest product over physical axes already in part used, (d) the lexicographically
///                largest. Inside a physical axis the earlier mesh axis is the major one
///   errors       an empty shape or a size below 1; a product other than the number of devices; TPU devices that do not fill a cuboid, or two devices
///                per chip of a kind other than v2, v3, v5p, v7; contiguous: a shape that the table lacks; an axis for which no physical axes fit
///                while splitting is not allowed
///   source       jax-ml/jax, jax/_src/mesh_utils.py; rule (c) follows its code, which is the opposite of its comment
Expected<DeviceMesh> assign_device_mesh(DeviceKind kind, const std::vector<JaxDevice>& devices, const std::vector<int>& shape,
                                        const DeviceMeshOptions& options = {});

/// jax.make_mesh: assign_device_mesh() with the first devices of the list, as many as the shape needs; physical axes are split on v5e only.
/// Errors: too few devices, devices of several slices, those of assign_device_mesh().
Expected<DeviceMesh> make_device_mesh(DeviceKind kind, const std::vector<JaxDevice>& devices, const std::vector<int>& shape);

/// create_hybrid_device_mesh: a mesh of `shape` inside each slice, with the slices laid row-major over `slices_shape`. The sizes of the result are
/// the products, axis by axis; the slice is the major part of each axis. Origin and assignment are those of the slices if they agree (otherwise slice
/// 0's origin and an empty assignment). Errors: different ranks, a number of slices other than the product of `slices_shape`, those of
/// assign_device_mesh().
Expected<DeviceMesh> assign_hybrid_device_mesh(DeviceKind kind, const std::vector<JaxDevice>& devices, const std::vector<int>& shape,
                                               const std::vector<int>& slices_shape, const DeviceMeshOptions& options = {});

}  // namespace podsim
