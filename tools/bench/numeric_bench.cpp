// What it costs to execute a schedule on numbers, against the plain product that it computes.
#include <benchmark/benchmark.h>

#include <chrono>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/lower.hpp"
#include "tools/bench/goals.hpp"
#include "tools/bench/workloads.hpp"

namespace podsim::bench {
namespace {

Schedule product_on(int rows, int columns, std::int64_t n, std::int64_t slices) {
  const Mesh mesh = value_of(Mesh::make({{"row", rows, true}, {"col", columns, true}}));
  GemmOptions options;
  options.slice_count = slices;
  const auto& algorithm = *value_of(gemm_algorithm("meshslice"));
  return value_of(lower(value_of(make_gemm(algorithm, mesh, {n, n, n, DType::f32, Dataflow::os}, options)), ring_or_line()));
}

/// One program order on 16x16 devices, inputs filled and buffers allocated included; `vs_one_product`: its time over that of the same product as
/// one matmul of one device, run right before it with the same one thread (one OpenBLAS call).
void numeric_meshslice_16x16_4096(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  const Schedule plain = product_on(1, 1, 4096, 1), sliced = product_on(16, 16, 4096, 8);
  NumericOptions options;
  options.threads = 1;
  const auto engine = make_numeric_engine(options);
  double product = 0, schedule = 0;
  for (auto _ : state) {
    const auto begin = Clock::now();
    benchmark::DoNotOptimize(value_of(engine->run(plain)));
    const auto middle = Clock::now();
    benchmark::DoNotOptimize(value_of(engine->run(sliced)));
    const auto end = Clock::now();
    product += std::chrono::duration<double>(middle - begin).count();
    schedule += std::chrono::duration<double>(end - middle).count();
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["one_product_s"] = product / runs;
  state.counters["schedule_s"] = schedule / runs;
  at_most(state, "vs_one_product", schedule / product, 2);
}
BENCHMARK(numeric_meshslice_16x16_4096)->Unit(benchmark::kSecond)->Iterations(3);

}  // namespace
}  // namespace podsim::bench
