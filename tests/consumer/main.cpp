// podsim as a library in one header and three calls: a system, a problem, a run. Each engine: that of simgrid is a module, found where podsim is installed.
#include <iostream>

#include "workloads/scenario/scenario.hpp"

int main() {
  using namespace podsim;
  const auto machine = load_machine("tpu_v4", {{"link.bandwidth", "90GB/s"}});
  const auto system = machine ? make_system({.machine = *machine, .slice = Slice{{4, 4, 4}}, .mesh = {{"row", 16}, {"col", 4}}}) : Expected<System>{machine.error()};
  for (const EngineEntry& engine : all_timing_engines()) {
    const auto run =
        system ? simulate(*system, CollectiveSpec{.axes = {"row"}, .input = Bytes{1 << 24}}, {.engine = &engine}) : Expected<Run>{system.error()};
    if (!run) return std::cerr << to_text(run.error()) << '\n', 1;
    std::cout << run->row.problem.algorithm << " on " << to_text(*system) << " by " << engine.name << ": " << run->row.result.makespan_s * 1e6 << " us\n";
  }
}
