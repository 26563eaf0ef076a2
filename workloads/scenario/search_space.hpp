// Where a tuner searches: the slices and meshes that are left open.
#pragma once

#include <vector>

#include "topologies/system.hpp"

namespace podsim {

/// Every slice of so many chips that the vendor offers; `two_dimensional`: every AxB as a what-if. Errors, of the field `chips`: nothing is offered of so
/// many (names the near numbers).
Expected<std::vector<Slice>> slices_of(const Machine& machine, std::int64_t chips, bool two_dimensional);

struct SearchSpace {
  SystemSpec base;  // but for slice and mesh
  std::vector<Slice> slices;
  std::vector<MeshSizes> meshes{};  // none: every row x col whose axes take whole dimensions of the slice
  bool split_axes = false;          // every row x col at all
  bool turn = true;                 // where the links of all dimensions are equal, slices are turned every way; of meshes that are then alike there is one
};
/// Slice by slice. Errors: those of make_system().
Expected<std::vector<System>> systems_in(const SearchSpace& space);

}  // namespace podsim
