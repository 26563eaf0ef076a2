// A pipeline of 8 stages of 512 chips, 64 microbatches, 100 products of each on every stage: played call by call, and task by task. Schedule, lowering,
// routes, folding and metrics count.
#include <fmt/format.h>

#include "algorithms/pipeline/write_pipeline.hpp"
#include "tools/bench/goals.hpp"
#include "tools/bench/workloads.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim::bench {
namespace {

using Value = PipelineValue::Kind;

constexpr int stages = 8, microbatches = 64, forward_products = 33, backward_products = 67;
constexpr std::int64_t extent = 1024;

Buffer matrix(std::string name) { return {std::move(name), {extent, extent}, DType::bf16, Role::scratch, {}, {}}; }

/// y = (from . from) . from ...: `products` of them, each waiting for the one before.
Function chain(const Mesh& mesh, std::string name, int products) {
  ProgramBuilder body{mesh, DeviceSet{}};
  const BufferId from = body.add_buffer(matrix("from")), to = body.add_buffer(matrix("to")), between = body.add_buffer(matrix("between"));
  Edges ready;
  for (int p = 0; p < products; ++p) {
    const Region left = body.whole(p == 0 ? from : (p % 2 == 1 ? between : to)), out = body.whole(p % 2 == 1 ? to : between);
    ready = body.step("product", Matmul{left, body.whole(from), p + 1 == products ? body.whole(to) : out}, ready);
  }
  return {std::move(name), 2, std::move(body).finish()};
}

Schedule pipeline(const Mesh& mesh) {
  const auto lists = value_of(executed_lists({PipelineSchedule::one_f_one_b, stages, stages, microbatches}));
  const PipelineWork work{[](const PipelineValue& value) -> std::optional<Buffer> {
                            if (value.kind == Value::loss) return std::nullopt;
                            return matrix(name_of(value));
                          },
                          [](PipelineProgram& program, const PipelineCommand& command, const Edges& after) -> Edges {
                            if (command.kind != PipelineCommand::Kind::execute) return {};
                            const auto [kind, s, k] = command.task;
                            const bool forward = kind == PipelineTaskKind::forward;
                            const PipelineValue from = forward ? (s == 0 ? PipelineValue{Value::inputs, 0, k} : PipelineValue{Value::activation, s - 1, k})
                                                       : s + 1 == stages ? PipelineValue{Value::residuals, s, k}
                                                                         : PipelineValue{Value::activation_gradient, s, k};
                            const PipelineValue to = forward  ? (s + 1 == stages ? PipelineValue{Value::residuals, s, k} : PipelineValue{Value::activation, s, k})
                                                     : s == 0 ? PipelineValue{Value::gradients, s, 0}
                                                              : PipelineValue{Value::activation_gradient, s - 1, k};
                            return program.builder.step(name_of(command.task), Call{forward ? 0 : 1, {program.buffer(from), program.buffer(to)}}, after);
                          }};
  Schedule schedule = value_of(write_pipeline(mesh, mesh.whole(0), value_of(pipeline_step(lists, stages)), work));
  schedule.functions = {chain(mesh, "forward", forward_products), chain(mesh, "backward", backward_products)};
  return schedule;
}

void simulated(benchmark::State& state, bool inlined) {
  SystemSpec spec;
  spec.machine = value_of(find_machine("tpu_v4"));
  spec.slice = Slice{{stages, 16, 32}};
  spec.mesh = {{"stage", stages}, {"row", 16}, {"col", 32}};
  const System system = value_of(make_system(spec));
  forget_peak();
  for (auto _ : state) {
    Stopwatch watch;
    RunOptions options;
    options.inline_calls = inlined;
    const podsim::Run run = value_of(simulate(system, pipeline(system.mesh), options));
    const double seconds = watch.lap();
    state.SetIterationTime(seconds);
    state.counters["instances"] = static_cast<double>(run.metrics.tasks);
    state.counters["classes"] = static_cast<double>(run.model.nodes());
    state.counters["played"] = static_cast<double>(run.row.calls.played);
    state.counters["makespan_ms"] = to_seconds(run.metrics.makespan).count() * 1e3;
    at_most(state, "seconds", seconds, 3);
    at_most(state, "MB", peak_bytes() * 1e-6, 160);
  }
}

void pipeline_8x512_calls_played(benchmark::State& state) { simulated(state, false); }
void pipeline_8x512_calls_inlined(benchmark::State& state) { simulated(state, true); }
BENCHMARK(pipeline_8x512_calls_played)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(1);
BENCHMARK(pipeline_8x512_calls_inlined)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace podsim::bench
