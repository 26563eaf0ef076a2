// Rates of the timing engines. Schedules are built before the clock starts; what is timed is the model and the run, unless it says otherwise.
#include <benchmark/benchmark.h>

#include "sim/engine/des/des_engine.hpp"
#include "sim/engine/des/together.hpp"
#include "sim/model/recost.hpp"
#include "tools/bench/goals.hpp"
#include "tools/bench/processor.hpp"
#include "tools/bench/workloads.hpp"
#include "topologies/machines.hpp"

namespace podsim::bench {
namespace {

/// Every device simulated: rates and memory of one run, and what recording adds per task instance.
void unfolded(benchmark::State& state, const Torus& torus, const Schedule& lowered, double most_seconds, double most_bytes, bool rates) {
  for (auto _ : state) {
    forget_peak();
    const double bytes_before = peak_bytes();
    InstructionCounter instructions;
    Stopwatch watch;
    const Model model = model_of(torus, lowered);
    const double modelled = watch.lap();
    instructions.lap();
    const Timeline timeline = run("des", model, false);
    const std::optional<double> executed = instructions.lap();
    const double seconds = watch.lap(), bytes = peak_bytes();
    const auto tasks = static_cast<double>(model.deployment.activities());
    state.counters["tasks"] = tasks;
    state.counters["B_per_task"] = (bytes - bytes_before) / tasks;
    const std::string pass = timeline.pass == "max-plus" ? "max_plus" : "events";
    state.counters[pass + "_ns_per_task"] = seconds / tasks * 1e9;
    if (executed) state.counters[pass + "_instructions_per_task"] = *executed / tasks;
    state.counters["model_s"] = modelled;
    state.SetIterationTime(modelled + seconds);
    if (rates) {
      at_least(state, "tasks_per_s", tasks / (modelled + seconds), 5e6);
      RunControl unrecorded;
      unrecorded.record = false;
      watch.lap();
      instructions.lap();
      const auto of_events = run_events(model, unrecorded);
      const auto events = static_cast<double>(of_events->events);
      if (const auto of_the_events = instructions.lap(); of_the_events) state.counters["instructions_per_event"] = *of_the_events / events;
      at_least(state, "events_per_s", events / watch.lap(), 10e6);
    } else {
      state.counters["tasks_per_s"] = tasks / (modelled + seconds);
    }
    if (most_seconds > 0) at_most(state, "seconds", modelled + seconds, most_seconds);
    if (most_bytes > 0) at_most(state, "MB", bytes * 1e-6, most_bytes * 1e-6);
    if (rates) {
      const Timeline recorded = run("des", model, true);
      at_most(state, "recorded_B_per_task", (peak_bytes() - bytes) / tasks, 16);
    }
  }
}

/// 64 machines with other links and memories, on one thread: in lanes, and each alone, its model made anew. Nanoseconds per task instance and machine.
void variants_of(benchmark::State& state, const Machine& machine, int slice_count) {
  constexpr int count = 64, alone = 4, side = 64;
  std::vector<Torus> tori;
  for (int v = 0; v < count; ++v) {
    Machine varied = machine;
    for (LinkParameters& link : varied.link) link.bandwidth = (1 + v / 100.0) * link.bandwidth;
    varied.chip.hbm_bandwidth = (1 + v % 8 / 100.0) * machine.chip.hbm_bandwidth;
    tori.push_back(torus_of(std::move(varied), side, side));
  }
  const Torus& torus = tori.front();
  const Schedule lowered = sliced_gemm(torus.mesh, slice_count);
  RunControl unrecorded;
  unrecorded.record = false;
  for (auto _ : state) {
    Stopwatch watch;
    const Model first = model_of(torus, lowered);
    const auto instances = static_cast<double>(first.deployment.activities());
    watch.lap();
    std::vector<Model> models;
    for (const Torus& other : tori) models.push_back(**recost(first, other.machine, other.grid, other.placement));
    std::vector<const Model*> lanes;
    for (const Model& model : models) lanes.push_back(&model);
    const double recosted = watch.lap();
    benchmark::DoNotOptimize(run_des_together(lanes, unrecorded, {}, 1));
    const double together = watch.lap();
    for (int v = 0; v < alone; ++v) benchmark::DoNotOptimize(run_des(models[static_cast<std::size_t>(v)], unrecorded));
    const double apart = watch.lap() * count / alone;
    for (int v = 0; v < alone; ++v) benchmark::DoNotOptimize(model_of(tori[static_cast<std::size_t>(v)], lowered));
    const double modelled = watch.lap() * count / alone;
    state.SetIterationTime(recosted + together);
    at_most(state, "lanes_ns_per_task", together / count / instances * 1e9, 2.5);
    state.counters["alone_ns_per_task"] = apart / count / instances * 1e9;
    state.counters["recost_ms"] = 1e3 * recosted / count;
    state.counters["model_ms"] = 1e3 * modelled / count;
    at_most(state, "part_of_alone", (recosted + together) / (modelled + apart), 1.0 / 3);
  }
}

/// One device per class: model, run, metrics.
void folded(benchmark::State& state, const Torus& torus, const Schedule& lowered, double most_seconds, double most_bytes) {
  forget_peak();
  double seconds = 0;
  for (auto _ : state) {
    Stopwatch watch;
    const Model model = folded_model_of(torus, lowered);
    const Timeline timeline = run("des", model, true);
    benchmark::DoNotOptimize(measure(model, timeline));
    const double lap = watch.lap();
    state.SetIterationTime(lap);
    seconds += lap;
    state.counters["classes"] = static_cast<double>(model.nodes());
    state.counters["makespan_ms"] = to_seconds(timeline.makespan).count() * 1e3;
  }
  at_most(state, "ms", 1e3 * seconds / static_cast<double>(state.iterations()), 1e3 * most_seconds);
  if (most_bytes > 0) at_most(state, "MB", peak_bytes() * 1e-6, most_bytes * 1e-6);
}

void des_64x64_S8_unfolded(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  unfolded(state, torus, sliced_gemm(torus.mesh, 8), 0, 200e6, true);
}
/// With latencies and overheads every transfer is two events.
void des_64x64_S8_tpu_v4_unfolded(benchmark::State& state) {
  const Torus torus = tpu_v4_torus(64, 64);
  unfolded(state, torus, sliced_gemm(torus.mesh, 8), 0, 200e6, true);
}
void des_64x64_S8_64_variants(benchmark::State& state) {
  variants_of(state, value_of(find_machine("ideal")), 8);
}
void des_64x64_S8_tpu_v4_64_variants(benchmark::State& state) {
  variants_of(state, value_of(find_machine("tpu_v4")), 8);
}
void des_64x64_S8_folded(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  folded(state, torus, sliced_gemm(torus.mesh, 8), 10e-3, 0);
}
void des_64x64_gpt3_block_unfolded(benchmark::State& state) {
  const Torus torus = tpu_v4_torus(64, 64);
  unfolded(state, torus, gpt3_block(torus.mesh, 8, 8), 25, 2e9, false);
}
void des_64x64_gpt3_block_folded(benchmark::State& state) {
  const Torus torus = tpu_v4_torus(64, 64);
  folded(state, torus, gpt3_block(torus.mesh, 8, 8), 50e-3, 0);
}
void des_256x256_gpt3_block_folded(benchmark::State& state) {
  const Torus torus = tpu_v4_torus(256, 256);
  folded(state, torus, gpt3_block(torus.mesh, 8, 2), 0.5, 500e6);
}
/// ASTRA-sim's benchmark of row and column traffic at once: eight rounds of one-way all-gathers on rows and columns, and a matmul.
void des_64x64_one_way_rings_8_rounds_unfolded(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  unfolded(state, torus, sliced_gemm(torus.mesh, 8, "ring-one-way"), 0.7, 0, false);
}
void des_64x64_one_way_rings_8_rounds_folded(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  folded(state, torus, sliced_gemm(torus.mesh, 8, "ring-one-way"), 10e-3, 0);
}

#define PODSIM_TIMED(name, count) BENCHMARK(name)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(count)
PODSIM_TIMED(des_64x64_S8_unfolded, 1);
PODSIM_TIMED(des_64x64_S8_tpu_v4_unfolded, 1);
PODSIM_TIMED(des_64x64_S8_64_variants, 1);
PODSIM_TIMED(des_64x64_S8_tpu_v4_64_variants, 1);
PODSIM_TIMED(des_64x64_S8_folded, 10);
PODSIM_TIMED(des_64x64_gpt3_block_unfolded, 1);
PODSIM_TIMED(des_64x64_gpt3_block_folded, 5);
PODSIM_TIMED(des_256x256_gpt3_block_folded, 2);
PODSIM_TIMED(des_64x64_one_way_rings_8_rounds_unfolded, 1);
PODSIM_TIMED(des_64x64_one_way_rings_8_rounds_folded, 10);

// ---- Contention -----------------------------------------------------------------------------------------------------------------------

void contended(benchmark::State& state, const Torus& torus, const Schedule& lowered, double most_seconds) {
  for (auto _ : state) {
    Stopwatch watch;
    const Model model = model_of(torus, lowered);
    const Timeline timeline = run("des", model, false);
    const double seconds = watch.lap();
    state.SetIterationTime(seconds);
    state.counters["flows"] = static_cast<double>(model.deployment.activities());
    at_most(state, "seconds", seconds, most_seconds);
  }
}
void des_64x64_random_flows_of_one_size(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  contended(state, torus, random_permutation(torus.mesh, 1, Bytes{1 << 24}, false), 2);
}
void des_64x64_random_flows_of_random_sizes(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  contended(state, torus, random_permutation(torus.mesh, 1, Bytes{1 << 24}, true), 2);
}
void des_16x16_pairwise_all_to_all(benchmark::State& state) {
  Torus torus = tpu_v4_torus(16, 16);
  const Schedule lowered = pairwise_all_to_all(torus, Bytes{1 << 24});
  contended(state, torus, lowered, 5);
}
PODSIM_TIMED(des_64x64_random_flows_of_one_size, 1);
PODSIM_TIMED(des_64x64_random_flows_of_random_sizes, 1);
PODSIM_TIMED(des_16x16_pairwise_all_to_all, 1);

// ---- Against the referee --------------------------------------------------------------------------------------------------------------

/// Both play the same model with every device; and des as it runs by default, folded where it folds, the model's building counted on both sides.
void against_simgrid(benchmark::State& state, const Torus& torus, const Schedule& lowered) {
  for (auto _ : state) {
    Stopwatch watch;
    const Model model = model_of(torus, lowered);
    const double model_seconds = watch.lap();
    const Timeline des = run("des", model, true);
    const double des_seconds = watch.lap();
    const Timeline simgrid = run("simgrid", model, true);
    const double simgrid_seconds = watch.lap();
    const Timeline folded = run("des", folded_model_of(torus, lowered), true);
    const double folded_seconds = watch.lap();
    state.SetIterationTime(des_seconds);
    state.counters["tasks"] = static_cast<double>(model.deployment.activities());
    state.counters["simgrid_s"] = simgrid_seconds;
    state.counters["makespans_differ"] = to_seconds(des.makespan).count() / to_seconds(simgrid.makespan).count() - 1;
    at_least(state, "times_faster", simgrid_seconds / des_seconds, 25);
    at_least(state, "times_faster_by_default", (model_seconds + simgrid_seconds) / folded_seconds, 25);
  }
}
void des_against_simgrid_64x64_S8(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  against_simgrid(state, torus, sliced_gemm(torus.mesh, 8));
}
void des_against_simgrid_16x16_pairwise(benchmark::State& state) {
  Torus torus = tpu_v4_torus(16, 16);
  const Schedule lowered = pairwise_all_to_all(torus, Bytes{1 << 24});
  against_simgrid(state, torus, lowered);
}
void des_against_simgrid_32x32_random_flows(benchmark::State& state) {
  const Torus torus = ideal_torus(32, 32);
  against_simgrid(state, torus, random_permutation(torus.mesh, 1, Bytes{1 << 24}, true));
}
PODSIM_TIMED(des_against_simgrid_64x64_S8, 1);
PODSIM_TIMED(des_against_simgrid_16x16_pairwise, 1);
PODSIM_TIMED(des_against_simgrid_32x32_random_flows, 1);

// ---- Building -------------------------------------------------------------------------------------------------------------------------

void building_and_lowering(benchmark::State& state) {
  const Torus torus = ideal_torus(64, 64);
  double seconds = 0;
  std::size_t tasks = 0;
  for (auto _ : state) {
    Stopwatch watch;
    tasks = gpt3_block(torus.mesh, 8, 8).programs.front().tasks.size();
    const double lap = watch.lap();
    state.SetIterationTime(lap);
    seconds += lap;
  }
  state.counters["program_tasks"] = static_cast<double>(tasks);
  at_most(state, "us_per_task", 1e6 * seconds / static_cast<double>(state.iterations()) / static_cast<double>(tasks), 1);
}
PODSIM_TIMED(building_and_lowering, 5);

}  // namespace
}  // namespace podsim::bench
