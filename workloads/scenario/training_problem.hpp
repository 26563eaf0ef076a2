// Training steps as problems.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "topologies/system.hpp"
#include "workloads/collectives.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/training/step_schedule.hpp"

namespace podsim {

/// How the collectives of a step are lowered where nobody says it: on GPUs as NCCL does; on other machines by dimension, between slices directly.
std::string usual_step_collectives(const System& system);

/// What a training step leaves open: how the products of layers are computed along row and col.
struct LayerChoices {
  std::string algorithm{};       // one of gemm_algorithms(); empty: the fastest of collective, wang and meshslice
  std::int64_t slice_count = 0;  // of meshslice; 0: the fastest
  friend bool operator==(const LayerChoices&, const LayerChoices&) = default;
};

/// The mesh of the step is that of the system.
struct TrainingSpec {
  TrainingStep step;  // not yet divided()
  TrainingScheduleOptions options{};
  LayerChoices layers{};
  std::string collectives{direct_between_slices_name};
};

/// A step that its mesh divides, and how its layers are computed.
struct PlannedTraining {
  TrainingStep given;
  DividedStep divided;
  TrainingScheduleOptions options{};
  Plan plan{};
  std::string collectives{direct_between_slices_name};
};

/// The description of a training step in results.
struct TrainingSummary {
  TrainingStep given;
  DividedStep divided;
  int steps = 1;
  std::string layers;  // how their products are computed: "collective", "meshslice S=8"
  PipelineStep pipeline;
  std::vector<std::vector<MemoryKind>> memory;  // of the schedule's buffers
  TrainingOutputs outputs{};                    // of a check
};

/// The fastest of the plans that `spec.layers` allow on this system, by des on one layer forward and backward. Errors: those of divided(); no plan fits
/// the mesh (those of step_parts()); cancelled work.
Expected<PlannedTraining> choose_layers(const System& system, const TrainingSpec& spec, const RunOptions& options);

}  // namespace podsim
