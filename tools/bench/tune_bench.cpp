// The tuner: a GPT-3 block, forward and backward, everything in it, des in the loop.
#include <fmt/format.h>

#include "tools/bench/goals.hpp"
#include "tools/bench/workloads.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim::bench {
namespace {

TuningRequest request_for(const std::vector<std::string>& slices, const std::vector<std::string>& meshes) {
  TuningRequest request;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    SystemSpec spec;
    spec.machine = value_of(find_machine("tpu_v4"));
    spec.slice = value_of(parse_slice(slices[i], spec.machine, {}));
    spec.mesh = value_of(parse_mesh(meshes[i], {}));
    request.systems.push_back(value_of(make_system(spec)));
  }
  request.workload = value_of(workload_of(value_of(find_transformer_block("gpt3-block")), request.systems.front().mesh.devices()));
  request.algorithms = {"collective", "meshslice", "wang"};
  request.hbm = request.systems.front().machine.chip.hbm;
  request.engine = value_of(timing_engine("des"));
  return request;
}

/// Every R x C torus of so many chips, a what-if.
TuningRequest on_2d_tori(int chips) {
  std::vector<std::string> slices, meshes;
  for (int rows = chips; rows >= 1; rows /= 2) {
    slices.push_back(fmt::format("{}x{}", rows, chips / rows));
    meshes.push_back(fmt::format("row={},col={}", rows, chips / rows));
  }
  return request_for(slices, meshes);
}

void search(benchmark::State& state, const TuningRequest& request, double most_seconds) {
  for (auto _ : state) {
    Stopwatch watch;
    const Tuning tuning = value_of(tune(request));
    const double seconds = watch.lap();
    state.SetIterationTime(seconds);
    state.counters["options"] = static_cast<double>(tuning.candidates);
    state.counters["parts_simulated"] = static_cast<double>(tuning.simulated);
    at_most(state, "seconds", seconds, most_seconds);
  }
}

void tune_gpt3_block_256_chips_2d(benchmark::State& state) { search(state, on_2d_tori(256), 2); }
void tune_gpt3_block_2048_chips_2d(benchmark::State& state) { search(state, on_2d_tori(2048), 10); }
void tune_gpt3_block_256_chips_offered(benchmark::State& state) {
  search(state,
         request_for({"4x8x8", "4x8x8", "4x8x8", "8x4x8", "8x8x4", "4x4x16", "4x4x16", "16x4x4", "4x16x4", "8x8x4"},
                     {"row=1,col=256", "row=4,col=64", "row=32,col=8", "row=8,col=32", "row=64,col=4", "row=4,col=64", "row=16,col=16",
                      "row=16,col=16", "row=64,col=4", "row=256,col=1"}),
         2);
}
BENCHMARK(tune_gpt3_block_256_chips_2d)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(tune_gpt3_block_256_chips_offered)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(tune_gpt3_block_2048_chips_2d)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace podsim::bench
