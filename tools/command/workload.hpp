// The workload that a command line asks for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "tools/command/print.hpp"
#include "tools/command/problem.hpp"
#include "tools/command/simulate.hpp"
#include "workloads/plan.hpp"
#include "workloads/plan_config.hpp"
#include "workloads/transformer.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// --workload --only --batch --seq --heads --kv-heads --head-dim --ff --layers
po::options_description workload_options();

/// Of --workload, on so many devices. Errors: it is not known, what an option finds wrong; options of a workload without one.
Expected<Workload> workload_asked_for(const Options& options, int devices);
/// Errors: an option of --workload without it.
Done no_workload_options(const Options& options);

/// What a command line says about how a workload is computed; everything else is open.
struct WorkloadRequest {
  std::vector<std::string> algorithms;
  std::vector<Dataflow> dataflows;                   // none: all, transposed ones too; otherwise as they are
  std::map<std::string, std::int64_t> slice_counts;  // by stage; "": of all others
  Pass pass = Pass::both;
  PartOptions options;
};

/// --dataflow --slice-count (one for all, or in_proj=8,out_proj=8,...) --pass --block --prefetch --slice-copies. Errors: a stage that the workload
/// does not have; what an option finds wrong.
Expected<WorkloadRequest> workload_request(const Options& options, const Pod& pod, const Workload& workload);

/// A workload and how it is computed on a pod.
struct PlannedWorkload {
  Workload workload;
  Plan plan;
  Pass pass = Pass::both;
};

/// The fastest plan on this pod that a request leaves open, by des. Errors: those of tune().
Expected<TunedPlan> fastest_plan(const Pod& pod, const Workload& workload, const WorkloadRequest& request, const Manner& manner);

/// Of --plan, or of --workload the fastest. Errors: as above; a plan of another mesh.
Expected<PlannedWorkload> planned_workload(const Options& options, const Pod& pod, const Manner& manner);

/// The plan as one schedule.
Expected<Problem> workload_problem(const PlannedWorkload& planned, const Pod& pod);

/// collective, meshslice, wang
std::vector<std::string> default_tuning_algorithms();

/// Of --algorithms; `all`: those that work on row and col.
std::vector<std::string> workload_algorithms(const Options& options);

/// The workload on a pod once per algorithm of --algorithms, each as fast as its dataflows and slice counts make it; forward, backward and both.
/// What does not apply goes to `skipped`.
Expected<std::vector<Row>> simulate_workload(const Pod& pod, const Options& options, const Manner& manner, std::vector<Skipped>& skipped);

/// Of a transformer block.
std::optional<TokenCount> tokens_of(const Workload& workload);
/// "256 sequences of 2048 tokens (524288 tokens)"
std::string tokens_text(const TokenCount& tokens);

/// "os S=8", "transposed rs S=4"
std::string choice_text(const ProductChoice& choice);

}  // namespace podsim
