// A training step, as data: a model, its batch, how both are divided over a mesh, and what is kept for the backward pass.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/training/model.hpp"

namespace podsim {

/// The sizes of the axes of a training mesh, in the order of the mesh.
///
///   slice   whole replicas, joined by the data-centre network
///   stage   pipeline stages: layers
///   data    sequences; every device of it has all parameters of its stage
///   fsdp    sequences, and parameters: each weight along its `width` dimension
///   expert  sequences, and experts; the other parameters as fsdp
///   row     the rows of matrices: sequences of activations, inputs of weights
///   col     the columns of matrices: features of activations (heads, width of the MLP), outputs of weights, the vocabulary
struct TrainingMesh {
  std::int64_t slice = 1, stage = 1, data = 1, fsdp = 1, expert = 1, row = 1, col = 1;
  friend bool operator==(const TrainingMesh&, const TrainingMesh&) = default;

  [[nodiscard]] std::int64_t devices() const { return slice * stage * data * fsdp * expert * row * col; }
  /// The number of parts into which a microbatch's sequences are divided.
  [[nodiscard]] std::int64_t batch_parts() const { return slice * data * fsdp * expert * row; }
  /// The number of parts into which the parameters of a stage are divided.
  [[nodiscard]] std::int64_t parameter_parts() const { return fsdp * expert * row * col; }
};
inline constexpr std::array<std::string_view, 7> training_axes{"slice", "stage", "data", "fsdp", "expert", "row", "col"};
/// The axis that frameworks call so: pp and pipeline are stage, dp is data, ep is expert, tp, tensor and model are col; any other name is itself.
std::string_view training_axis(std::string_view name);
std::int64_t size_of(const TrainingMesh& mesh, std::string_view axis);
inline constexpr std::int64_t most_training_devices = 1 << 24;

/// "stage=2,fsdp=4": sizes of axes in any order; those left out have size 1. Errors, at the place in the text: another axis, an axis used twice, a size
/// that is not from 1 to 2^24, more devices than that.
Expected<TrainingMesh> parse_training_mesh(std::string_view text, const SourceLocation& where);
/// Axes of size 1 left out; "1" for one device.
std::string to_text(const TrainingMesh& mesh);

/// A stage of a layer (layer_stages()) whose output is kept for the backward pass: in HBM, or in the memory of the host.
struct SavedStage {
  std::string name;
  bool on_host = false;
  friend bool operator==(const SavedStage&, const SavedStage&) = default;
};

/// What the forward pass keeps of a layer beside its input; the backward pass computes the rest again.
struct Remat {
  /// What is computed again: nothing; what the backward pass needs (jax.checkpoint); the whole layer, also its last product, whose output nothing
  /// needs (checkpoint of PyTorch, hence Megatron-LM); what the backward pass needs but `saved`.
  enum class Kind { none, full, layer, selected };
  Kind kind = Kind::none;
  std::vector<SavedStage> saved;  // of `selected`: at least one, in the order of the layer's stages
  friend bool operator==(const Remat&, const Remat&) = default;
};
/// "none", "full", "layer", "selected:in_proj,ff1", "selected:in_proj@host". Errors, at the place in the text: another word; no stage, one twice or
/// an unknown one.
Expected<Remat> parse_remat(std::string_view text, const SourceLocation& where);
std::string to_text(const Remat& remat);

enum class Optimizer { adamw, sgd };
std::string_view name_of(Optimizer optimizer);
std::optional<Optimizer> optimizer_named(std::string_view name);

struct TrainingStep {
  TrainingModel model;
  std::int64_t batch = 1;  // sequences, on all devices together
  std::int64_t microbatches = 1;
  TrainingMesh mesh;
  std::string pipeline;             // the name of a schedule; empty: one stage. Whether it takes these stages and microbatches is not checked here
  std::int64_t virtual_stages = 1;  // on each rank
  Remat remat;
  bool scan = false;  // layers as a loop: their gradients are stacked in one array, each copied into it
  Optimizer optimizer = Optimizer::adamw;
  /// The optimizer's state and its update are divided over `data` too: ZeRO stage 1, Megatron-LM's distributed optimizer. Gradients are scattered over `data`,
  /// each device updates its part, and the next step gathers the weights before it uses them.
  bool shard_optimizer_over_data = false;
  bool embedding_by_product = false;  // the embedding is a product with one-hot rows, else a gather
  std::int64_t loss_chunks = 1;       // the logits of a microbatch are computed and differentiated in so many pieces
  bool pad = false;                   // extents that their axes do not divide are rounded up, else they are an error
  friend bool operator==(const TrainingStep&, const TrainingStep&) = default;

  [[nodiscard]] std::int64_t tokens() const { return batch * model.sequence; }
  /// The number of devices over which `data` divides updates.
  [[nodiscard]] std::int64_t optimizer_shards() const { return shard_optimizer_over_data ? mesh.data : 1; }
  /// Layers of a virtual stage.
  [[nodiscard]] std::int64_t layers_per_stage() const { return model.layers / (mesh.stage * virtual_stages); }
};

/// An extent that was rounded up so that its axes divide it.
struct Padding {
  std::string extent;  // "batch", "width", ...: the field of the step or its model
  std::int64_t from = 0, to = 0;
  friend bool operator==(const Padding&, const Padding&) = default;
};

/// A step that its mesh divides: the one given, but for `paddings`.
struct DividedStep {
  TrainingStep step;
  std::vector<Padding> paddings;
};

/// Checks a step, and with step.pad rounds its extents up.
///
///   layers                     a multiple of stage * virtual_stages
///   batch                      of microbatches * slice * data * fsdp * expert * row; padded, each microbatch is
///   heads, kv_heads            of col; fewer kv_heads than col that divide it are copied instead. heads * head_dim also of row
///   width                      of fsdp * expert * lcm(row, col), and of data where the optimizer's state is divided over it
///   experts                    of expert; never padded
///   mlp                        of lcm(row, col)
///   vocabulary                 of col
///
/// Errors (all of them, one per line; `where` is the field of the first): problems_of(model); sizes and counts below 1, more than 2^24 devices, more than
/// 2^40 tokens; several stages without a pipeline, virtual stages of one stage; a saved stage that a layer does not have; extents not divided, with the
/// next multiple: layers always, others without `pad`.
Expected<DividedStep> divided(const TrainingStep& step);

}  // namespace podsim
