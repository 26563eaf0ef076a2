// Where a mesh does not follow the physical dimensions of its slice.
#pragma once

#include <string>
#include <vector>

#include "topologies/system.hpp"

namespace podsim {

/// A physical dimension whose chips two mesh axes share: neither has the ring of that dimension to itself, so that another mesh may be several times as
/// fast.
struct Misalignment {
  std::string note;
  std::string aligned_meshes;  // of the same axes along whole dimensions: "row=16,col=256 or row=256,col=16"; empty: none, or not two axes
};
/// None where switches alone join the chips, or where the order of the mesh is not row-major.
std::vector<Misalignment> misalignments(const System& system);

}  // namespace podsim
