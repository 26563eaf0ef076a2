// The tuner: finds the fastest plan of a workload, with the simulator in the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/engine/engine.hpp"
#include "workloads/plan.hpp"
#include "workloads/tuning/part_costs.hpp"

namespace podsim {

/// The progress of a search.
struct TuningProgress {
  std::int64_t simulated = 0;
  std::optional<Picoseconds> best;  // the fastest plan known so far
  Picoseconds bound;                // no plan is faster than this
  std::int64_t parts_in_all = 0;    // for an exhaustive search
};

struct Tuning;

/// A plan that is always evaluated, wherever the search looks.
struct BaselinePlan {
  std::string name;
  std::size_t system = 0;
  Plan plan;
};

struct TuningRequest {
  Workload workload;
  std::vector<System> systems;  // slices with a mesh of row and col each; all of one machine
  Pass pass = Pass::both;
  std::vector<std::string> algorithms;  // of gemm_algorithms()
  std::vector<std::string> collectives{""};  // of products (ProductChoice); "": by dimension
  AutoChooser choose_auto{};                 // where `collectives` has auto_name
  PartOptions options;
  std::int64_t largest_slice_count = 64;
  std::function<bool(const std::string& stage, const ProductChoice&)> allowed{};  // restricts the choices; empty: no restriction
  std::vector<BaselinePlan> baselines{};
  bool exhaustive = false;     // simulate every option of every system
  std::size_t top = 5;         // the number of plans wanted
  std::optional<Bytes> hbm{};  // plans that need more are excluded; nullopt: unlimited
  std::int64_t fewest_to_bound = few_activities;  // a part with so many task instances is bounded (PartCosts) before it is simulated
  const EngineEntry* engine = nullptr;
  int threads = 0;
  // Of searches that several hosts share, each by its own request, otherwise equal: this one looks at the systems p with p mod shares = share. A search of
  // all systems (shares 1) that is given what these have simulated finds what it finds alone, counters included.
  std::size_t share = 0, shares = 1;
  std::shared_ptr<const SimulatedParts> elsewhere{};
  Cancellation stop;
  std::function<void(const TuningProgress&)> progress{};
  std::function<void(const std::function<Tuning()>&)> improved{};  // told whenever a faster plan is known; the function makes the answer so far
};

struct TunedPart {
  WorkloadPart part;
  PartCost cost;
};

/// Another way to compute a stage of a plan, with the same layouts.
struct StageAlternative {
  std::string stage;
  ProductChoice choice;
  Picoseconds time, of_plan;  // in all passes: of the alternative; of the plan's own choice
  bool exact = false;         // false: `time` is a lower bound
};

/// The best plan on one system, or a baseline.
struct TunedPlan {
  std::size_t system = 0;
  std::string baseline{};
  Plan plan;
  Picoseconds time, forward, backward;  // sums over the parts; every part starts at the same time on all devices
  MemoryUse memory;
  std::vector<TunedPart> parts;
  std::vector<StageAlternative> alternatives{};  // per product the best one with another algorithm or dataflow, and the best one with another S
};

struct ExcludedOption {
  std::string what, reason;
  bool by_activations = false;  // too much memory is needed, activations kept for the backward pass included
};

/// The message for plans whose activations do not fit.
inline constexpr std::string_view no_remat =
    "activations are kept for the backward pass: computing them again (remat) is not modelled; a smaller batch needs less memory";

struct Tuning {
  std::vector<TunedPlan> plans;          // best first: by time, memory, system; one per system
  std::vector<TunedPlan> baselines;      // as requested
  std::int64_t candidates = 0;           // options of all products on all systems
  std::int64_t simulated = 0;            // parts
  std::int64_t pruned = 0;               // options that were never simulated
  std::vector<ExcludedOption> excluded;  // systems and options excluded by memory, or because they do not apply
  SimulatedParts parts;                  // what was simulated for it
  bool interrupted = false;              // cancelled: the plans are the best known so far
};

/// Searches systems x (algorithm, dataflow, transposition, S, lowering of collectives) per stage, by dynamic programming over the layouts between stages; a re-layout may
/// stand between two stages. A part that is not simulated yet counts as its lower bound. While the best plan of the best system has such parts, they
/// are simulated; so the final plan is the best of all (a test compares `exhaustive`). Equal schedules on systems with equal rings are simulated
/// once. The result does not depend on the number of threads.
/// Order of plans: time, memory, system; options of equal time: working memory, collectives, algorithm, dataflow, S.
/// Errors: no system; unknown algorithms; no option applies anywhere (the message says why), which is none of a share.
Expected<Tuning> tune(const TuningRequest& request);

/// Costs and memory of a given plan. Errors: those of parts_of(); a part that cannot run.
Expected<TunedPlan> evaluate_plan(const System& system, const Workload& workload, const Plan& plan, Pass pass, const EngineEntry& engine, int threads,
                                   Cancellation stop = {}, AutoChooser choose_auto = {});

/// The Pareto plans: each is faster than every plan that needs less memory. Fastest first, at most `most`.
Expected<std::vector<TunedPlan>> pareto_plans(const TuningRequest& request, std::size_t most);

}  // namespace podsim
