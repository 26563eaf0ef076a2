// The mesh of a training step: its axes by name, and what is divided over them.
#pragma once

#include "sim/mesh/mesh.hpp"
#include "sim/schedule/submesh.hpp"
#include "workloads/training/step.hpp"

namespace podsim {

/// The axes of a mesh that training steps have; one_device for those that it has not.
struct StepAxes {
  AxisView slice = one_device, stage = one_device, data = one_device, fsdp = one_device, expert = one_device, row = one_device, col = one_device;

  /// Those with several devices that divide the tokens of a microbatch, first most significant.
  [[nodiscard]] std::vector<AxisView> tokens() const;
  /// The same, and col: over these the loss is a sum.
  [[nodiscard]] std::vector<AxisView> loss() const;
};

/// Those of `axes` with several devices.
std::vector<AxisView> without_one_device(std::vector<AxisView> axes);

/// Errors: an axis with another name, or not in the order of training_axes.
Expected<StepAxes> step_axes(const Mesh& mesh);
TrainingMesh sizes_of(const StepAxes& axes);

/// All axes with several devices, which wrap; `data` of one device if there is none.
Mesh mesh_of(const TrainingMesh& sizes);

}  // namespace podsim
