// A system: slices of a machine, what joins their chips, what of it is broken or slow, and a mesh that is placed on it.
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

/// Which chip each device of a mesh gets.
struct RowMajorOrder {};
struct SnakeOrder {};  // neighbours in the order are neighbours in the grid
struct JaxOrder {      // as jax's create_device_mesh assigns
  bool allow_split_axes = false, contiguous_submeshes = false;
};
struct ListedOrder {
  std::string file;  // chip numbers, of what parse_device_order() reads
};
using MeshOrder = std::variant<RowMajorOrder, SnakeOrder, JaxOrder, ListedOrder>;

/// Devices that work slower: all of a chip, or a part of all, chosen by the seed.
struct SlowDevices {
  std::optional<ChipId> chip{};
  double fraction = 0;  // without a chip; rounded up
  double speed = 1;     // of the machine's, above 0 and up to 1
  friend bool operator==(const SlowDevices&, const SlowDevices&) = default;
};

/// What is broken or slow. Cables are those of a slice; of several slices each has the same. A later entry of the same device or cable wins.
struct Faults {
  std::vector<CableEnds> broken{};
  std::vector<SlowCable> slow_cables{};
  std::vector<SlowDevices> slow_devices{};
  std::uint64_t seed = 0;
  [[nodiscard]] bool none() const { return broken.empty() && slow_cables.empty() && slow_devices.empty(); }
};

using MeshSizes = std::vector<std::pair<std::string, int>>;  // names and sizes of the axes

/// What a system is made of.
struct SystemSpec {
  Machine machine;
  std::optional<Slice> slice{};  // none: the sizes of the mesh
  bool strict_slice = false;     // refuse a slice that the vendor does not offer
  Wrap wrap{};
  TopologySpec topology{};
  int slices = 1;
  MeshSizes mesh{};  // none: an axis per dimension, named row, col, depth, axis3; before them `pod` for several slices, behind them `core`
  MeshOrder order{};
  Faults faults{};
};

/// Complete when made: what follows from the machine's values, as its topology, is that of `machine`. A system with something else is another one:
/// with_machine() and so on.
struct System {
  Machine machine;
  Slice slice;
  Wrap wrap;
  TopologySpec joined_by;
  int slices = 1;
  Faults faults;
  bool hypothetical = false;                    // the slice or what joins it is not offered
  std::shared_ptr<const Topology> whole_slice;  // one slice, nothing broken
  std::shared_ptr<const Topology> topology;
  Grid layout;  // what the mesh is laid over: slices, the dimensions of a slice, the devices of a chip; it wraps where neighbours at the ends are
                // neighbours
  Mesh mesh;
  MeshOrder order;
  Placement placement;
};

/// Errors, of the field to blame: no slice and no mesh; a slice that is not offered where `strict_slice`; a topology, mesh or order that does not suit
/// it; a cable that is not there.
Expected<System> make_system(const SystemSpec& spec);

/// The same system of a machine with other values. Errors: those of build_topology().
Expected<System> with_machine(const System& system, Machine machine);
/// With these faults in place of its own. Errors: a cable that is not there.
Expected<System> with_faults(const System& system, Faults faults);
/// All devices on one axis of this name, row-major. Errors: none for a row-major mesh.
Expected<System> on_one_axis(const System& system, const std::string& axis);

/// How many devices are slower than the machine says.
int slow_devices(const System& system);
/// Whether the slice, the topology or a machine value is not offered as it is.
bool is_hypothetical(const System& system);

/// What differs from the slice that the vendor builds, in texts as the command line has them.
struct SystemChanges {
  std::string topology;  // empty: as built
  int slices = 1;
  std::vector<std::string> broken, slowed;  // cables: "0.0-0.1", "0.1-0.2=0.5"
  int slow_devices = 0;
  [[nodiscard]] bool faults() const { return !broken.empty() || !slowed.empty() || slow_devices > 0; }
};
SystemChanges changes_of(const System& system);
/// "twisted, 2 slices, without 0.0-0.1, 0.1-0.2=0.5, 3 slow devices"; empty: as built.
std::string to_text(const SystemChanges& changes);
/// "tpu_v4 4x4x8 twisted row=16,col=8"
std::string to_text(const System& system);

/// The devices of a slice as jax.devices() is asked for them.
DeviceList device_list(const Machine& machine, const Slice& slice);

}  // namespace podsim
