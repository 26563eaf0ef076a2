// Problems: computation or communication on a system, as values, and their schedules.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "algorithms/gemm/replicated.hpp"
#include "topologies/system.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/plan.hpp"
#include "workloads/scenario/bandwidth.hpp"
#include "workloads/scenario/collective_candidates.hpp"
#include "workloads/scenario/training_problem.hpp"
#include "workloads/sharded/chain.hpp"
#include "workloads/sharded/summary.hpp"

namespace podsim {

/// The algorithm that lowers the collectives of a schedule:
///   a name of collective_algorithms()
///   by-dimension        workloads/collectives.hpp
///   direct-between-slices  the same, but direct along an axis over slices
///   auto                for each collective the fastest, by simulation (collective_choice.hpp)
///   rotations over 4x4  a Lowering (collective_candidates.hpp): order of axes, physical dimensions, chunks
///   empty               ring, or line on open axes
struct CollectivePolicy {
  std::string algorithm{};
  std::optional<int> chunks{};       // of what works in chunks; nullopt: chosen from the machine's values
  std::optional<Lowering> chosen{};  // by `auto`, for the only collective of a problem: decides; `algorithm` is its name
  [[nodiscard]] bool is_auto() const { return algorithm == auto_name; }
  /// Whether collectives are lowered alike, whoever chose that.
  friend bool operator==(const CollectivePolicy& a, const CollectivePolicy& b) { return a.algorithm == b.algorithm && a.chunks == b.chunks; }
};

struct GemmSpec {
  const GemmAlgorithmEntry* algorithm = nullptr;
  GemmProblem problem;  // of the forward pass
  Pass pass = Pass::forward;
  GemmOptions options;
  bool pad = false;  // round extents up to multiples that divide evenly
  CollectivePolicy collectives{};
  std::optional<std::vector<std::string>> given{};  // inputs that need no gather; all other replicated inputs are gathered first. nullopt: no gathers
};

/// One collective over every group of devices along mesh axes.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::vector<std::string> axes{};  // first most significant; empty: all axes with more than one device
  Bytes input;                      // on each device; broadcast: the root's
  DType dtype = DType::bf16;
  CollectiveDetails details{};
  CollectivePolicy policy{};
};

/// Constraints on how a workload is computed; the tuner chooses the rest.
struct PlanChoices {
  std::vector<std::string> algorithms{"collective", "meshslice", "wang"};  // of products
  std::vector<Dataflow> dataflows{};                                       // empty: all, also transposed; else only these, not transposed
  std::map<std::string, std::int64_t> slice_counts{};                      // by stage; "": all other stages
  Pass pass = Pass::both;
  PartOptions options{};
};

/// The named axes; without names all axes with more than one device, as the mesh orders them. Errors (field `axis`): an unknown axis, an axis named
/// twice.
Expected<std::vector<AxisView>> axes_of(const std::vector<std::string>& names, const Mesh& mesh);

struct WorkloadSpec {
  Workload workload;
  PlanChoices choices;
};

/// A workload and how it is computed.
struct PlannedWorkload {
  Workload workload;
  Plan plan;
  Pass pass = Pass::both;
};

struct ScheduleSpec {
  Schedule schedule;
  CollectivePolicy collectives{};
  std::string name = "schedule";
  std::optional<Bytes> input{};  // of a schedule that computes one collective: on each device
};

/// A sharded program; what collectives it needs is open.
struct ProgramSpec {
  ShardedProgram program;
  Choose choose = Choose::bytes;
  struct ChainSearch {
    std::set<std::string> fixed{}, replicate{};  // operands
    Minimise minimise = Minimise::bytes;
  };
  std::optional<ChainSearch> chain{};  // search for shardings and the order of the products
  CollectivePolicy collectives{};
};

/// A program and its collectives.
struct PlannedProgram {
  ShardedProgram program;
  ProgramPlan plan;
  CollectivePolicy collectives{};
  ProgramSummary summary{};
  std::string chosen_by{};  // "program by bytes", "chain"
};

