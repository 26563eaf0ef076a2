// A pipeline as a schedule: one program per rank, on the devices that have the rank as their coordinate on one axis of the mesh.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "algorithms/pipeline/pipeline_step.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

/// The program of a rank while it is written.
class PipelineProgram {
 public:
  using Describe = std::function<std::optional<Buffer>(const PipelineValue&)>;
  PipelineProgram(const Mesh& mesh, DeviceSet devices, const Describe& describe) : builder{mesh, std::move(devices)}, describe_{describe} {}

  ProgramBuilder builder;

  /// The buffer of a value on this rank, new if it has none yet. The value must have one (an assert).
  BufferId buffer(const PipelineValue& value);
  [[nodiscard]] Region whole(const PipelineValue& value) { return builder.whole(buffer(value)); }

 private:
  const Describe& describe_;
  std::map<PipelineValue, BufferId> buffers_;
};

/// What a pipeline moves and what its tasks do. Both functions are called rank by rank, in the order of each rank's commands.
struct PipelineWork {
  /// The buffer of a value, as every device of a rank that makes or receives it has it. nullopt: the value is in other buffers, or nowhere. A loss
  /// without a buffer is not sent. Activations and their gradients need one.
  PipelineProgram::Describe buffer;
  /// Appends what a command of a rank does, other than send, receive and erase, behind `after`; returns the edges that wait for it.
  std::function<Edges(PipelineProgram&, const PipelineCommand&, const Edges& after)> write;
};

/// The schedule of a whole step. Values pass between equal coordinates of two ranks by a Send right after they are made; transfers of one pair of ranks and
/// direction go one after the other, in the order of their making. On one rank stages share buffers. A task waits for what it reads, and for the task
/// before it that added to the same sum (gradients of a stage, the loss). The first task of a fused unit waits for what all of its members need. Every
/// microbatch has buffers of its own; they live from the first write to the last use.
///   errors   the axis has another size than there are ranks; an activation without a buffer (an assert)
///   cost     O(commands), plus `write`
Expected<Schedule> write_pipeline(const Mesh& mesh, int stage_axis, const PipelineStep& step, const PipelineWork& work);

}  // namespace podsim
