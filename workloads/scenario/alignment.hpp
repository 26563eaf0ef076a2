// Mesh axes that do not follow the physical dimensions of the slice.
#pragma once

#include <string>
#include <vector>

#include "topologies/system.hpp"

namespace podsim {

/// A physical dimension that two mesh axes share: neither axis has the ring of this dimension to itself. Another mesh may be several times as fast.
struct Misalignment {
  std::string note;
  std::string aligned_meshes;  // of the same axes along whole dimensions: "row=16,col=256 or row=256,col=16", at most four; empty: none, or the one
                               // before has them
};
/// Empty if only switches join the chips, or if the mesh order is not row-major.
std::vector<Misalignment> misalignments(const System& system);

}  // namespace podsim
