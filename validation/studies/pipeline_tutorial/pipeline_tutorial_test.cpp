// Three steps of the pipeline tutorial of NVIDIA's JaxPP: the predicted order and ratios.
#include <gtest/gtest.h>

#include "topologies/machines.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/training/step_schedule.hpp"

namespace podsim {
namespace {

// Seconds a step: the cells print the time of three. GPUs of unknown kind.
constexpr double timed_steps = 3, measured_fsdp = 2.38 / timed_steps, measured_1f1b = 1.70 / timed_steps, measured_interleaved = 1.35 / timed_steps;

/// 8 layers, a batch of 8 in 4 microbatches, every layer recomputed, on 4 GPUs of a node.
double step_seconds(const std::string& machine, const TrainingMesh& mesh, const std::string& pipeline, std::int64_t virtual_stages) {
  TrainingStep step;
  step.model = *find_training_model("jax-pipeline-tutorial");
  step.batch = 8, step.microbatches = 4;
  step.mesh = mesh, step.pipeline = pipeline, step.virtual_stages = virtual_stages;
  step.remat.kind = Remat::Kind::full;
  step.pad = true;  // a microbatch of 2 sequences over 4 GPUs becomes 4
  const auto whole = divided(step);
  EXPECT_TRUE(whole) << to_text(whole.error());
  SystemSpec spec;
  spec.machine = *find_machine(machine);
  spec.machine.chip.float32_passes = 6;  // IEEE float32, as README.md's figures: in TF32 dgx_h100's ratio is 3.8 % above the measured one
  spec.slice = *parse_slice("1x4", spec.machine, {});
  spec.mesh = {{mesh.stage > 1 ? "stage" : "fsdp", 4}};
  const auto system = make_system(spec);
  EXPECT_TRUE(system) << to_text(system.error());
  const auto schedule = training_schedule(whole->step, system->mesh, default_layer_plan(*workload_of(layer_of(whole->step.model, 1), 1)));
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto run = simulate(*system, schedule->schedule, {}, {std::string{by_dimension_name}, {}});
  EXPECT_TRUE(run) << to_text(run.error());
  return run->row.result.makespan_s;
}

TEST(PipelineTutorial, OrderAndRatiosOfItsThreeSteps) {
  for (const char* machine : {"dgx_a100:spec", "dgx_h100:spec"}) {
    SCOPED_TRACE(machine);
    const double fsdp = step_seconds(machine, {.fsdp = 4}, "", 1), plain = step_seconds(machine, {.stage = 4}, "1f1b", 1),
                 interleaved = step_seconds(machine, {.stage = 4}, "interleaved-1f1b", 2);
    EXPECT_GT(fsdp, plain);
    EXPECT_GT(plain, interleaved);
    EXPECT_NEAR(interleaved / plain, measured_interleaved / measured_1f1b, 0.03 * measured_interleaved / measured_1f1b);
    EXPECT_GT(plain / fsdp, measured_1f1b / measured_fsdp) << "FSDP's own cost on the host is not simulated";
    EXPECT_LT(plain / fsdp, 0.875) << "28/32: the bubble against the padded batch, without FSDP's communication";
    if (machine != std::string_view{"dgx_a100:spec"}) continue;
    // How much faster an A100 would be at its peak, as README.md says and concludes from.
    EXPECT_NEAR(measured_fsdp / fsdp, 3.4, 0.05);
    EXPECT_NEAR(measured_1f1b / plain, 2.8, 0.05);
    EXPECT_NEAR(measured_interleaved / interleaved, 2.8, 0.05);
  }
}

}  // namespace
}  // namespace podsim
