// What a simulated training step takes: rates, the split of its time, memory by kind, the ranks of its pipeline.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/scenario/training_problem.hpp"
#include "workloads/training/counts.hpp"

namespace podsim {

struct Run;

/// The time of a step on the device with the most core time (StepSplit says what counts to what), in seconds. The parts sum to the step.
struct TrainingSplit {
  double compute = 0, recompute = 0, bubble = 0, optimizer = 0, copies = 0, launch = 0, waiting = 0;
  std::vector<std::pair<std::string, double>> exposed{};  // by mesh axis; "sends": between devices that differ on several
};

/// A rank of the pipeline: its busiest device.
struct RankFigures {
  std::vector<int> stages{};
  std::int64_t layers = 0;
  Bytes peak_memory;
  double busy_s = 0, bubble_s = 0;
};

/// FLOPs are those of the model before padding (counts.hpp). MFU and HFU: over the peak of the activations' dtype on all devices. MFU counts all scores of
/// causal attention, as published figures do, and may so exceed 1; HFU the half that is computed.
struct TrainingResult {
  double step_s = 0, tokens_per_s = 0;
  double tflops_per_chip = 0;  // of what MFU counts
  double mfu = 0, hfu = 0;
  TrainingSplit split{};
  TrainingMemory memory{};  // at the peak of the device that needs most
  Bytes hbm;
  std::vector<RankFigures> stages{};  // by rank
};

/// Of a run of a training step that has ended. Of several steps the mean.
TrainingResult training_result(const Run& run);

/// Why a step does not fit the device: what it needs by kind, and what would need less. Empty: it fits.
std::string why_too_large(const TrainingResult& result, const TrainingStep& step);

}  // namespace podsim
