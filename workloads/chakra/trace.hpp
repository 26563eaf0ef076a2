// A Chakra execution trace as values: one rank's nodes in the order of its file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The numbers of the format (chakra.proto).
enum class ChakraType { invalid, metadata, mem_load, mem_store, comp, comm_send, comm_recv, comm_coll };
enum class ChakraCollective { all_reduce, reduce, all_gather, gather, scatter, broadcast, all_to_all, reduce_scatter, reduce_scatter_block, barrier };

/// What podsim adds to a node, beside what the format defines. Other readers ignore it; it lets a trace run again to the same picosecond.
struct ChakraExtension {
  std::optional<Picoseconds> duration{};  // duration_ps
  std::vector<double> work_s{};           // of a comp: its time alone on the memory, and of it what draws no memory at the beginning and at the end
  bool dma = false;                       // unit = "dma": beside the core
  bool launch = false;                    // launch: the software launch of the collective `origin`
  bool adds = false;                      // combine = "add": what is received is added
  bool waits = false;                     // rendezvous: the transfer does not begin before the receiver is ready
  std::string shift_axis{};               // of both halves of a shift: "row:1:4" (name, stride, size)
  std::int64_t shift_by = 0;
  std::string axes{};  // of a collective, as shift_axis, separated by commas
  std::string dtype{};
  std::vector<std::int64_t> input_extents{}, output_extents{};  // of a collective's regions
  std::int64_t dim = 0, split_dim = 0, root = 0;
  bool in_place = false;  // the smaller region is a block of the larger, or both are one
  // Of what lowering wrote: the collective that it belongs to.
  std::string origin_kind{}, origin_axis{};
  std::int64_t origin = 0, origin_input_bytes = 0, origin_own_block = 0;
  std::vector<std::int64_t> route_order{};
  friend bool operator==(const ChakraExtension&, const ChakraExtension&) = default;
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraType type = ChakraType::invalid;
  std::vector<std::uint64_t> ctrl_deps{}, data_deps{};
  std::uint64_t start_micros = 0, duration_micros = 0;
  bool is_cpu_op = false;
  std::int64_t num_ops = 0;       // FLOPs of a comp
  std::uint64_t tensor_size = 0;  // bytes that a comp or mem node touches
  std::int64_t comm_type = 0;     // of a comm_coll: a ChakraCollective
  std::int64_t comm_size = 0;     // bytes: all-gather: the shard; other collectives: the full local buffer; send and recv: the message
  std::vector<bool> involved_dim{};
  std::string pg_name{};  // "" or "0": all ranks
  std::optional<std::int32_t> comm_src{}, comm_dst{};
  std::int32_t comm_tag = 0;
  std::int32_t comm_priority = 0;
  ChakraExtension extension{};
  int record = 0;  // its number in the file, from 0 (the metadata)
  friend bool operator==(const ChakraNode&, const ChakraNode&) = default;
};

inline bool communicates(const ChakraNode& node) { return node.type == ChakraType::comm_coll || node.type == ChakraType::comm_send || node.type == ChakraType::comm_recv; }

/// The ranks of each process group, in group order, by the group's id.
using ChakraGroups = std::map<std::string, std::vector<int>>;

struct ChakraTrace {
  std::string file;  // for messages
  std::string version;
  std::string collective_algorithm;  // podsim's metadata: the policy that lowered the collectives
  int collective_chunks = 0;         // 0: not given
  std::string mesh;                  // podsim's metadata: "row=4,col=2"
  std::vector<ChakraNode> nodes;
  ChakraGroups groups{};  // that METADATA nodes of PyTorch traces tell; no ranks: all
};

/// "traces/ring.3.et"
std::string chakra_file(const std::string& prefix, int rank);
/// "traces/ring.groups.json", where podsim writes the process groups.
std::string chakra_groups_file(const std::string& prefix);
/// The number of traces, of ranks 0, 1, .. up to the first that is missing.
int chakra_ranks(const std::string& prefix);
/// An error in record number `record` of a trace.
Diagnostic chakra_error(const std::string& file, int record, const std::string& message);

}  // namespace podsim
