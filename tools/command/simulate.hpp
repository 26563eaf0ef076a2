// One problem on one pod by one engine: lowering, the run, its figures.
#pragma once

#include <memory>

#include "sim/engine/engine.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/result.hpp"
#include "tools/command/pod.hpp"
#include "tools/command/problem.hpp"

namespace podsim {

/// A machine value as compare --vary has it here: "link.bandwidth", "45GB/s".
struct Varied {
  std::string path, value;
};

/// A result with what the command line adds to it.
struct Row {
  Result result;
  std::string algorithm, dataflow;
  std::optional<std::int64_t> slice_count;
  double padding = 0;
  bool over_hbm = false;  // the peak memory does not fit the device
  std::vector<AxisMetrics> axes;
  WhatIf what_if;                                               // topology, slices, broken and slow links
  int slow_devices = 0;                                         // of --straggler
  std::string rings;                                            // with broken cables: how what they cut was lowered
  std::vector<std::pair<std::string, ProductChoice>> layers{};  // of a workload: how each product is computed
  std::optional<double> forward_s{}, backward_s{};              // of a workload whose passes were simulated apart too
  std::int64_t blocks = 1;                                      // of a workload: such blocks in its model
  std::optional<TokenCount> tokens{};                           // of a workload of sequences
  std::optional<CollectiveAsked> collective{};                  // of one collective
  std::vector<Replicated> replicated{};                         // of a GEMM: what several devices have of its operands
  std::vector<Varied> varied{};                                 // compare --vary: the machine values that tell this row's pod from others
  std::size_t group = 0;                                        // compare: rows of one group compute the same
};

/// What a run leaves behind, for whoever wants to look closer.
struct SimulatedRun {
  std::unique_ptr<const Pod> pod;  // the model reads its machine
  std::unique_ptr<const Schedule> lowered;
  Model model;
  Timeline timeline;  // interrupted: there are no metrics, and the row has no figures
  Metrics metrics;
  Row row;
};

/// The model of a lowered schedule on a pod. Errors: those of make_model(); more task instances than a run should have without `force`, told before
/// routes and costs are found where that is certain then.
Expected<Model> model_on(const Pod& pod, const Schedule& lowered, const Manner& manner);

/// Errors: those of lowering, of the model and of the engine.
Expected<SimulatedRun> simulate(const Pod& pod, const Problem& problem, const Manner& manner);
/// The same of a problem whose schedule has been lowered; the time that took is not known.
Expected<SimulatedRun> simulate_lowered(const Pod& pod, const Problem& problem, Schedule lowered, const Manner& manner);

/// The same in two parts: all that can be known before the clock runs, and the rest.
Expected<SimulatedRun> prepare(const Pod& pod, const Problem& problem, const Manner& manner);
Expected<SimulatedRun> prepare_lowered(const Pod& pod, const Problem& problem, Schedule lowered, const Manner& manner);
Done play(SimulatedRun& run, const Problem& problem, const Manner& manner);

}  // namespace podsim
