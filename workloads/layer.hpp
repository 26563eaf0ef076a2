// A transformer layer as two functions that schedules call: forward and backward.
#pragma once

#include <vector>

#include "workloads/plan.hpp"

namespace podsim {

/// A function, and what its parameters are: buffers with tensor, sharding and role, as a program that calls it once would have them.
struct LayerFunction {
  Function function;
  std::vector<Buffer> parameters;  // one for each of the function
};

/// The forward and the backward pass of block_schedule(), each as a function. Parameters are named by their tensors:
///   forward    X, <stage>.W -> Y, and what the backward pass reads besides, under the names that block_schedule() has for it ("norm1.Y", "in_proj.Y")
///   backward   dY, <stage>.W, X and those -> dX, <stage>.dW
/// A tensor has the same extents in both, so the buffer that the forward pass wrote is what the backward pass is given.
struct LayerFunctions {
  LayerFunction forward, backward;
};

/// Errors: those of block_schedule(); a workload whose stages do not follow one another.
Expected<LayerFunctions> layer_functions(const Submesh& submesh, const Workload& workload, const Plan& plan);

}  // namespace podsim
