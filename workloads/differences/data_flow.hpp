// What the values of a module's tasks are made from, and which of them nothing uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/differences/flat_module.hpp"

namespace podsim {

/// The regions that a task reads and writes.
struct TaskRegions {
  std::vector<const Region*> reads, writes;
};
TaskRegions regions_of_task(const Op& op);

/// Whether a task multiplies matrices.
bool is_product(const Op& op);

/// What a value is made from: inputs of the program by their number, and `product`, if a product of matrices is among its makers.
struct Sources {
  std::vector<bool> inputs;
  bool product = false;
  void add(const Sources& other);
};

/// Sources of each task's reads, in the order of the regions, and of all buffers at the end. Tasks are followed in their order; a write of a whole
/// buffer replaces what was in it. Cost O(tasks * inputs).
struct DataFlow {
  std::vector<std::vector<Sources>> reads;  // by task
  std::vector<Sources> at_end;              // by buffer
  std::vector<BufferId> inputs;             // Role::input, in order
};
DataFlow data_flow(const Program& program);

/// What each task must follow by the data that it reads and writes: the tasks that wrote or read these buffers before it, by increasing number. Edges
/// that only say when the core comes to a task are none of these.
std::vector<std::vector<std::size_t>> data_dependencies(const Program& program);

/// Tasks whose results nothing uses: no task behind them, and no result of the program. Waits and boundaries are none of them.
std::vector<bool> unused_tasks(const Program& program);

}  // namespace podsim
