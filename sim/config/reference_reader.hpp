// Reads the claim of a schedule file that is a graph of operations. Internal to sim/config.
#pragma once

#include "sim/config/message_file.hpp"
#include "sim/mesh/mesh.hpp"
#include "sim/schedule/reference_program.hpp"

namespace podsim {

namespace proto {
class Reference;
}

/// Problems go to `file`: operands that are not earlier nodes, outputs of no node, extents beyond 2^62, unknown axes. check_reference() finds the
/// rest.
ReferenceProgram read_reference(const proto::Reference& message, const Place& place, const Mesh& mesh, MessageFile& file);

}  // namespace podsim
