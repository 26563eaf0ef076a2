// Reads Chakra execution traces (README.md) and their process groups.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "workloads/chakra/trace.hpp"

namespace podsim {

/// The trace in `bytes`, which may be gzip-compressed (any number of members); of PyTorch's own JSON its collectives (pytorch_trace.hpp). Unknown attributes are ignored.
/// Errors, each as `FILE: record N: expected ..., found ...`: truncated or oversized records; bytes that are no message; no metadata; a node without
/// a type, two nodes of one id, a dependency on a node that is not there, or a cycle of them; an attribute of specs in a variant that readers do not
/// ask for, or with a value out of range; sends, receives and collectives on the host. Cost O(bytes); memory a few times that, at most `most_bytes`
/// inflated.
Expected<ChakraTrace> parse_chakra(std::string_view bytes, const std::string& file);

/// PREFIX.<rank>.et
Expected<ChakraTrace> read_chakra(const std::string& prefix, int rank);

/// A comm_group configuration: {"1": [0, 1], "2": [2, 3]}. Errors (FILE:LINE:COLUMN or FILE): no such object; a key that is no number above 0; a rank
/// that is no device, or twice in its group; an empty group.
Expected<ChakraGroups> parse_chakra_groups(std::string_view json, const std::string& file, int ranks);
Expected<ChakraGroups> read_chakra_groups(const std::string& file, int ranks);

/// The nodes in an order in which dependencies come first; of those that may come next the one with the lowest id. Positions in trace.nodes.
/// Errors: those of dependencies above.
Expected<std::vector<std::size_t>> chakra_order(const ChakraTrace& trace);

}  // namespace podsim
