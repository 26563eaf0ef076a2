// The rings and trees that NCCL found on a node: the XML of NCCL_GRAPH_DUMP_FILE, which NCCL_GRAPH_FILE takes back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// From one network interface over GPUs to another; within one node without interfaces. Numbers are NCCL's: `dev`.
struct NcclChannel {
  std::optional<std::int64_t> from{}, to{};
  std::vector<std::int64_t> gpus{};
  friend bool operator==(const NcclChannel&, const NcclChannel&) = default;
};

struct NcclGraph {
  std::string name;  // "ring", "tree", "collnet chain", "nvls", "collnet direct", else "graph 7"
  std::vector<NcclChannel> channels{};
  BytesPerSecond within{}, between{};  // of one channel: among the node's GPUs, between nodes
  std::string path_within{}, path_between{};  // as NCCL calls the longest path: LOC, NVL, PIX, PHB, SYS, ..
  bool crosses_interfaces = false;  // a channel may leave by another interface than it came in by
};

/// Errors, with line and column: no XML; no element `graphs`; numbers out of range. Sources: NVIDIA/nccl @022c022a, src/include/graph.h (ids, patterns, paths).
Expected<std::vector<NcclGraph>> read_nccl_graphs(std::string_view text, const std::string& file);

/// A line for each graph, with the order of the GPUs of each channel that differs: "ring: 2 channels of 12 GB/s within the node: 0 1 2 3; 0 3 2 1".
std::string to_text(const std::vector<NcclGraph>& graphs);

}  // namespace podsim
