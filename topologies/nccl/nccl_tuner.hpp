// The table of NCCL's example tuner plugin: which algorithm by collective, size, nodes and ranks (NVIDIA/nccl, ext-tuner/example, NCCL_TUNER_CONFIG_FILE).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// -1: any, or of `channels` NCCL's own.
struct NcclTunerRow {
  std::string collective;      // broadcast, reduce, allgather, reducescatter, allreduce
  std::int64_t min_bytes = 0, max_bytes = 0;  // of the larger of a rank's input and output, both inclusive
  std::string algorithm;       // tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat
  std::string protocol;        // ll, ll128, simple
  int channels = -1, nodes = -1, ranks = -1, pipe_ops = -1, registered = -1;
  SourceLocation where{};
};

/// Lines of 8 to 10 fields, "#" begins a comment. The plugin takes words that it does not know as others (a collective as allreduce, an algorithm as ring): here they are errors.
/// Errors, with line and column: another number of fields; an unknown word; a number out of range; a maximum below its minimum.
Expected<std::vector<NcclTunerRow>> read_nccl_tuner(std::string_view text, const std::string& file);

/// One line for each, all ten fields, behind a heading that names them.
std::string write_nccl_tuner(const std::vector<NcclTunerRow>& rows);

/// The first row that fits, as the plugin takes it; nullptr: NCCL decides.
const NcclTunerRow* tuned_by(const std::vector<NcclTunerRow>& rows, std::string_view collective, Bytes bytes, int nodes, int ranks);

/// A collective and an algorithm of NCCL as podsim calls them, and back; empty: it has none. NCCL's rings are `channels` over several nodes, as they use every network interface, and `ring` within one.
std::string collective_of_nccl(std::string_view collective);
std::string nccl_collective_of(std::string_view collective);
std::string algorithm_of_nccl(std::string_view algorithm, int nodes);
std::string nccl_algorithm_of(std::string_view algorithm);

}  // namespace podsim
