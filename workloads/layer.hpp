// A transformer layer as functions that schedules call: its forward and its backward pass, whole or split, with recomputation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule/tensor_function.hpp"
#include "workloads/plan.hpp"

namespace podsim {

/// What the forward pass of a layer keeps beside its input.
struct LayerOptions {
  bool recompute = false;            // nothing but the outputs of `saved`; the backward pass computes again what it needs
  std::vector<std::string> saved{};  // with recompute: stages
  bool whole = false;                // with recompute: everything again but `saved`, also what nothing needs
};

/// What a tensor is to a layer.
struct LayerTensor {
  enum class Use { input, output, output_gradient, input_gradient, weight, weight_gradient, kept };
  Use use = Use::kept;
  std::string stage{};  // weight, weight_gradient: whose; kept: whose output it is, else empty
};

/// Parameters are named by their tensors:
///   forward            X, <stage>.W -> Y, and what the backward pass reads besides, under the names that block_schedule() has for it ("norm1.Y",
///                      "in_proj.Y")
///   backward           dY, <stage>.W, X and those -> dX, <stage>.dW
///   backward_inputs    the same without <stage>.dW, but with the gradients of every product's output, and what was computed again
///   backward_weights   those, X and what the forward pass kept -> <stage>.dW
/// A tensor has the same extents in all, so a buffer that one writes is what another is given.
struct LayerFunctions {
  TensorFunction forward, backward, backward_inputs, backward_weights;
  std::map<std::string, LayerTensor> tensors{};  // those of all parameters
};

/// Tasks that compute again are marked (Task::recompute). Nothing is computed that no result needs: the last product of a layer is not computed
/// again, except with `whole`. Errors: those of block_schedule(); a workload whose stages do not follow one another.
Expected<LayerFunctions> layer_functions(const Submesh& submesh, const Workload& workload, const Plan& plan, const LayerOptions& options = {});

}  // namespace podsim
