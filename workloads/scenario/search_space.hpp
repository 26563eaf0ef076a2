// Where a tuner searches: slices and meshes.
#pragma once

#include <string_view>
#include <vector>

#include "topologies/system.hpp"

namespace podsim {

/// Every slice of so many chips that the vendor offers; `two_dimensional`: every AxB, hypothetical unless it is offered. Errors, of the field `chips`: nothing is offered of so
/// many (names the near numbers).
Expected<std::vector<Slice>> slices_of(const Machine& machine, std::int64_t chips, bool two_dimensional);

/// Every row x col whose axes take whole dimensions of the slice; where switches join the devices, or with `split_axes`, every row x col. Few rows come last.
std::vector<MeshSizes> meshes_of(const System& system, bool split_axes);

struct SearchSpace {
  SystemSpec base;  // without slice and mesh
  std::vector<Slice> slices;
  std::vector<MeshSizes> meshes{};  // none: every row x col whose axes take whole dimensions of the slice; where switches join the devices, every row x col
  bool split_axes = false;          // every row x col at all
  std::vector<std::string_view> training{};  // if any: instead of row x col these axes of a training step, in their order and in every way, and slice over the slices
  bool turn = true;                 // try every order of a slice's dimensions if their links are equal; equivalent meshes are tried once
};
/// Slice by slice. Errors: those of make_system().
Expected<std::vector<System>> systems_in(const SearchSpace& space);

}  // namespace podsim
