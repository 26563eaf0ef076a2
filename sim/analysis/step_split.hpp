// The time of a training step on one device, split by what the device does or waits for.
#pragma once

#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

/// The parts sum to the makespan exactly. `core` sums to TimeSplit::compute, and `exposed` to TimeSplit::exposed_communication. Played or inlined,
/// calls give the same parts where they take the same time.
///
///   core       busy, by what it works on
///   exposed    idle while something is in flight, by the mesh axis that the operation moves along: a Collective, a transfer of its own, or the
///              launch of a Collective. Of several operations in flight, a moment counts to the one whose last transfer ends last (ties: the
///              first in program order); of several axes of one Collective, to the one that stays in flight longest (ties: the lowest axis)
///   bubble     idle with nothing in flight and the dma unit at rest, in a schedule of several programs, until the device's last core task and
///              the last work of other programs
///   waiting    the rest
struct StepSplit {
  struct Axis {
    int axis = 0;  // of the mesh; -1: a Send or Recv between devices that differ on several axes
    Picoseconds exposed;
    friend bool operator==(const Axis&, const Axis&) = default;
  };
  CoreParts core;
  std::vector<Axis> exposed;  // of axes on which the device communicates, in mesh order, -1 last
  Picoseconds bubble, waiting;
  friend bool operator==(const StepSplit&, const StepSplit&) = default;
};
Picoseconds exposed_communication(const StepSplit& split);
Picoseconds total(const StepSplit& split);

/// Of one device; Metrics::busiest has the most core time. The timeline must be recorded and complete.
///   cost    O(n log n) for the n tasks of the device's program and of its calls; in a schedule of several programs also O(task instances of
///           the model)
StepSplit split_step(const Model& model, const Timeline& timeline, DeviceId device);

/// Of a device in a call; the parts sum to its length, and there is no bubble.
StepSplit split_call(const PlayedCall& call);

/// Figures of a program of a schedule, such as a rank of a pipeline.
struct ProgramMetrics {
  DeviceId busiest;   // of the program's devices, the one whose core is busy longest; ties: lowest
  StepSplit split;    // of that device
  Bytes peak_memory;  // the largest of the program's devices
};
/// By program. The timeline must be recorded and complete.
std::vector<ProgramMetrics> measure_programs(const Model& model, const Timeline& timeline);

}  // namespace podsim
