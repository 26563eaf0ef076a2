#include "sim/engine/table/engines.hpp"

#include <array>
#include <string>
#include <vector>

#include "sim/engine/des/des_engine.hpp"
#include "sim/engine/des/together.hpp"
#include "sim/engine/max_plus/analytic_engine.hpp"
#include "sim/engine/simgrid/simgrid_engine.hpp"

namespace podsim {

EngineTable all_timing_engines() {
  static constexpr std::array<EngineEntry, 3> table{{
      {"des", "event by event in integer picoseconds, max-min fair links; equivalent devices are simulated once", true, &run_des, &run_des_together},
      {"simgrid", "SimGrid's solver: exact max-min sharing of links, one process per run", false, &run_simgrid},
      {"analytic", "longest path, without contention", false, &run_analytic},
  }};
  return table;
}

const EngineEntry& des_engine() { return all_timing_engines().front(); }

Expected<const EngineEntry*> timing_engine(std::string_view name) {
  std::vector<std::string> names;
  for (const EngineEntry& entry : all_timing_engines()) {
    if (entry.name == name) return &entry;
    names.emplace_back(entry.name);
  }
  return Diagnostic{{}, "there is no engine " + quoted(name) + did_you_mean(name, names)};
}

}  // namespace podsim
