// A planned program for people: its collectives, their bytes and their reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/sharded/plan.hpp"

namespace podsim {

/// A collective of a planned program, or a slice.
struct ProgramCollective {
  std::string statement;  // "C = A @ B"
  std::string kind;       // "all-gather"
  std::string tensor;
  std::vector<std::string> axes;
  int dim = 0;            // all-gather, reduce-scatter; all-to-all: the dimension that is divided then
  std::string before, after;  // shardings
  Bytes input{}, received{};  // per device
  std::string reason;
  std::string alternative{};             // the collectives of the next best way; empty: there is no other
  std::optional<Bytes> alternative_bytes{};  // what they receive, beside `chosen_bytes`
  std::optional<Bytes> chosen_bytes{};
  bool written = false;   // the program's text says it
  std::int64_t count = 1;  // of a transform or factorisation: so many of this kind, along these axes; bytes are of all
};

struct ProgramOutput {
  std::string name;
  Extents extents;
  std::string sharding;  // "x,-"
  std::vector<std::string> unreduced{};
  std::string dtype{};
  bool is_real = true;  // f32 or bf16, as products are
  CyclicBlocks cyclic{};
  std::optional<Sharding> of_blocks{};  // of a result of shard_map: which device has which block of it
};

/// How a transform or linear system is computed.
struct ProgramKernel {
  std::string name, function, algorithm;  // "Y", "fft", "pencil"
  std::string note{};                     // "block-cyclic, blocks of 32x32"
};

struct ProgramSummary {
  std::vector<ProgramCollective> collectives;
  std::vector<ProgramCollective> slices;
  std::vector<ProgramKernel> kernels{};
  ReshardCost cost;
  bool contains_all_gather = false;
  std::vector<ProgramOutput> outputs;
  Bytes padded{};      // zeros added to inputs and outputs, of whole arrays
  double padding = 0;  // the share of the products' work that they are

  // Of a chain.
  std::string association{};
  std::vector<std::pair<std::string, std::string>> shards{};  // operand, sharding
  std::optional<Bytes> per_iteration{};                       // X = A @ X
  std::string note{};
};

ProgramSummary summary_of(const ShardedProgram& program, const ProgramPlan& plan);

}  // namespace podsim
