// The trace of a run: Chrome's trace-event JSON as jax.profiler writes it, for ui.perfetto.dev and chrome://tracing.
//
//   process   a device: pid = device + 1, `device 3 (row=0,col=3)`, in the order of devices
//   thread    if a step was measured on the device, beside one another (side_by_side.hpp):
//               simulated operations, measured operations    what the core is busy with or waits for, nested; from the step's beginning on both
//             above the tasks what they belong to (trace_levels.hpp):
//               step               nested bars: the step (of several `step 1`, ...), its passes (forward, backward, optimiser), their microbatches,
//                                  layers and parts of layers. Each lasts from its first task on the core to the last before the core turns to
//                                  something else
//               operation          each collective from its first task to its last; those that overlap continue on `operation 2`, ...
//             then the device's lines (device_events.hpp): its core, its dma work, each direction of its communication. Thread ids are unique in the
//             file, because Perfetto treats them as the system's, and greater than every pid, because a thread with its process's id is the main
//             thread.
//   X         a task's label, or the name of what tasks belong to; ts and dur in microseconds with six decimals: exactly the picoseconds of the
//             timeline (also 0, where jax's exporter would write 1 ps). Halves of a transfer last from its start to their own end.
//   C         a counter of a device where its value changes (trace_counters.hpp), by name:
//               row + send         what it sends in that direction: bytes_in_flight; bytes_per_second, which adds up to the payloads; utilisation: that rate over the bandwidth of the
//                                  slowest link of each transfer's path, of several such links their sum, so that 1 is all. What calls send is in the counter of the axis alone
//               row                what it sends along an axis, also in a call (its mean): bytes_per_second. Over time it adds up to the payloads times
//                                  the links they cross, and over all devices to the run's link_bytes; `channel` is that of sends
//               memory             bytes of live buffers; the most over all devices is the run's peak memory
//   s, f      an arrow per transfer between two traced devices: from the start of the sender's half to just before the end of the receiver's,
//             so that it never points backwards
//             Also, of category `matched`, from each simulated operation to its measured counterpart, or back if that begins earlier
//   cname     of measured operations that were matched: terrible if late, good if early; grey without a counterpart, on both sides
//   args      all values are strings, keys are sorted, as in jax's traces; the applicable ones of
//               axis               of a Shift, of a Collective's other tasks its axis: `row`, `row/2:4` for a factor
//               bytes              of a transfer its payload, of a Local what it writes
//               category           of an operation beside a measured step
//               channel            of a Send or Recv
//               collective         `all-gather`, and collective_number: which one of the program, from 0
//               direction          of a Shift: + or -, the direction of travel
//               exposed_ps         of a collective as a whole, where its run has a ledger: how long the core of the busiest device waits for it, all its executions together
//               flops              of a Matmul: 2mnk
//               half               `send`, `receive`
//               late_ps            of a measured operation, where it begins: how much longer it takes than predicted
//               layer              of a collective as a whole: what it belongs to, `layer 7: ff1`
//               level              of what stands above tasks: step, pass, microbatch, recompute, layer, operation
//               microbatch, stage  of a microbatch and of what is in it
//               hops, peer         of a half: links between the chips, the other device
//               pace               of a measured operation: `late`, `early`, `as predicted`, `unmatched`
//               path, source       of a collective of a module, where it comes from in the user's program: `jit(step)/dot_general`, `layers.py:85`
//               op                 `matmul`, a LocalKind's name, `shift`, `send`, `receive`, `core-share` (the core's part of another task)
//               share              of exposed_ps, the part of the run in percent
//               slice              the number behind the `s` of the label's first word such as `s3` (algorithms name slices and steps so)
//   labels    of a process, if asked for: `16 alike`, the devices that a folded run simulated as this one; beside a measured step: `matched 5 of 6 predicted operations`, and of
//             the measured ones
//   metadata  the caller's facts about the run, and `devices` of the trace
//
// Nothing in it depends on how the run was simulated: folded and unfolded runs give equal bytes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"
#include "tools/report/sink.hpp"
#include "tools/report/writing_progress.hpp"
#include "validation/calibration/importers/profile_operations.hpp"
#include "validation/diff/step_diff.hpp"
#include "workloads/ledger/ledger.hpp"

namespace podsim {

using TraceMetadata = std::vector<std::pair<std::string, std::string>>;  // keys are distinct; written in this order

/// What a trace has beside the run's own lines.
struct TraceExtras {
  bool tell_alike = false;                // a label of each process says how many devices the model simulates as this one
  const ProfiledStep* measured = nullptr;  // beside the simulated operations of the devices with its numbers, aligned at the step's beginning
  std::int64_t layers = 1;                // blocks in the measured step
  const std::vector<LedgerRow>* ledger = nullptr;  // of the run's collectives
  WritingProgress* progress = nullptr;
  std::function<void(const StepDiff&)> compared{};  // called for each device that a measured step stands beside
};

/// The device that `/device:TPU:3` or `/device:GPU:3` of a profile stands beside.
std::optional<DeviceId> device_measured_as(std::string_view name);

/// Writes and closes the file. Devices must be increasing, the timeline recorded and complete. Errors: those of the sink.
///   cost    O(n log n) per device for the n tasks of its program; memory for the events of one device at a time, and for the lives of buffers
Status write_trace(const Model& model, const Timeline& timeline, std::span<const DeviceId> devices, const TraceMetadata& metadata, Sink& sink,
                   const TraceExtras& extras = {});

/// Microseconds as exact decimal text: "12.000345". Not negative.
std::string microseconds(Picoseconds time);

/// "3" for "gather X s3 launch": the first word of `s` and digits. nullopt: no such word.
std::optional<std::string_view> slice_in(std::string_view label);

}  // namespace podsim
