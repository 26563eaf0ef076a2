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
  PipelineProgram(const Mesh& mesh, DeviceSet devices, int rank, const Describe& describe)
      : builder{mesh, std::move(devices)}, rank_{rank}, describe_{describe} {}

  ProgramBuilder builder;

  [[nodiscard]] int rank() const { return rank_; }
  /// From 0: which of several steps is being written.
  [[nodiscard]] int step() const { return step_; }
  /// Values have other buffers from here on.
  void begin_step(int step) {
    step_ = step;
    buffers_.clear();
  }

  /// The buffer of a value on this rank, new if it has none yet in this step. The value must have one (an assert).
  BufferId buffer(const PipelineValue& value);
  [[nodiscard]] Region whole(const PipelineValue& value) { return builder.whole(buffer(value)); }

 private:
  int rank_;
  const Describe& describe_;
  int step_ = 0;
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
/// Of several steps, what a task of one waits for in the step before is up to `write`.
///   stages   an axis of the mesh, or one_device for a pipeline of one rank
///   errors   the axis has another size than there are ranks; an activation without a buffer (an assert)
///   cost     O(commands * steps), plus `write`
Expected<Schedule> write_pipeline(const Mesh& mesh, const AxisView& stages, const PipelineStep& step, const PipelineWork& work, int steps = 1);

/// The device of another rank with the same coordinates otherwise.
Peer peer_on_rank(const Mesh& mesh, const AxisView& stages, int rank);

}  // namespace podsim
