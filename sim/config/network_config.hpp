// Topologies as files (network.proto).
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/topology/network.hpp"

namespace podsim {

/// Errors, with line and column: what is no such file; names that are empty, repeated or unknown; a cable from a node to itself; values without units
/// or not positive; a cable without a source; and what Network::make() finds.
Expected<Network> read_network(std::string_view text, const std::string& file);

}  // namespace podsim
