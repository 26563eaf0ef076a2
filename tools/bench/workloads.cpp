#include "tools/bench/workloads.hpp"

#include <sys/resource.h>

#include <ctime>
#include <numeric>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/base/rng.hpp"
#include "sim/schedule/lower.hpp"
#include "topologies/machines.hpp"
#include "workloads/plan.hpp"

namespace podsim::bench {

Torus torus_of(Machine machine, int rows, int columns) {
  auto grid = value_of(Grid::make({{rows, true, machine.link[0]}, {columns, true, machine.link[1]}}, machine.chip.injection_bandwidth,
                                  machine.chip.ejection_bandwidth));
  auto mesh = value_of(default_mesh(grid));
  auto placement = value_of(place_row_major(mesh, grid));
  return {std::move(machine), std::move(grid), std::move(mesh), std::move(placement)};
}

double cpu_seconds() {
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  rusage children{};  // simgrid runs in one
  getrusage(RUSAGE_CHILDREN, &children);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec) + seconds(children.ru_utime) + seconds(children.ru_stime);
}

Torus ideal_torus(int rows, int columns) { return torus_of(value_of(find_machine("ideal")), rows, columns); }
Torus tpu_v4_torus(int rows, int columns) { return torus_of(value_of(find_machine("tpu_v4")), rows, columns); }

Schedule sliced_gemm(const Mesh& mesh, std::int64_t slice_count, std::string_view collective) {
  GemmOptions options;
  options.slice_count = slice_count;
  const std::int64_t n = 65536;
  const auto gemm = value_of(make_gemm(*value_of(gemm_algorithm("meshslice")), mesh, {n, n, n, DType::bf16, Dataflow::os}, options));
  return value_of(lower(gemm, value_of(always(collective))));
}

Schedule gpt3_block(const Mesh& mesh, std::int64_t slice_count, std::int64_t block) {
  const Workload workload = value_of(workload_of(value_of(find_transformer_block("gpt3-block")), mesh.devices(), Only::gemm));
  Plan plan;
  plan.options.block = block;
  for (const Stage& stage : workload.stages)
    plan.stages.push_back({stage.name, ActivationLayout::tokens_by_row, ProductChoice{"meshslice", Dataflow::os, false, slice_count}});
  return value_of(lower(value_of(block_schedule(mesh, workload, plan, Pass::both)), ring_or_line()));
}

Schedule random_permutation(const Mesh& mesh, std::uint64_t seed, Bytes bytes, bool random_sizes) {
  const auto devices = static_cast<std::size_t>(mesh.devices());
  std::vector<int> to(devices), from(devices);
  std::iota(to.begin(), to.end(), 0);
  Rng rng{seed};
  for (std::size_t i = devices; i-- > 1;) std::swap(to[i], to[rng.below(i + 1)]);
  std::vector<std::int64_t> size(devices, bytes.count() / 4);
  for (std::size_t d = 0; d < devices; ++d) {
    from[static_cast<std::size_t>(to[d])] = static_cast<int>(d);
    if (random_sizes) size[d] = 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(bytes.count() / 4)));
  }
  const auto peer = [&](int device) {
    Peer result;
    for (const int coordinate : mesh.coordinates(DeviceId{device})) result.emplace_back(coordinate);
    return result;
  };
  Schedule schedule{"random permutation", mesh, {}, {}};
  for (std::size_t d = 0; d < devices; ++d) {
    ProgramBuilder program{mesh, DeviceSet{{{static_cast<int>(d), static_cast<int>(d) + 1}}}};
    const Region a = program.scratch("a", {bytes.count() / 2}, DType::f32);
    if (to[d] != static_cast<int>(d)) {
      program.add("send", Send{0, peer(to[d]), with(a, 0, span(0, size[d])), {}}, Edges{});
      const std::int64_t incoming = size[static_cast<std::size_t>(from[d])];
      program.add("receive", Recv{0, peer(from[d]), with(a, 0, span(bytes.count() / 4, incoming)), Combine::replace}, Edges{});
    }
    schedule.programs.push_back(std::move(program).finish());
  }
  return schedule;
}

Schedule pairwise_all_to_all(Torus& torus, Bytes bytes) {
  torus.mesh = value_of(mesh_over(torus.grid, {{"all", torus.grid.chips()}}));
  const auto schedule =
      value_of(collective_schedule(torus.mesh, CollectiveKind::all_to_all, {torus.mesh.whole(0)}, bytes, DType::f32, CollectiveDetails{}));
  return value_of(lower(schedule, value_of(always("pairwise"))));
}

Model model_of(const Torus& torus, const Schedule& lowered) { return value_of(make_model(lowered, torus.machine, torus.grid, torus.placement)); }
Model folded_model_of(const Torus& torus, const Schedule& lowered) {
  return value_of(make_folded_model(lowered, torus.machine, torus.grid, torus.placement));
}

Timeline run(std::string_view engine, const Model& model, bool record) {
  RunControl control;
  control.record = record;
  return value_of(value_of(timing_engine(engine))->run(model, control));
}

}  // namespace podsim::bench
