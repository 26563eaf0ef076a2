// Peak memory of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

/// Per node, the largest sum of live buffers over time: a scratch buffer lives from its earliest write to its last use, inputs and outputs always.
/// Buffers on the host are not the device's.
std::vector<Bytes> peak_memory(const Model& model, const Timeline& timeline);

/// Storage that a device holds: a buffer of its program, or the scratch buffers of a played Call.
struct LiveBuffer {
  std::string name;  // of the buffer; of the scratch buffers: the Call's label
  Bytes size;
  std::optional<BufferId> buffer;  // of the program; nullopt: scratch buffers of a Call
};
/// What is live on a device at the first moment of its peak memory, whose sizes sum to peak_memory(): buffers in the program's order, then Calls. Scratch
/// buffers of a Call count for all of its time, with the most that it needs at once.
///   cost    O(task instances of the model + n log n) for the n buffers and Calls of the program
std::vector<LiveBuffer> live_at_peak(const Model& model, const Timeline& timeline, DeviceId device);

}  // namespace podsim
