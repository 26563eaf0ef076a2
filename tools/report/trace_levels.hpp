// What the tasks of a program belong to, one level above them: the step's passes, microbatches and layers, and the collectives that tasks carry out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/model.hpp"
#include "tools/report/device_events.hpp"

namespace podsim {

/// The levels of a program, a tree: the step, in it passes, in those microbatches, layers, their parts. Level 0 is the step.
struct ProgramLevels {
  struct Level {
    std::uint32_t parent = 0;
    std::uint32_t depth = 0;
    std::string name;                 // "step", "forward", "microbatch 3", "layer 7", "ff1"
    std::string kind;                 // step, pass, microbatch, recompute, layer
    int microbatch = -1, stage = -1;  // of a level within one; -1: none
  };
  /// A Collective of the program: what its tasks are called together.
  struct Operation {
    std::string name;         // "ff1: gather W s0"
    std::uint32_t level = 0;  // that it belongs to
  };
  std::vector<Level> levels;
  std::vector<std::uint32_t> level_of;  // per task
  std::vector<Operation> operations;    // by Origin::collective; those without tasks have no name
};

/// Passes are told from labels (label_place.hpp); in a program with a backward pass all other layers are in the forward pass.
///   cost    O(n log n) for n tasks
ProgramLevels levels_of(const Program& program);

/// A bar above the tasks.
struct LevelSpan {
  Picoseconds begin, end;
  std::uint32_t of = 0;      // in ProgramLevels::levels or operations
  std::uint32_t number = 0;  // of a step, from 1, where the run has several
};

/// `steps`: levels by begin, outer ones first; each is within its parent, and those of one depth never overlap. The step is the whole run; if
/// something follows the optimiser, another step begins with it. All other levels last from their first task on the core to the last before the core
/// turns to something else. Core shares and tasks without time count for nothing.
/// `operations`: each Collective from its first task to its last; by line, then begin; on a line none overlap.
struct DeviceLevels {
  std::vector<LevelSpan> steps;
  std::vector<std::vector<LevelSpan>> operations;  // by line
};
/// Of a device with these events, which is not idle.
///   cost    O(n log n) for n events
DeviceLevels levels_of(const ProgramLevels& program, const Program& tasks, const DeviceEvents& events, Picoseconds makespan);

}  // namespace podsim
