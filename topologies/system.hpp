// A system: slices of a machine, their interconnect, its faults, and a mesh placed on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/machine/machine.hpp"
#include "sim/topology/grid.hpp"
#include "sim/topology/placement.hpp"
#include "topologies/interconnect.hpp"
#include "topologies/jax/device_mesh.hpp"
#include "topologies/slice.hpp"

namespace podsim {

/// The order in which the devices of a mesh are assigned to chips.
struct RowMajorOrder {};
struct SnakeOrder {};  // neighbours in the order are neighbours in the grid
struct JaxOrder {      // as JAX's create_device_mesh assigns them
  bool allow_split_axes = false, contiguous_submeshes = false;
};
struct ListedOrder {
  std::string file;  // chip numbers, in the format of parse_device_order()
};
using MeshOrder = std::variant<RowMajorOrder, SnakeOrder, JaxOrder, ListedOrder>;
/// "row-major", "snake", "jax", or the file.
std::string to_text(const MeshOrder& order);

/// Devices slower than the machine's: all devices of one chip, or a random fraction of all.
struct SlowDevices {
  std::optional<ChipId> chip{};
  double fraction = 0;  // if no chip is given; the count is rounded up
  double speed = 1;     // relative to the machine's, above 0 and up to 1
  friend bool operator==(const SlowDevices&, const SlowDevices&) = default;
};

/// Faults. Cables are those of one slice; every slice of several has the same. A later entry for the same device or cable wins.
struct Faults {
  std::vector<CableEnds> broken{};
  std::vector<SlowCable> slow_cables{};
  std::vector<SlowDevices> slow_devices{};
  std::uint64_t seed = 0;
  [[nodiscard]] bool none() const { return broken.empty() && slow_cables.empty() && slow_devices.empty(); }
};

using MeshSizes = std::vector<std::pair<std::string, int>>;  // names and sizes of the axes

/// The parts of a system.
struct SystemSpec {
  Machine machine;
  std::optional<Slice> slice{};  // nullopt: follows from the sizes of the mesh
  bool strict_slice = false;     // refuse a slice that the vendor does not offer
  Wrap wrap{};
  TopologySpec topology{};
  int slices = 1;
  MeshSizes mesh{};  // empty: one axis per dimension, named row, col, depth, axis3; preceded by `pod` for several slices, followed by `core`.
                     // With `devices`: one axis, row
  MeshOrder order{};
  std::vector<int> devices{};  // those that the mesh is laid over, row-major: numbers over all slices, chips of two devices have two; empty: all
  Faults faults{};
};

/// A complete system. Its topology and other derived members belong to `machine`'s values, so do not change members: with_machine() and the like make
/// a new system.
struct System {
  Machine machine;
  Slice slice;
  Wrap wrap;
  TopologySpec joined_by;
  int slices = 1;
  Faults faults;
  bool hypothetical = false;                    // the vendor does not offer the slice or its interconnect
  std::shared_ptr<const Topology> whole_slice;  // one slice without faults
  std::shared_ptr<const Topology> topology;
  Grid layout;  // the grid under the mesh: slices, the dimensions of a slice, the devices of a chip. A dimension wraps if its first and last
                // coordinates are neighbours
  Mesh mesh;
  MeshOrder order;
  std::vector<int> devices;  // that the mesh is laid over; empty: all of the slices, in the order that `order` says. If it is not, axes of the mesh
                             // need not lie along dimensions, and `layout` is not the grid under them
  Placement placement;
};

/// Those of its machine, and GPUs of AMD in NCCL's topology on a shipped machine, of which none has them.
std::vector<Diagnostic> doubts_about(const System& system);

/// Errors, of the field to blame: neither slice nor mesh; a slice that is not offered, with `strict_slice`; a topology, mesh or order that does not
/// fit; `devices` without slice, in another order than row-major, out of range, repeated or not as many as the mesh has; a cable that does not exist.
Expected<System> make_system(const SystemSpec& spec);

/// The same system on a machine with other values. Errors: those of build_topology().
Expected<System> with_machine(System system, Machine machine);
/// Whether both are the same slice, interconnect, faults and mesh of machines that may have other values: with_machine() takes one to the other. Not sharp
/// for networks from files.
bool differ_in_machine_only(const System& one, const System& other);
/// The same system with these faults instead of its own. Errors: a cable that does not exist.
Expected<System> with_faults(const System& system, Faults faults);
/// The same devices on other axes, row-major. Errors: as many devices as the mesh has; none else for a row-major mesh or one on listed devices.
Expected<System> on_axes(const System& system, const MeshSizes& sizes);

/// The devices of the slices that the mesh leaves out.
int idle_devices(const System& system);
/// The number of devices of the mesh slower than the machine's.
int slow_devices(const System& system);
/// The host that drives each device of the mesh; those of all slices count on.
std::vector<int> hosts_of(const System& system);
/// Whether the slice, the topology or a machine value is a what-if, or parts are broken or slow.
bool is_hypothetical(const System& system);

/// The differences from the slice that the vendor builds, as the command line writes them, and the devices that the mesh leaves out.
struct SystemChanges {
  std::string topology;  // empty: as built
  int slices = 1;
  std::vector<std::string> broken, slowed;  // cables: "0.0-0.1", "0.1-0.2=0.5"
  int slow_devices = 0;
  int idle_devices = 0;
  [[nodiscard]] bool faults() const { return !broken.empty() || !slowed.empty() || slow_devices > 0; }
};
SystemChanges changes_of(const System& system);
/// "twisted, 2 slices, without 0.0-0.1, 0.1-0.2=0.5, 3 slow devices"; empty: as built. Says nothing of idle devices.
std::string to_text(const SystemChanges& changes);
/// "tpu_v4 4x4x8 twisted row=16,col=8", "tpu_v4 2x4 row=4 on 4 of 8 devices"
std::string to_text(const System& system);

/// The devices of a slice as jax_devices() needs them.
DeviceList device_list(const Machine& machine, const Slice& slice);

/// The number of each device of the mesh in all slices, as SystemSpec::devices counts them.
std::vector<int> device_numbers(const System& system);
/// If JAX's create_device_mesh would lay the mesh of a row-major system over its slice in another order, the options that say so: "--mesh-order jax", with
/// --allow-split-axes where it needs that. Empty: it is the same order, or JAX has none, or the system's order is not row-major.
std::string other_jax_order(const System& system);

/// JAX's ids of the devices, in the order of the mesh: what jax.sharding.Mesh takes, flattened.
std::vector<int> jax_device_ids(const System& system);

}  // namespace podsim
