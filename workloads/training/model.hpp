// A model to train, as data: its extents and dtypes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"
#include "workloads/transformer.hpp"

namespace podsim {

/// An embedding, equal transformer layers, a final norm, and the product with the vocabulary that gives the logits. Without a vocabulary only the
/// layers and the final norm.
struct TrainingModel {
  std::string name, description;
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_dim = 0;  // no heads: layers without attention
  std::int64_t mlp = 0;                              // of one expert, where there are some
  std::int64_t experts = 0, experts_per_token = 0;  // MLPs behind a router, in every layer, and how many each token takes; 0: one MLP, no router
  bool gated = false;           // the MLP has three matrices, else two
  std::int64_t vocabulary = 0;  // 0: none
  bool tied = false;            // the logits are a product with the embedding
  std::int64_t positions = 0;   // learned ones; 0: none
  bool parallel = false;        // attention and MLP read the same norm, and their outputs are added
  bool causal = true;
  Norm norm = Norm::layer;
  bool biases = false;  // of products and of layer norms
  std::int64_t sequence = 2048;

  DType weights = DType::bf16, gradients = DType::bf16, activations = DType::bf16;
  DType moments = DType::f32;   // of AdamW
  bool master_weights = false;  // a float32 copy that the optimiser updates
  friend bool operator==(const TrainingModel&, const TrainingModel&) = default;
};

/// One layer as a block; a parallel layer becomes a serial one of the same products. `sequences` is the block's batch, `layers` the number of them that
/// a device holds.
TransformerBlock layer_of(const TrainingModel& model, std::int64_t sequences, std::int64_t layers = 1);

/// The stages of one layer on `sequences` sequences: those of layer_of(), but for norm2 and residual1 of a parallel layer, which it does not have.
std::vector<Stage> layer_stages(const TrainingModel& model, std::int64_t sequences = 1);

/// What is wrong with a model: extents other than heads that are not from 1 to 2^30, or whose products leave 64 bits; heads that are not a multiple of kv_heads;
/// tied without a vocabulary; fewer positions than the sequence has; more experts_per_token than experts, or experts in parallel layers. `where` of a problem is of_field().
std::vector<Diagnostic> problems_of(const TrainingModel& model);

/// Reads a textproto (model.proto). Errors, with `file:line:column`: unknown fields, dtypes other than bf16 and f32; those of problems_of().
Expected<TrainingModel> read_training_model(std::string_view text, const std::string& file);

/// As a textproto that read_training_model() reads to the same model. `source` is left out: a model that is changed has another.
std::string write_training_model(const TrainingModel& model);

/// "gpt3-175b"; any other name is the path of a textproto. Errors: no such model (the message names similar ones); those of read_training_model().
Expected<TrainingModel> find_training_model(const std::string& name);
std::vector<std::string> shipped_training_models();

}  // namespace podsim
