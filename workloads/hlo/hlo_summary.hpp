// What a module does, counted: collectives, products, asynchronous windows, copies between memory spaces, and what tells no cost.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/machine/machine.hpp"
#include "workloads/hlo/hlo_custom_call.hpp"
#include "workloads/hlo/hlo_flops.hpp"
#include "workloads/hlo/hlo_loops.hpp"
#include "workloads/hlo/hlo_module.hpp"
#include "workloads/hlo/hlo_transform.hpp"

namespace podsim {

/// How many rows (of the first dimension) each position of a group sends to each in a ragged-all-to-all: [from][to].
struct HloRaggedCounts {
  std::vector<std::vector<std::int64_t>> rows{};
  SourceLocation where{};
  friend bool operator==(const HloRaggedCounts&, const HloRaggedCounts&) = default;
};

struct HloCountOptions {
  HloTripCounts trip_counts{};            // by name of the `while`
  std::map<std::string, int> branches{};  // by name of the `conditional`
  HloCustomCallCosts custom_calls{};      // by target
  std::map<std::string, HloRaggedCounts> ragged{};  // by name of the ragged-all-to-all; "": all others
  bool tolerant = false;                  // unknown trip counts are 1, products of missing operands are left out: both are warnings
};

/// An instruction of a module.
struct HloPlace {
  int computation = 0, instruction = 0;
  friend auto operator<=>(const HloPlace&, const HloPlace&) = default;
};

struct HloCollectiveCount {
  HloPlace place{};    // of the collective itself, however deep in fusions and asynchronous computations
  HloPlace runs_as{};  // the instruction that runs it: itself, a fusion, or an async-start
  HloOpcode kind{};    // reduce_scatter for an all-reduce in a fusion of which only a slice leaves
  Bytes bytes;         // input of each device, without padding
  Bytes result_bytes;  // of each device
  int operands = 1;    // tensors that are exchanged together
  bool asynchronous = false;
  std::int64_t count = 0;               // executions, loops multiplied
  std::optional<std::size_t> window{};  // in HloSummary::windows, of an asynchronous one
};

struct HloProductCount {
  HloPlace place{}, runs_as{};
  HloProduct product{};
  std::int64_t count = 0;
};

struct HloTransformCount {
  HloPlace place{}, runs_as{};
  HloTransform transform{};
  std::int64_t count = 0;
};

/// Work of the core.
struct HloWork {
  double flops = 0;   // of products, Fourier transforms and custom-calls
  double vector = 0;  // other operations, of the vector unit
  double bytes = 0;   // across the boundary of HBM, padded; values in other memory spaces have none
  Seconds time{};     // on the machine of the summary
};

/// What the core does between the start and the end of an asynchronous operation.
struct HloWindow {
  HloPlace start{}, done{};
  HloWork between{};
  std::int64_t count = 0;
};

/// Data that changes its memory space.
struct HloCopyCount {
  HloPlace place{}, runs_as{};
  int from = 0, to = 0;  // HloMemory
  Bytes bytes;           // padded
  bool asynchronous = false;
  std::int64_t count = 0;
};

/// A custom-call that costs something, or an instruction whose cost is not known, as of unknown opcode.
struct HloOpaqueCount {
  HloPlace place{};
  std::string target;  // or the opcode
  HloCustomCall cost{};
  Bytes bytes;  // operands and results, padded
  std::int64_t count = 0;
};

struct HloLoopCount {
  HloPlace place{};
  HloTripCount trips{};
  std::int64_t count = 0;  // executions of the whole loop
};

struct HloBranchCount {
  HloPlace place{};
  int branch = 0;
  bool given = false;  // else the one that takes longest on the machine; of those alike with most arithmetic, then most bytes
  std::int64_t count = 0;
};

struct HloAttributeCount {
  std::string name;
  std::int64_t count = 0;
  SourceLocation first{};
};

/// Executions of instructions that cost the core something, and what they cost on the machine of the summary.
struct HloCovered {
  double instructions = 0, bytes = 0;
  Seconds time{};
};

/// All executions of HloSummary::other_estimates.
struct HloDoubt {
  double instructions = 0;
  Seconds time{}, compiler{};  // on the machine, and by the compiler
  Seconds longer{};            // of each the longer of the two: what the machine takes for next to nothing is in doubt, too
};

/// Executions on the core, and their time on the machine. Collectives, whose time links decide, are left out.
struct HloCompared {
  double instructions = 0;
  Seconds time{};
};

/// FLOPs of one device by the type whose rate they have, each as often as it runs: of products and custom-calls; Fourier transforms are f32's.
struct HloFlops {
  std::array<double, product_dtype_count> of{};
  [[nodiscard]] double all() const { return std::accumulate(of.begin(), of.end(), 0.0); }
};

/// How far the costs of what a module runs are known. A fusion is one instruction; collectives count as known ones, whose time links decide.
struct HloCoverage {
  HloCovered known{}, estimated{}, lower_bound{}, unknown{};  // by HloEvidence
  std::map<std::string, double> lower_bound_names{}, unknown_names{};  // executions by target, kernel or opcode
  HloDoubt in_doubt{};  // of all of these
  HloCompared compared{}, not_compared{};  // by whether the compiler wrote estimated cycles for them: without, nothing says whether they are in doubt
  [[nodiscard]] double instructions() const { return known.instructions + estimated.instructions + lower_bound.instructions + unknown.instructions; }
  [[nodiscard]] Seconds time() const { return known.time + estimated.time + lower_bound.time + unknown.time; }
};

/// An instruction whose time on the machine is less than 0.3 or more than 4 times what the compiler estimated. Either may be wrong: of slices and loops libtpu's cycles
/// are often several times too many (validation/aot/README.md).
struct HloOtherEstimate {
  HloPlace place{};
  Seconds time{}, compiler{};  // of one execution
  std::int64_t count = 0;
};

struct HloSummary {
  std::vector<HloCollectiveCount> collectives{};  // all lists in the order of the text of the module
  std::vector<HloProductCount> products{};
  std::vector<HloTransformCount> transforms{};
  std::vector<HloWindow> windows{};
  std::vector<HloCopyCount> copies{};
  std::vector<HloOpaqueCount> custom_calls{};  // of a cost that is known or estimated
  std::vector<HloOpaqueCount> opaque{};
  std::vector<HloPlace> waiting{};  // all-reduces of which only the own block is used: reduce-scatters in waiting
  HloCoverage coverage{};
  std::vector<HloOtherEstimate> other_estimates{};  // those that make the greatest difference first
  HloFlops flops{};
  HloWork each_once{};              // of all instructions that run, each once, whatever loops do: what XLA's cost_analysis counts
  std::vector<HloLoopCount> loops{};
  std::vector<HloBranchCount> branches{};
  std::vector<HloAttributeCount> unknown_attributes{};
  std::vector<HloWarning> warnings{};
};

/// Counts what the entry computation runs; in a cut module, what the computations run that nothing calls. Linear in the module. Times are those of
/// `machine`: a product's FLOPs over peak and efficiency, bytes over the memory's bandwidth. Errors: a loop whose trip count is unknown, or names
/// that no loop, conditional or custom-call has; dimensions of products that do not agree; more than 2^53 executions.
Expected<HloSummary> summary_of(const HloModule& module, const Machine& machine, const HloCountOptions& options = {});

/// How far the costs of a module are known, and what its compiler estimates otherwise; names that no instruction has are no error. Of a module that
/// summary_of() refuses empty.
/// Where the run takes the compiler's cycles (`clock_hz`) they are the times, and nothing is in doubt for being otherwise.
struct HloTrust {
  HloCoverage coverage{};
  HloFlops flops{};
  std::vector<std::pair<std::string, HloOtherEstimate>> other_estimates{};  // by instruction
  std::vector<HloAttributeCount> unknown_attributes{};
};
HloTrust trust_of(const HloModule& module, const Machine& machine, const HloCountOptions& options = {}, std::optional<double> clock_hz = {});

/// Why the time of a module is only a lower bound: "3 of 412 instructions, unknown: pfft3d x 2, scan; 1, a lower bound: Cholesky"; empty: all costs are known or
/// estimated.
std::string why_at_least(const HloCoverage& coverage);

/// Input and result of a collective without padding; of what a cut file lacks, from the other side.
struct HloCollectiveBytes {
  Bytes input, result;
};
HloCollectiveBytes collective_bytes(const HloModule& module, const HloComputation& computation, const HloInstruction& collective);

/// Bytes that each device must receive for a collective of this kind among `devices`: all-gather result - input, reduce-scatter input - result,
/// all-reduce 2 (P-1)/P input, all-to-all (P-1)/P input, others the input.
double received_bytes(HloOpcode kind, const HloCollectiveBytes& bytes, std::int64_t devices);

}  // namespace podsim
