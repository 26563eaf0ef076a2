// The tuner: the plan of a workload that takes the least time, with the simulator in the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/engine/engine.hpp"
#include "workloads/plan.hpp"
#include "workloads/tuning/part_costs.hpp"

namespace podsim {

/// What a search is told of its progress.
struct TuningProgress {
  std::int64_t simulated = 0;
  std::optional<Picoseconds> best;  // of the plans known so far
  Picoseconds bound;                // no plan is faster
  std::int64_t parts_in_all = 0;    // of an exhaustive search
};

/// A plan that takes part whatever the search would look at.
struct BaselinePlan {
  std::string name;
  std::size_t system = 0;
  Plan plan;
};

struct TuningRequest {
  Workload workload;
  std::vector<System> systems;  // where: slices with a mesh of row and col each; all of one machine
  Pass pass = Pass::both;
  std::vector<std::string> algorithms;  // of gemm_algorithms()
  PartOptions options;
  std::int64_t largest_slice_count = 64;
  std::function<bool(const std::string& stage, const ProductChoice&)> allowed{};  // narrows the choices; none: all
  std::vector<BaselinePlan> baselines{};
  bool exhaustive = false;     // simulates every option of every system
  std::size_t top = 5;         // plans wanted
  std::optional<Bytes> hbm{};  // plans above this are excluded; none: unlimited
  const EngineEntry* engine = nullptr;
  int threads = 0;
  Cancellation stop;
  std::function<void(const TuningProgress&)> progress{};
};

struct TunedPart {
  WorkloadPart part;
  PartCost cost;
};

/// Another way to compute a stage of a plan, in the same layouts.
struct StageAlternative {
  std::string stage;
  ProductChoice choice;
  Picoseconds time, of_plan;  // in all passes; of what the plan has
  bool exact = false;         // false: it takes `time` at least
};

/// The best plan on one system, or a baseline.
struct TunedPlan {
  std::size_t system = 0;
  std::string baseline{};
  Plan plan;
  Picoseconds time, forward, backward;  // sums over parts, which start together on all devices
  MemoryUse memory;
  std::vector<TunedPart> parts;
  std::vector<StageAlternative> alternatives{};  // per product the next best of another algorithm or dataflow, and of another S
};

struct ExcludedOption {
  std::string what, reason;
  bool by_activations = false;  // it needs too much memory, activations that the backward pass reads among it
};

/// What to say where activations do not fit.
inline constexpr std::string_view no_remat =
    "activations are kept for the backward pass: computing them again (remat) is not modelled; a smaller batch needs less memory";

struct Tuning {
  std::vector<TunedPlan> plans;          // best first: by time, memory, system; one per system
  std::vector<TunedPlan> baselines;      // as asked for
  std::int64_t candidates = 0;           // products' options on all systems
  std::int64_t simulated = 0;            // parts
  std::int64_t pruned = 0;               // options that were never simulated
  std::vector<ExcludedOption> excluded;  // systems and options that memory, or what they are, rules out
  bool interrupted = false;              // the plans are the best known so far
};

/// Searches systems x per stage (algorithm, dataflow, transposed, S) by dynamic programming over the stages' layouts, where a re-layout may stand
/// between two stages. A part that is not simulated yet counts as its lower bound; as long as the best plan of the best system has such parts, these are
/// simulated; so the plan that is best in the end is the best of all (test: `exhaustive` finds the same). Parts of equal schedules on systems of
/// equal rings are simulated once. The result does not depend on the number of threads.
/// Order of plans: time, memory, system; of options that take equally long: working memory, algorithm, dataflow, S.
/// Errors: no system; unknown algorithms; nothing applies anywhere (says why).
Expected<Tuning> tune(const TuningRequest& request);

/// A plan that is given, with what its parts cost and the memory it needs. Errors: those of parts_of(); a part that does not run.
Expected<TunedPlan> evaluate_plan(const System& system, const Workload& workload, const Plan& plan, Pass pass, const EngineEntry& engine, int threads,
                                   Cancellation stop = {});

/// The plans that are faster than every plan that needs less memory, fastest first, at most `most`.
Expected<std::vector<TunedPlan>> pareto_plans(const TuningRequest& request, std::size_t most);

}  // namespace podsim