/// A compiled module, in its own order.
struct HloSpec {
  std::shared_ptr<const HloModule> module;
  HloScheduleOptions options{};  // with values: for a check on numbers
  bool estimated_cycles = false;  // instructions take the compiler's estimate at options.clock_hz, or by chip.cycle of the machine
  std::optional<CollectivePolicy> collectives{};  // nullopt: usual_collectives()
  std::vector<std::string> assumed{};   // of its system, in sentences: KnownModule
  std::vector<std::string> rewritten{}; // what `module` has in place of the text's instructions, in sentences
  std::shared_ptr<const HloModule> original{};  // the text's, where `module` is made from it: what a check on numbers compares with; null: `module`
  bool order_given = true;              // whether anybody says on which device each partition runs; else the mesh's order is assumed
  std::optional<ProgramText> equals{};  // what it should compute: its parameters are the inputs, its results the outputs, in order. Of schedules with values
};

/// What runs the collectives of a module that is not told otherwise. On GPUs NCCL, which chooses by itself: `auto`. On TPUs the compiler has chosen: by-dimension, and as the text
/// states. A check on numbers is by-dimension anywhere.
CollectivePolicy usual_collectives(const System& system, const HloSpec& spec);

/// Anything that can be simulated on a system.
using ProblemSpec = std::variant<GemmSpec, CollectiveSpec, WorkloadSpec, PlannedWorkload, ScheduleSpec, ProgramSpec, PlannedProgram, TrainingSpec, PlannedTraining, HloSpec>;

/// The input of a workload.
struct TokenCount {
  std::int64_t batch = 0, sequence = 0;  // sequences, of so many tokens
  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
};
/// Of a transformer block.
std::optional<TokenCount> tokens_of(const Workload& workload);

/// Of a module that is simulated.
struct HloRunSummary {
  std::string module;
  std::size_t instructions = 0;
  bool is_scheduled = false;
  std::vector<HloOpaque> opaque{};
  std::vector<HloStatedAlgorithm> stated{};  // empty if the run's `collectives` decides
  std::vector<std::string> notes{};
  std::vector<std::string> not_checked{};    // FILE:LINE:COLUMN: NAME: CALL, whose values are not known to a check on numbers
  std::optional<HloPeakMemory> memory{};  // by live ranges of its text
  HloTrust trust{};
  std::string mesh_order{};               // of its devices: to_text(MeshOrder), or "listed"
  bool mesh_order_assumed = false;
  HloOrigins origins{};                   // of what communicates
};

/// The description of a problem in results.
struct ProblemSummary {
  std::string algorithm, dataflow;                              // dataflow: of a GEMM
  std::optional<std::int64_t> slice_count;                      // of a sliced GEMM algorithm
  double padding = 0;                                           // share of the flops that padding adds
  std::vector<std::pair<std::string, ProductChoice>> layers{};  // of a workload: how each product is computed
  std::int64_t blocks = 1;                                      // of a workload: such blocks in its model
  std::optional<TokenCount> tokens{};                           // of a workload of sequences
  std::optional<CollectiveSummary> collective{};                // of one collective
  std::optional<Mesh> on_mesh{};                                // that was asked for, of a collective that is lowered along one axis over all of it
  std::vector<Replicated> replicated{};                         // of a GEMM: operands that several devices hold
  std::optional<ProgramSummary> program{};                      // of a sharded program
  std::shared_ptr<const TrainingSummary> training{};            // of a training step
  std::shared_ptr<const HloRunSummary> hlo{};                   // of a module
};

/// A schedule before lowering, with the policy that lowers its collectives.
struct Problem {
  Schedule schedule;
  CollectivePolicy collectives;
  ProblemSummary summary;
  HloTasks hlo_tasks{};  // of a module, which must outlive them
};

/// The system in the form that the problem uses: for GEMM algorithms of one axis, a mesh with one axis `ring` over all devices, row-major; for a module whose collectives are lowered by
/// `auto`, a row-major mesh of the axes that they tell apart ("x,y" where none tells x from y), so that the time does not depend on how the mesh is written; for a collective by an
/// algorithm "as one axis" (one_axis.hpp) that axis. Errors: the mesh order
/// is not row-major (GEMM).
Expected<System> system_for(const ProblemSpec& spec, const System& system);

/// Pure. Errors (naming the field): the problem does not fit the mesh; an unknown algorithm; a workload, program or training step whose
/// plan is open (plan_choice.hpp).
Expected<Problem> make_problem(const System& system, const ProblemSpec& spec);

}  // namespace podsim
