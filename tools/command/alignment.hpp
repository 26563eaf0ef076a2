// Where a mesh does not follow the physical dimensions of its slice.
#pragma once

#include <string>
#include <vector>

#include "tools/command/pod.hpp"

namespace podsim {

/// A note for each physical dimension whose chips two mesh axes share: neither has the ring of that dimension to itself, so that another mesh may
/// be several times as fast. None where switches alone join the chips, or where the order of the mesh is not row-major.
std::vector<std::string> alignment_notes(const PodRequest& request, const Pod& pod);

}  // namespace podsim
