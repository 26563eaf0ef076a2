// A module as a schedule: the instructions of the real kernel in its own order, on every device of a mesh.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/collectives/axis_cells.hpp"
#include "sim/schedule/schedule.hpp"
#include "workloads/hlo/hlo_summary.hpp"

namespace podsim {

/// Of a device, roughly: what instructions are ordered by where the compiler has not done so.
struct HloRates {
  double flops_per_s = 1e14, bytes_per_s = 1e12, link_bytes_per_s = 1e11;
};

struct HloScheduleOptions {
  ///   text     instructions run as they stand; collectives block the core, but for what stands between -start and -done
  ///   overlap  collectives begin when their operands are there, and only what needs them waits. The core's work stays in the order of a scheduled module; else it takes what is ready by
  ///            `rates`, in the text's order (list_order.hpp). The memory that early starts take is not minded
  enum class Order { text, overlap };
  std::optional<Order> order{};  // nullopt: of a scheduled module `text`, as the compiler decided; else `overlap`, as the compiler would still move and fuse instructions
  HloRates rates{};
  const Machine* machine = nullptr;  // whose times say which branch of a conditional is the longest; none: one that takes no time, so arithmetic and bytes do
  bool rewrite_reduce_scatter = false;   // an all-reduce of which only the own block is used
  bool rewrite_bf16_reductions = false;  // all-reduces and reduce-scatters of float32 send bf16; converting is fused with what makes and uses the sums. Not with `values`: other numbers
  HloCountOptions counts{};  // not tolerant
  /// Every value has a buffer of its dimensions, and opaque tasks say what they compute (HloKernel): what numbers need. Without tiles and fusion of
  /// elementwise work, so not for timing; the order, what is sent and what is updated in place are the same.
  bool values = false;
  CellRule cells{};                     // the dimensions under axes that are not folded, for algorithms that the module states
  std::optional<double> clock_hz{};  // instructions take their estimated_cycles, where the compiler tells them
};

/// The order in which a module runs with these options.
inline HloScheduleOptions::Order order_of(const HloModule& module, const HloScheduleOptions& options) {
  return options.order.value_or(module.is_scheduled ? HloScheduleOptions::Order::text : HloScheduleOptions::Order::overlap);
}

/// An instruction that only its bytes are known of.
struct HloOpaque {
  std::string instruction, target;
  Bytes bytes;
  friend bool operator==(const HloOpaque&, const HloOpaque&) = default;
};

/// What an opaque task computes, in a schedule with values.
struct HloKernel {
  enum class Kind {
    instruction,  // the results of an instruction that communicates nothing
    collective,   // the results of a collective, or of a conditional with some, on one device, from the operands of all devices one after the other
    keep_own,     // of a permute, for devices that nobody sends to: their own array if they send to themselves, else zeros
    is_true,      // nothing: asserts that a computation is true (the condition of a loop that goes on), that it is not, or is branch number `branch`
    is_false,
    is_branch,
  };
  Kind kind = Kind::instruction;
  int computation = 0;           // where the instruction stands, in HloModule::computations
  HloInstruction instruction{};  // asynchronous ones as a whole; of conditions a call of the computation
  std::vector<std::vector<int>> operands{};  // of each operand, by leaf: the region that is read; `none`: it has no values
  std::vector<int> results{};                // by leaf: the region that is written
  std::int64_t branch = 0;
  static constexpr int none = -1;
};

/// Collectives whose algorithm the compiler states, and what it is here.
struct HloStatedAlgorithm {
  std::string strategy;         // to_text(HloStrategy)
  std::string algorithm;        // Collective::algorithm; empty: the run's own choice
  std::int64_t collectives = 0;  // instructions
  friend bool operator==(const HloStatedAlgorithm&, const HloStatedAlgorithm&) = default;
};

/// What a task stands for.
struct HloTask {
  enum class Role {
    itself,   // what the instruction computes, copies or sends
    operand,  // an operand of it, made where it is used
    place,    // what it reads or makes in another place or form: free in time
    wait,     // for what it began
    trip,     // of a loop: a Call
  };
  const HloInstruction* instruction = nullptr;  // of the module; null: results of a computation, put in their place
  Role role = Role::itself;
  std::int64_t trip = -1;  // of Role::trip, from 0 on
};

/// In the order of the schedule's tasks.
struct HloTasks {
  std::vector<HloTask> program{};
  std::vector<std::vector<HloTask>> functions{};
};

/// Where in the user's program an instruction comes from, as its metadata say; empty where they do not.
struct HloOrigin {
  std::string path;    // op_name: "jit(step)/while/body/layers/dot_general"
  std::string source;  // "layers.py:85"
  friend bool operator==(const HloOrigin&, const HloOrigin&) = default;
};
using HloOrigins = std::map<std::string, HloOrigin, std::less<>>;  // by the instruction's name

struct HloSchedule {
  Schedule schedule;
  HloTasks tasks{};
  std::vector<HloKernel> kernels{};  // by OpaqueCost::operation
  std::size_t instructions = 0;  // of the module
  std::vector<HloOpaque> opaque{};
  std::vector<HloStatedAlgorithm> stated{};  // by strategy, then algorithm
  std::vector<std::string> notes{};  // what was assumed: branches, reduce-scatters in waiting
};

/// Of the instructions that communicate.
HloOrigins origins_of_communication(const HloSchedule& made);

/// Device d of the module is device d of the mesh, row-major. One program for all devices; the body of a loop is a function, called as often as the loop
/// runs, and loops within it are written out.
///
/// Core instructions run in order, asynchronous ones beside them from -start to -done, where a task without length waits. Products are Matmuls where one
/// can say them, all else is opaque work with the costs of HloTaskCosts. Values that a tuple, a loop or a bitcast passes on stay in their buffers, updates
/// happen in place, results of donated parameters are in theirs, where nothing reads the old values later; elsewhere a `place` that is free in time
/// stands for what the compiler arranges. Scalars cost nothing.
/// Of a module that is not scheduled, elementwise instructions with one user that is elementwise or reduces cost no memory traffic of their own: the compiler
/// fuses them.
/// Errors, at the instruction: another number of devices than the mesh has; groups that differ in size; a loop without a trip count; a
/// branch that is not there; products whose shapes do not fit; asynchronous operations that are never done; infeed, outfeed, send, recv and
/// ragged-all-to-all; more than 2^22 tasks, calls 200 deep, values of more than 2^15 arrays (written_size.hpp). Cost O(tasks).
Expected<HloSchedule> hlo_schedule(const HloModule& module, const Mesh& mesh, const HloScheduleOptions& options = {});

}  // namespace podsim
