// The trace of a run: Chrome's trace-event JSON as jax.profiler writes it, for ui.perfetto.dev and chrome://tracing.
//
//   process   a device: pid = device + 1, `device 3 (row=0,col=3)`, in the order of devices
//   thread    a line of the device (device_events.hpp): its core, its dma work, each direction of its communication. Thread ids are unique in the
//             file, as Perfetto takes them for the system's, and greater than every pid, as a thread of its process's id is the main one to it.
//   X         a task's label; ts and dur in microseconds with six decimals, that is exactly the picoseconds of the timeline (also 0, where jax's
//             exporter would put 1 ps). Halves of a transfer span from its start to their own end.
//   s, f      an arrow per transfer between two devices of the trace: from the start of the sender's half to just before the end of the receiver's,
//             so that it is never backwards
//   args      every value is a string, keys are sorted, as in jax's; those that apply of
//               axis               of a Shift, of a Collective's other tasks its axis: `row`, `row/2:4` for a factor
//               bytes              of a transfer its payload, of a Local what it writes
//               channel            of a Send or Recv
//               collective         `all-gather`, and collective_number: which one of the program, from 0
//               direction          of a Shift: + or -, which way the data travels
//               flops              of a Matmul: 2mnk
//               half               `send`, `receive`
//               hops, peer         of a half: links between the chips, the other device
//               op                 `matmul`, a LocalKind's name, `shift`, `send`, `receive`, `core-share` (the core's part of another task)
//               slice              the number behind the `s` of the label's first word such as `s3` (algorithms name slices and steps so)
//   metadata  what the caller says of the run, `devices` of the trace among it
//
// Not in it: anything that depends on how the run was simulated. A folded run and one of every device give the same bytes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"
#include "tools/report/sink.hpp"

namespace podsim {

using TraceMetadata = std::vector<std::pair<std::string, std::string>>;  // keys are distinct; written in this order

/// Writes and closes the file. Devices are increasing; the timeline is recorded and complete. Errors: the sink's.
///   cost    O(n log n) per device for the n tasks of its program; memory for one device's events, however many devices there are
Status write_trace(const Model& model, const Timeline& timeline, std::span<const DeviceId> devices, const TraceMetadata& metadata, Sink& sink);

/// Microseconds as decimal text, exactly: "12.000345". Not negative.
std::string microseconds(Picoseconds time);

/// 3 of "gather X s3 launch": the first word that is an `s` and digits. nullopt: there is none.
std::optional<std::string_view> slice_in(std::string_view label);

}  // namespace podsim
