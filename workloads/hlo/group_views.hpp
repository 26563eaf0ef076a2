// Replica groups as parts of mesh axes, so that collectives know where their rings wrap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/hlo/replica_groups.hpp"

namespace podsim {

/// The axes, or factors of axes, that the groups extend over, most significant first: position i of a group has these coordinates, row-major.
/// {0,1,2,3},{4,5,6,7} on x=4,y=2 are x/1:2 and y. `all` is every axis of more than one device; groups of one device are an empty list. nullopt if
/// the groups are not all the devices along some factors of the mesh. O(devices * factors).
std::optional<std::vector<AxisView>> views_of(const ReplicaGroups& groups, const Mesh& mesh);

/// Whether no axis is in two of them, as a Collective asks for.
bool have_axes_once(const std::vector<AxisView>& views);

/// The groups of a collective as a schedule says them.
struct CollectiveGroups {
  std::vector<AxisView> views{};
  std::optional<ReplicaGroups> listed{};  // they are no views
  std::int64_t devices = 1;               // in each group
  std::int64_t root = 0;                  // of a broadcast: position of the source
  std::string algorithm{};                // Collective::algorithm
};
/// views_of() if they have each axis once, else the groups themselves. nullopt if they differ in size or are not every device of the mesh once. `any_order`: the order of the
/// devices in a group does not matter.
std::optional<CollectiveGroups> collective_groups(const ReplicaGroups& groups, const Mesh& mesh, bool any_order);

/// The most devices in one of the groups, which are listed.
std::int64_t largest_group_of(const ReplicaGroups& groups);

/// Groups of a collective-broadcast: the first device of each is its source. {{1,0},{3,2}} are the groups {0,1} and {2,3} with source number 1.
struct RootedGroups {
  ReplicaGroups groups;   // in increasing order
  std::int64_t root = 0;  // position of the source
};
/// nullopt if the source has not the same position in all groups. O(devices log devices).
std::optional<RootedGroups> rooted(const ReplicaGroups& groups);

}  // namespace podsim
