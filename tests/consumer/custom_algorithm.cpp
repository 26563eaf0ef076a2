// An algorithm written outside podsim's tree, against the installed package: one axis of devices, X and Y split by rows, W gathered in two
// parts so that the second gather overlaps the first product. It is proven right on real numbers, and timed beside podsim's own.
#include <iostream>

#include "sim/schedule/program_builder.hpp"
#include "workloads/scenario/scenario.hpp"

namespace {

using namespace podsim;

/// Y[m,n] = X[m,k] . W[k,n] on P devices: X and Y split along m, W along k in two parts of columns.
Schedule two_part_gemm(const Mesh& mesh, std::int64_t m, std::int64_t n, std::int64_t k) {
  const AxisView axis = mesh.whole(0);
  ProgramBuilder program{mesh, every_device(mesh)};
  const auto matrix = [&](const char* name, Role role, ShardedDimension rows, ShardedDimension columns) {
    return program.whole(program.add_buffer(sharded_buffer(name, DType::f32, role, {std::move(rows), std::move(columns)})));
  };
  const Region X = matrix("X", Role::input, {m, {axis}}, {k}), W = matrix("W", Role::input, {k, {axis}}, {n}),
               Y = matrix("Y", Role::output, {m, {axis}}, {n});
  const Region gathered = program.scratch("W gathered", {2, k, n / 2}, DType::f32);

  Tasks gathers;
  for (std::int64_t part = 0; part < 2; ++part)
    gathers.push_back(program.add(
        "gather W",
        Collective{CollectiveKind::all_gather, {axis}, with(W, 1, span(part * n / 2, n / 2)), with(gathered, 0, span(part, 1)), 1, 0, 0, {}},
        Tasks{}));
  for (std::int64_t part = 0; part < 2; ++part)
    program.add("multiply", Matmul{X, with(gathered, 0, span(part, 1)), with(Y, 1, span(part * n / 2, n / 2)), 1, 2, 1},
                Tasks{gathers[static_cast<std::size_t>(part)]});
  return {"two-part GEMM", mesh, {std::move(program).finish()}, Products{{"Y", "X", "W", m, n, k, false, false}}};
}

int fail(const Diagnostic& diagnostic) {
  std::cerr << to_text(diagnostic) << '\n';
  return 1;
}

}  // namespace

int main() {
  const auto machine = load_machine("tpu_v4");
  if (!machine) return fail(machine.error());
  const auto system = make_system({.machine = *machine, .slice = Slice{{16}}, .mesh = {{"ring", 16}}});
  if (!system) return fail(system.error());

  const auto small = lower(two_part_gemm(system->mesh, 64, 32, 48), ring_or_line());
  if (!small) return fail(small.error());
  const auto report = check(*small, {});
  if (!report) return fail(report.error());
  std::cout << to_text(*small) << "proven right: " << (report->ok ? "yes" : "NO") << '\n';

  const auto theirs = make_problem(*system, GemmSpec{*gemm_algorithm("1d-fsdp"), {65536, 8192, 8192, DType::f32, Dataflow::os}});
  if (!theirs) return fail(theirs.error());
  for (const Schedule& schedule : {two_part_gemm(system->mesh, 65536, 8192, 8192), theirs->schedule})
    for (const EngineEntry& engine : all_timing_engines()) {
      RunOptions options;
      options.engine = &engine;
      const auto run = simulate(*system, schedule, options);
      if (!run) return fail(run.error());
      std::cout << schedule.name << " by " << engine.name << ": " << run->row.result.makespan_s * 1e3 << " ms\n";
    }
  return report->ok ? 0 : 1;
}
