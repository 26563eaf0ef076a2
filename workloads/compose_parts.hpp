// Puts the parts of a plan one after the other: what block_schedule() and layer_functions() are made with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/schedule/program_builder.hpp"
#include "workloads/plan.hpp"

namespace podsim {

/// Writes one program of parts. Every task of a part waits for the last tasks of the part before.
class PartComposer {
 public:
  /// `given`: where inputs come from, if they are as another composer has them.
  PartComposer(const Submesh& submesh, std::string name, const PartComposer* given = nullptr)
      : builder_{submesh.mesh, submesh.devices}, name_{std::move(name)}, given_{given} {}

  using Names = std::map<std::string, std::string>;
  /// `tensor` of a part is `named[tensor]` of the whole; tensors that are not named are local to the part. Labels begin with `prefix`.
  void append(const Schedule& part, const std::string& prefix, const Names& named);

  /// The tensors that were read before any part made them.
  [[nodiscard]] const std::vector<std::string>& inputs() const { return inputs_; }
  [[nodiscard]] bool made(const std::string& tensor) const;

  /// Tensors that are not asked for become scratch.
  Schedule finish(const std::vector<std::string>& outputs) &&;

 private:
  BufferId add_buffer(const Buffer& like, const std::string& name, Role role);
  /// The tensor as the part views it: where it is, or placed.
  BufferId read(const Buffer& view, const std::string& tensor, const Tasks& before, Tasks& start);
  /// The buffer of a tensor of this composer or of those that give it; null: none has it.
  [[nodiscard]] const Buffer* known(const std::string& tensor) const;

  ProgramBuilder builder_;
  std::string name_;
  const PartComposer* given_;
  std::map<std::string, BufferId> held_;
  std::vector<std::string> inputs_;
  Tasks last_;
};

/// Follows activations forwards and gradients backwards through the parts of a workload, and names them.
class StageWiring {
 public:
  /// `chained`: each stage reads the output of the one before (Workload::data_flows()).
  explicit StageWiring(bool chained) : chained_{chained} {}

  PartComposer::Names forward(const WorkloadPart& part, bool last);
  /// Without a forward pass before, a backward pass is given the activations.
  PartComposer::Names backward(const WorkloadPart& part, bool last);

 private:
  bool chained_;
  std::string at_ = "X", stream_ = "X", gradient_ = "dY", stream_gradient_ = "dY";
  std::string logits_, dispatched_gradient_;
  std::map<std::string, std::string> read_;
};

/// Appends the schedule of a part. `again`: its tasks repeat work (Task::recompute), and their labels begin with that word. Errors: those of
/// part_schedule().
Status append_part(PartComposer& composer, const Submesh& submesh, const WorkloadPart& part, const PartOptions& options, const PartComposer::Names& named,
                   bool again = false);

}  // namespace podsim
