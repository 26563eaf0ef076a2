// The core's work of a module in an order in which it waits less. Internal to compare_module().
#pragma once

#include <optional>
#include <string>

#include "workloads/differences/flat_module.hpp"

namespace podsim {

struct ReorderedModule {
  Schedule schedule;
  std::string waits_at;  // the -done at which the core waits longest
  Picoseconds waited;    // there, in all executions, in the module's own order
  std::string first;     // the first work that stands further back in the module, and is put before other work
};

/// The same tasks in the order of a list schedule by the times of the module's run: the core takes the first task of the text that is ready, else the
/// one that is ready first. Asynchronous collectives begin when their operands are there, and only what uses them waits for them; plain ones block
/// the core as in the module. No task leaves its trip of a loop, and none outside of a loop passes it. nullopt: the core waits for no asynchronous
/// collective, or the order is the module's own. Cost O(tasks log tasks).
std::optional<ReorderedModule> reordered(const FlatModule& flat);

}  // namespace podsim
