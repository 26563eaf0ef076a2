// Along which axes a collective of a module runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

struct HloCollectiveAxes {
  /// Names, most significant first. nullopt: the groups are no axes of the mesh. Without a mesh those that the groups themselves name (mesh['x'=4]
  /// {'x'}).
  std::optional<std::vector<std::string>> axes{};
  std::optional<PermuteShift> shift{};  // of a collective-permute along one axis of a mesh
  std::string groups;                   // as they are written; of a collective-permute its pairs
  std::int64_t group_size = 0;          // devices that take part together; 0 if groups differ in size
};

/// `mesh` has the module's devices in the order of their ids, or is nullptr. Errors: ids beyond the devices.
Expected<HloCollectiveAxes> collective_axes(const HloModule& module, const HloInstruction& collective, const Mesh* mesh);

/// Whether the module talks to other slices than its own: it is that of one slice, and all slices run it.
bool spans_slices(const HloModule& module);

/// The groups of a collective in numbers of `devices` devices: the module's, or those of several slices after each other, each of which runs the module. A
/// collective across slices has a group for each device of a slice. Errors: those of flattened_groups().
Expected<ReplicaGroups> groups_among(const HloModule& module, const HloInstruction& collective, std::int64_t devices);
/// The pairs of a collective-permute, likewise.
std::vector<SourceTarget> pairs_among(const HloModule& module, const HloInstruction& collective, std::int64_t devices);

/// Its replica groups as they are written; of a collective-permute its pairs.
std::string groups_text(const HloInstruction& collective);

/// "{{0,1},{1,0}}"
std::string to_text(const std::vector<SourceTarget>& pairs);

}  // namespace podsim
