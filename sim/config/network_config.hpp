// Topologies as files (network.proto).
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/topology/network.hpp"

namespace podsim {

/// Errors, with line and column: a file of another kind; empty, repeated or unknown names; a cable from a node to itself; values without units or not
/// positive; a cable without a source; those of Network::make().
Expected<Network> read_network(std::string_view text, const std::string& file);

}  // namespace podsim
