// Finds the fastest plan of a training step: mesh, microbatches, pipeline, virtual stages, recomputation, the optimizer whole or divided over data; with the
// simulator in the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

struct TrainingTuning;

/// What is searched. Lists say what may be taken; an empty one leaves it open.
struct TrainingRequest {
  TrainingSpec spec;            // of its step the model, batch, optimiser, scan, loss_chunks and pad; its mesh, pipeline, optimizer's division and so on do not matter
  std::vector<System> systems;  // with a mesh of training axes each; all of one machine
  std::vector<std::int64_t> microbatches{};    // open: every divisor of the batch up to most_microbatches
  std::vector<std::string> pipelines{};        // open: all
  std::vector<std::int64_t> virtual_stages{};  // open: all that divide a rank's layers, up to most_virtual_stages
  std::vector<Remat> remats{};                 // open: searched_remats()
  std::optional<bool> shard_optimizer_over_data{};  // open: off, and on where data divides the batch
  bool exhaustive = false;                     // simulate everything
  bool ignore_memory = false;
  std::size_t top = 5;  // meshes whose best plans are wanted
  int threads = 0;
  Cancellation stop{};
  struct Progress {
    std::int64_t candidates = 0, simulated = 0;
    std::optional<double> best_s{};
    double bound_s = 0;  // no plan is faster
  };
  std::function<void(const Progress&)> progress{};
  std::function<void(const std::function<TrainingTuning()>&)> improved{};  // told whenever a faster plan is known; the function makes the answer so far
};

inline constexpr std::int64_t most_microbatches = 1024, most_virtual_stages = 12;
/// The axes that a model may be divided along, outermost first, but for slice: those of experts instead of row and col.
std::vector<std::string_view> searched_axes(const TrainingModel& model);
/// None, full, and the outputs that MaxText's policies keep.
std::vector<Remat> searched_remats();

struct TrainingPlan {
  std::size_t system = 0;
  TrainingStep step;  // as given, with what was chosen
  Row row;            // of its run
};

/// Something that keeps a faster plan away.
struct BindingConstraint {
  std::string kind;    // "memory", "batch", "layers", "heads", ...: the extent that does not divide, or what cannot be simulated
  double bound_s = 0;  // what the best plan without it takes at least
  std::size_t system = 0;
  TrainingStep step;
  std::string needs;  // "needs 67.2 GB of 32 GB"; "expected a multiple of 512 (...), found 256"
};

struct TrainingTuning {
  std::vector<TrainingPlan> plans;  // best first: by time, memory, order of the search; one per system
  std::vector<BindingConstraint>
      excluded;  // of each kind the one with the least bound; of memory the one faster than the best plan that needs least. Increasing bound
  std::int64_t candidates = 0;   // that divide the model, in all
  std::int64_t simulated = 0;    // steps
  std::int64_t layers = 0;       // layers and weights that were simulated for bounds
  std::int64_t over_memory = 0;  // of the candidates that were looked at
  bool interrupted = false;      // the plans are the best known so far
};

/// Best-first branch and bound, after a few plans whose layers lie on one device each: candidates by arithmetic_bound(), then by step_bound(), then by des. A candidate is excluded by memory if
/// state_bound(), step_bound() or the simulated peak is more than the device has; it is not looked at further if its bound is above the worst plan
/// wanted, or above the best plan of its mesh. A step ends once it is certain to be slower than these. Candidates are taken in rounds whose size is fixed, so that the result does not depend on threads.
/// Errors: no system; nothing divides the model (the message has the least obstacle), or nothing fits (what the nearest needs by kind, and what would
/// help); what fails in every simulation.
Expected<TrainingTuning> tune_training(const TrainingRequest& request);

/// The constraint that binds: the excluded one with the least bound, if a plan of this time could be beaten without it.
const BindingConstraint* binding_of(const TrainingTuning& tuning, double step_s);

}  // namespace podsim
