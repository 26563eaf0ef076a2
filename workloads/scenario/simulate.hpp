// One problem on one system by one engine: choices, lowering, the run, its figures.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/result.hpp"
#include "sim/engine/engine.hpp"
#include "workloads/scenario/collective_choice.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/play_calls.hpp"
#include "workloads/scenario/problem.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/scenario/training_result.hpp"

namespace podsim {

/// A machine value that is varied: "link.bandwidth", "45GB/s".
struct Override {
  std::string path, value;
};

/// How the calls of a schedule were simulated.
struct CallSummary {
  std::int64_t played = 0, inlined = 0;  // Calls of all programs: each as one task, and task by task as playing those is not exact
  std::string why_inlined{};             // the first one, or all of them
  std::int64_t beside = 0;               // of those played: with transfers beside them that draw on the memory of their devices
  std::optional<double> beside_at_most_s{};  // by which the run would be longer if the memory were theirs alone while it moves those bytes; nullopt: none is beside, or not known
  std::string why_beside{};              // the first one
};

/// The figures of a run, with what distinguishes it from other runs: a row of a comparison.
struct Row {
  Result result{};
  ProblemSummary problem{};
  SystemChanges changes{};
  std::string mesh_order{};    // "row-major"
  std::optional<Bytes> hbm{};  // of a device; nullopt: unlimited
  bool over_hbm = false;       // the peak memory, or what a module requires, does not fit the device
  std::vector<AxisMetrics> axes{};
  CallSummary calls{};
  std::shared_ptr<const TrainingResult> training{};  // of a training step
  std::string rings{};                              // with broken cables: which alternative this is (faults.hpp)
  std::optional<double> forward_s{}, backward_s{};  // of a workload whose passes were also simulated separately
  std::vector<Override> varied{};                   // of a comparison: the machine values in which this row's system differs from the others
  std::size_t group = 0;                            // of a comparison: rows of one group compute the same
};

/// A run with everything that explain(), traces and metrics per device need.
struct Run {
  std::unique_ptr<const System> system;     // the model reads its machine
  std::unique_ptr<Schedule> lowered;  // and this
  std::shared_ptr<const Problem> problem;   // that was lowered
  std::vector<CollectiveChoice> choices;    // what `auto` chose
  Model model;
  Timeline timeline;  // interrupted: there are no metrics, and the row has no figures
  Metrics metrics;
  Row row;
};

/// The model of a lowered schedule on a system. One with calls has them played: by `calls`, or by what play_calls() finds. A model that the busiest link alone keeps beyond
/// `options.control.limit` is not folded: no engine will play it. Errors: calls cannot be played; those of make_model(); more than `options.most_instances` task instances
/// without `force`: if that is certain beforehand, before routes and costs are computed.
Expected<Model> model_on(const System& system, const Schedule& lowered, const RunOptions& options, std::shared_ptr<const PlayedCalls> calls = {});

/// model_on() in two steps, for those who look at routes and costs before they spend as much again on looking for devices that behave alike. Not folded by the first: without
/// translations (fold_by_translations()).
struct CostedModel {
  Model model;
  bool is_folded = false;  // or is not to be
};
Expected<CostedModel> costed_model_on(const System& system, const Schedule& lowered, const RunOptions& options, std::shared_ptr<const PlayedCalls> calls = {});
Expected<Model> folded_model(CostedModel costed, const RunOptions& options);

/// A problem whose collectives are lowered.
struct LoweredProblem {
  Problem problem;
  std::vector<CollectiveChoice> choices{};
  Schedule lowered;
  double build_s = 0;  // seconds spent on lowering
};
/// choose_collectives(), then lower(); lower_with_calls() where calls may be played (options). Errors: theirs.
Expected<LoweredProblem> lower_problem(const System& system, Problem problem, const RunOptions& options);

/// Errors: those of lowering, of the model and of the engine.
Expected<Run> simulate(const System& system, const Problem& problem, const RunOptions& options = {});
Expected<Run> simulate(const System& system, LoweredProblem lowered, const RunOptions& options = {});
/// Any schedule; `policy` lowers its collectives.
Expected<Run> simulate(const System& system, const Schedule& schedule, const RunOptions& options = {}, const CollectivePolicy& policy = {});

/// The makespan of simulate() without its figures, which take up to a third of the time of a training step. Errors: those of simulate(), and that it was stopped.
Expected<Seconds> simulated_time(const System& system, const Problem& problem, const RunOptions& options = {});

/// simulate() in two steps: everything before the engine runs, then the engine and the figures. `like`: a run of the same schedule on a machine with other
/// values; the model shares with that run's what does not depend on them, and its schedule, so `like` must outlive the run.
Expected<Run> prepare(const System& system, LoweredProblem lowered, const RunOptions& options, const Run* like = nullptr);
Status play(Run& run, const RunOptions& options);

/// The row of each problem, as simulate() gives it. Systems may differ in the values of their machines only (differ_in_machine_only()). Where lowered schedules
/// are equal and devices do not fold, they are prepared from one another and played together. One thread.
std::vector<Expected<Row>> simulate_together(const std::vector<const PosedProblem*>& problems, const RunOptions& options);

}  // namespace podsim
