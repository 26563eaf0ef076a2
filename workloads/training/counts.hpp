// What a training step consists of, by formulas: parameters, floating-point operations and bytes by part. Nothing is simulated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/quantity.hpp"
#include "workloads/training/step.hpp"

namespace podsim {

/// How the scores of causal attention count: all of them, as in PaLM's MFU; or half, for the products that the mask leaves.
enum class AttentionFlops { whole, causal };

/// A part of the model in all its layers, in a step on all devices. Only products and attention have FLOPs here; norms, activations, residuals, the
/// loss and the optimiser are bound by memory.
struct PartCount {
  std::string name;  // "embedding", "positions", the stages of a layer, "final_norm", "logits"
  std::int64_t parameters = 0;
  Flops forward{}, backward{}, recomputed{};
  bool in_model = true;  // false: work of this implementation (an embedding by product), which the model does not need
  friend bool operator==(const PartCount&, const PartCount&) = default;
};

/// Parts in the order of the forward pass.
struct TrainingCounts {
  std::vector<PartCount> parts;
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] Flops forward() const;    // of the model
  [[nodiscard]] Flops backward() const;   // of the model
  [[nodiscard]] Flops recomputed() const;
  /// What MFU counts: forward and backward.
  [[nodiscard]] Flops model_flops() const { return forward() + backward(); }
  /// What HFU counts, of AttentionFlops::causal: also what is computed again, and work that is not the model's.
  [[nodiscard]] Flops hardware_flops() const;
};

/// Of a step with padded extents these count as if they were real; the difference to the step before padding is the waste.
///
///   product X[t,i].W[i,o]   2 t i o forward, twice that backward (dX and dW). Those of experts have experts_per_token times as many tokens
///   attention               4 sequences sequence^2 heads head_dim forward, twice that backward, or half of both. Kernels that compute the scores again
///                           in the backward pass do 10 instead of 8 there; the model does not need the difference
///   embedding               a gather, no FLOPs; by product 2 t vocabulary width forward and as many backward (dW alone)
///   recomputed              recomputed_stages(), each as in the forward pass
///
/// source: Chowdhery et al. 2022 (PaLM), appendix B; Korthikanti et al. 2022, appendix A
TrainingCounts counts_of(const TrainingStep& step, AttentionFlops attention = AttentionFlops::whole);

/// The parameters that a token uses: all but those of the experts that it does not take. Embeddings count, as in the published numbers of Mixtral.
std::int64_t active_parameters(const TrainingStep& step);

/// The stages of a layer that are computed again: those whose output is not kept and which the backward pass needs, directly or to compute another
/// again; with `layer` all of them. A product, norm, activation and attention need their inputs, attention also its output. So the last product of a
/// layer is among them with `layer` alone: jax.checkpoint removes what nothing needs. With experts, combine needs that output: the gradient of its weights.
/// In order; none without rematerialisation.
std::vector<std::string> recomputed_stages(const TrainingModel& model, const Remat& remat);

/// The FLOPs of a step on all devices by MaxText's own formula, from which its logs have TFLOP/s/device: products of the layers and of the logits,
/// and attention, thrice for forward and backward. Newer releases count causal attention half. No recomputation.
/// source: AI-Hypercomputer/maxtext, maxtext_utils.py, calculate_tflops_training_per_device()
Flops maxtext_flops(const TrainingStep& step, AttentionFlops attention);

/// A step and the waste of its padding, part by part.
struct PaddedCount {
  std::string name;
  std::int64_t parameters = 0;  // padded minus given
  Flops flops{};                // the same, of hardware_flops()
};
/// The parts that padding makes larger. The second step is the padded one.
std::vector<PaddedCount> padding_waste(const TrainingStep& given, const TrainingStep& padded);

/// The bytes of a device by kind.
struct TrainingMemory {
  Bytes weights{}, gradients{}, optimizer{}, activations{}, working{};
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + working; }
  friend bool operator==(const TrainingMemory&, const TrainingMemory&) = default;
};

/// What a rank of the pipeline holds beside its layers.
struct RankEnds {
  bool embedding = true, logits = true;
};

/// An estimate of what a device needs at its peak, by kind at that moment; the peak of a simulated step replaces it. The step must be divided(): an assert.
/// Parameters of a rank are those of its layers, norms included, and of its ends; a tied embedding is held at both ends.
///
///   weights      parameters / (fsdp expert row col) x dtype
///   optimizer    the same: two moments for adamw, and the float32 copy if there is one; over data too with shard_optimizer_over_data
///   gradients    the same, at the end of the backward pass or with several microbatches, which are accumulated in place; 0 before it. Of one microbatch
///                divided over data as the optimizer's state is
///   activations  live forwards x layers of a virtual stage x what a layer keeps of a microbatch: its input; without rematerialisation also the inputs of
///                products, norms, attention and the activation, with it the saved stages that are not on the host. At the logits also the final norm's
///                input, or its gradient. Tokens are divided by slice data fsdp expert row, features by col. 0 at the end of the backward pass
///   working      weights of a layer from their gather, one weight ahead, to their last use, and each gradient until it is reduced, in the activations'
///                dtype; and of the work itself at the loss: logits of a chunk, which their gradient overwrites; in the backward pass: the layer that is
///                computed again (what it would keep without rematerialisation, less what it has) and the widest gradient. Features gathered along col
///
/// The largest of these moments: the loss, the first and the last layer backward, the gradient of the embedding; with several microbatches each of them
/// has the gradients and the activations of others. Left out: what a split backward pass keeps between its halves.
/// Of 15 plans without one (llama3-8b and -70b, megatron-22b, maxtext-default on 8 to 64 devices, every axis but slice) the estimate is 3.2 % below to 1.5 %
/// above the simulated peak, of nine of them within 0.1 %.
///
/// With experts a layer keeps each of a token's copies, and a device has whole weights of its experts along expert, shards of all others.
/// Of 48 small steps with eight experts (one to eight devices) the estimate is 0.6 % below to 5.8 % above the simulated peak; of 16 without, of the same extents, 1.6 % below to 5.5 % above.
///
/// `live_forwards`: of how many (virtual stage, microbatch) pairs the rank holds the activations at most; the pipeline's schedule tells, 1 with one stage;
/// at most microbatches x virtual_stages: an assert.
TrainingMemory memory_of(const TrainingStep& step, RankEnds ends, std::int64_t live_forwards);

}  // namespace podsim
