// Configurations of MaxText (AI-Hypercomputer/maxtext): YAML and KEY=VALUE, read as training steps and written back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/training/step.hpp"

namespace podsim {

/// What MaxText learns from the hardware it runs on.
struct MaxTextSystem {
  std::optional<std::int64_t> devices;  // of a slice; left out: the product of the ici axes, or what compile_topology names
  std::optional<std::int64_t> slices;   // left out: the product of the dcn axes, compile_topology_num_slices or num_slices
};

/// A step from the text of a configuration (none if it is empty) and overrides as on MaxText's command line, KEY=VALUE. What neither says is as in
/// MaxText's base.yml.
///
///   model        model_name: the keys of a model (maxtext_models.hpp), which replace those of the text; an override with another value is an error unless
///                override_model_config is true. base_emb_dim, base_num_query_heads, base_num_kv_heads, head_dim, base_mlp_dim, base_num_decoder_layers,
///                global_parameter_scale,
///                mlp_activations (two entries: gated), decoder_block (llama2, mistral, gemma, qwen3 without its norms of heads: RMS norms; gpt3: layer norms and
///                biases; mixtral, qwen3_moe: experts, num_experts and num_experts_per_tok, without dropped tokens), vocab_size, logits_via_embedding, trainable_position_size, max_target_length; the name is run_name, else model_name
///   dtypes       dtype (activations), weight_dtype, grad_dtype, mu_dtype; no float32 copy of weights beside them
///   batch        per_device_batch_size times all devices; times gradient_accumulation_steps, which are the microbatches without a pipeline
///   mesh         dcn_data_parallelism is slice; ici_ pipeline, data, fsdp, expert, tensor are stage, data, fsdp, expert, col. One of either kind may be -1: the rest
///   pipeline     "gpipe": MaxText's loop runs all microbatches forward, then backward; num_pipeline_microbatches (-1: as many as stages),
///                num_layers_per_pipeline_stage gives the virtual stages
///   the rest     remat_policy (full, none, minimal, ..., custom with its tensors), scan_layers, opt_type (adamw, sgd), use_iota_embed, num_vocab_tiling
///
/// Keys that change the computation in ways that podsim does not have are errors unless they say that they are off; keys known not to change it are
/// ignored; any other key is an error that names similar ones. logical_axis_rules, mesh_axes and data_sharding are taken as MaxText's own in a file,
/// where base.yml has them, and are errors as overrides.
///
/// Errors, with `file:line:column`, for overrides `KEY:1:COLUMN`: what is no YAML; those keys; values of another kind; a scale that is no power of two;
/// an axis left to the rest of unknown devices, or devices that the axes do not divide; a batch that is not whole; problems_of() of the model.
Expected<TrainingStep> read_maxtext(std::string_view text, const std::string& file, const std::vector<std::string>& overrides,
                                    const MaxTextSystem& system = {});

/// "KEY=VALUE KEY=VALUE ...": overrides that say everything that read_maxtext() takes from a configuration, so that reading them gives the same step. But:
/// the description, and a name that is not made of letters, digits, dots, dashes and underscores, are left out. Errors: what MaxText has no key for: a
/// row axis, parallel layers, attention that is not causal, another pipeline than gpipe, microbatches beside several stages and accumulation, ...
Expected<std::string> to_maxtext(const TrainingStep& step);

}  // namespace podsim
