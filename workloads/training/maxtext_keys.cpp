#include "workloads/training/maxtext_keys.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

using Default = std::pair<std::string_view, std::string_view>;

// Names and defaults of AI-Hypercomputer/maxtext, src/maxtext/configs/base.yml at commit 000b810.
constexpr std::array read_keys{
    Default{"run_name", ""},
    Default{"model_name", "default"},
    Default{"override_model_config", "false"},
    Default{"base_emb_dim", "2048"},
    Default{"base_num_query_heads", "16"},
    Default{"base_num_kv_heads", "16"},
    Default{"head_dim", "128"},
    Default{"base_mlp_dim", "7168"},
    Default{"base_num_decoder_layers", "16"},
    Default{"num_experts", "1"},
    Default{"num_experts_per_tok", "1"},
    Default{"base_moe_mlp_dim", "-1"},
    Default{"capacity_factor", "-1.0"},
    Default{"sparse_matmul", "true"},
    Default{"shared_experts", "0"},
    Default{"interleave_moe_layer_step", "1"},
    Default{"use_ring_of_experts", "false"},
    Default{"global_parameter_scale", "1"},
    Default{"mlp_activations", "[silu, linear]"},
    Default{"decoder_block", "llama2"},
    Default{"vocab_size", "32000"},
    Default{"logits_via_embedding", "false"},
    Default{"trainable_position_size", "-1"},
    Default{"max_target_length", "2048"},
    Default{"per_device_batch_size", "12.0"},
    Default{"gradient_accumulation_steps", "1"},
    Default{"dtype", "bfloat16"},
    Default{"weight_dtype", "float32"},
    Default{"grad_dtype", "float32"},
    Default{"mu_dtype", ""},
    Default{"opt_type", "adamw"},
    Default{"use_qk_norm", "false"},
    Default{"remat_policy", "full"},
    Default{"context", "remat"},
    Default{"mlpwi", "remat"},
    Default{"mlpwi_0", "remat"},
    Default{"mlpwi_1", "remat"},
    Default{"mlpwo", "remat"},
    Default{"query_proj", "remat"},
    Default{"key_proj", "remat"},
    Default{"value_proj", "remat"},
    Default{"qkv_proj", "remat"},
    Default{"out_proj", "remat"},
    Default{"scan_layers", "true"},
    Default{"shard_optimizer_over_data", "false"},
    Default{"use_iota_embed", "false"},
    Default{"num_vocab_tiling", "1"},
    Default{"num_layers_per_pipeline_stage", "1"},
    Default{"num_pipeline_repeats", "-1"},
    Default{"num_pipeline_microbatches", "-1"},
    Default{"ici_data_parallelism", "1"},
    Default{"ici_pipeline_parallelism", "1"},
    Default{"ici_fsdp_parallelism", "-1"},
    Default{"ici_expert_parallelism", "1"},
    Default{"ici_tensor_parallelism", "1"},
    Default{"dcn_data_parallelism", "-1"},
    Default{"compile_topology", ""},
    Default{"compile_topology_num_slices", "-1"},
    Default{"num_slices", "-1"},
};

const std::vector<FixedKey>& fixed_keys() {
  static const std::vector<std::string_view> off{"false"}, zero{"0"}, one{"1"}, minus{"-1"}, nothing{"", "none", "null"};
  static const std::string_view data_axis = "podsim's slices are joined by data parallelism alone (dcn_data_parallelism)", no_axis = "podsim has no such axis";
  static const std::vector<FixedKey> keys{
      {"base_config", {"base.yml", "configs/base.yml", "src/maxtext/configs/base.yml"}, "other defaults than base.yml's"},
      {"quantization", nothing, "quantised products"},
      {"matmul_precision", {"default"}, "other products"},
      {"activations_in_float32", off, "other dtypes"},
      {"logits_dot_in_fp32", off, "other dtypes"},
      {"float32_qk_product", off, "other dtypes"},
      {"float32_logits", off, "other dtypes"},
      {"cast_logits_to_fp32", {"true"}, "other dtypes"},
      {"weight_sparsity_n", nothing, "sparse weights"},
      {"weight_sparsity_m", nothing, "sparse weights"},
      {"te_comm_gemm_overlap", {"disabled"}, "another overlap"},
      {"attention_output_dim", minus, "another attention"},
      {"global_head_dim", zero, "layers that differ"},
      {"global_num_kv_heads", zero, "layers that differ"},
      {"dropout_rate", zero, "dropout"},
      {"mtp_num_layers", zero, "further layers"},
      {"inhomogeneous_layer_cycle_interval", one, "layers that differ"},
      {"first_num_dense_layers", zero, "layers that differ"},
      {"mlp_bias", off, "biases of some products"},
      {"attention_bias", off, "biases of some products"},
      {"use_batch_split_schedule", off, "another schedule"},
      {"pipeline_parallel_layers", minus, "layers outside the pipeline"},
      {"pipeline_delay_activation_forwarding", off, "another pipeline"},
      {"pipeline_fsdp_ag_once", off, "other gathers of weights"},
      {"pipeline_fsdp_ag_per_repeat", off, "other gathers of weights"},
      {"model_fsdp_ag_once", off, "other gathers of weights"},
      {"vocab_tiling_ag_once", off, "other gathers of weights"},
      {"scan_pipeline_iterations", {"true"}, "another pipeline"},
      {"scan_pipeline_repeats", off, "another pipeline"},
      {"scan_layers_per_stage", off, "another pipeline"},
      {"set_remat_policy_on_pipeline_iterations", {"true"}, "other rematerialisation"},
      {"set_remat_policy_on_layers_per_stage", off, "other rematerialisation"},
      {"decoder_layer_input", {"device"}, "inputs of layers on the host"},
      {"optimizer_memory_host_offload", off, "optimiser state on the host"},
      {"parameter_memory_host_offload", off, "parameters on the host"},
      {"attention", {"autoselected", "flash", "cudnn_flash_te"}, "an attention that stores its scores"},
      {"attention_type", {"global"}, "another attention"},
      {"share_kv_projections", off, "another attention"},
      {"attention_sink", off, "another attention"},
      {"sliding_window_size", zero, "another attention"},
      {"chunk_attn_window_size", zero, "another attention"},
      {"moba", off, "another attention"},
      {"use_indexer", off, "another attention"},
      {"use_qk_clip", off, "another optimiser"},
      {"use_post_attn_norm", off, "further norms"},
      {"use_post_ffw_norm", off, "further norms"},
      {"attn_logits_soft_cap", zero, "other scores"},
      {"final_logits_soft_cap", zero, "other logits"},
      {"z_loss_multiplier", zero, "another loss"},
      {"use_untrainable_positional_embedding", off, "another embedding"},
      {"hidden_size_per_layer_input", zero, "another embedding"},
      {"num_kv_shared_layers", zero, "layers that differ"},
      {"use_double_wide_mlp", off, "layers that differ"},
      {"engram_layers", {"[]"}, "layers that differ"},
      {"mhc_expansion_rate", one, "other residuals"},
      {"custom_mesh", {""}, "another order of devices"},
      {"custom_mesh_and_rule", {""}, "another sharding"},
      {"use_2d_fsdp_sharding", off, "another sharding"},
      {"trainable_parameters_mask", {"[]"}, "frozen parameters"},
      {"enable_rampup_batch_size", off, "a batch that changes"},
      {"enable_diloco", off, "another optimiser"},
      {"enable_streaming_diloco", off, "another optimiser"},
      {"use_sequential_layers", off, "layers that differ"},
      {"use_dpo", off, "another loss"},
      {"use_grpo", off, "another loss"},
      {"training_objective", {"causal_lm"}, "another loss"},
      {"use_multimodal", off, "an encoder of images"},
      {"use_audio", off, "an encoder of sound"},
      {"model_call_mode", {""}, "inference"},
      {"max_checkify", off, "further checks"},
      {"dcn_bandwidth_limit", {""}, "a slower network; say so by the machine"},
      {"ici_diloco_parallelism", one, no_axis},
      {"ici_fsdp_transpose_parallelism", one, no_axis},
      {"ici_sequence_parallelism", one, no_axis},
      {"ici_context_parallelism", one, no_axis},
      {"ici_context_usp_ulysses_parallelism", one, no_axis},
      {"ici_context_autoregressive_parallelism", one, no_axis},
      {"ici_tensor_transpose_parallelism", one, no_axis},
      {"ici_tensor_sequence_parallelism", one, no_axis},
      {"ici_autoregressive_parallelism", one, no_axis},
      {"dcn_diloco_parallelism", one, data_axis},
      {"dcn_fsdp_parallelism", one, data_axis},
      {"dcn_fsdp_transpose_parallelism", one, data_axis},
      {"dcn_sequence_parallelism", one, data_axis},
      {"dcn_context_parallelism", one, data_axis},
      {"dcn_context_usp_ulysses_parallelism", one, data_axis},
      {"dcn_context_autoregressive_parallelism", one, data_axis},
      {"dcn_tensor_parallelism", one, data_axis},
      {"dcn_tensor_transpose_parallelism", one, data_axis},
      {"dcn_tensor_sequence_parallelism", one, data_axis},
      {"dcn_pipeline_parallelism", one, data_axis},
      {"dcn_expert_parallelism", one, data_axis},
      {"dcn_autoregressive_parallelism", one, data_axis},
  };
  return keys;
}

constexpr std::array<std::string_view, 6> sharding_rule_keys{"mesh_axes", "logical_axis_rules", "data_sharding", "input_data_sharding_logical_axes", "override_logical_axis_rules", "logical_axis_rules_for_eval"};

// Families of keys, by how they begin or end: what only a feature reads that a fixed key keeps off, and what is about files, logs and hosts.
constexpr std::array<std::string_view, 47> harmless_beginnings{
    "checkpoint_", "lora_", "hf_", "grain_", "olmo_", "tokenize", "wandb_", "managed_mldiagnostics", "dump_", "profile", "inference_", "decode_sampling_", "distill_", "elastic_", "vertex_",
    "engram_", "gdn_", "mla_", "moba_", "indexer_", "moe_", "routed_", "wi_tile_", "wo_tile_", "ragged_", "sa_", "local_sa_", "rope_", "muon_", "adam", "wsd_", "diloco_", "vllm_",
    "block_diffusion_", "mhc_pallas_kernel_", "eval_", "jax_", "compressed_", "cost_estimate_flops_", "prefix_caching_", "goodput_", "kv_quant_", "dcn_bandwidth_", "xprof_", "tpu_num_", "multi_tier_", "tile_"};
constexpr std::array<std::string_view, 3> harmless_endings{"_for_vit", "_for_audio", "_quantization_calibration_method"};

constexpr std::string_view harmless_keys[] = {
    // Files, checkpoints, logs, hosts.
    "load_parameters_path", "load_full_state_path", "enable_checkpointing", "save_checkpoint_on_start", "save_checkpoint_on_completion",
    "async_checkpointing", "max_num_checkpoints_to_keep", "enable_continuous_checkpointing", "enable_single_replica_ckpt_restoring", "force_unroll", "enable_orbax_v1",
    "source_checkpoint_layout", "colocated_python_checkpointing", "enable_autocheckpoint", "enable_multi_tier_checkpointing", "mtc_data_parallelism", "enable_emergency_checkpoint",
    "local_checkpoint_directory", "local_checkpoint_period", "enable_checkpoint_cloud_logger", "enable_single_controller", "base_output_directory", "metrics_file", "gcs_metrics",
    "enable_wandb", "save_config_to_gcs", "hardware", "internal_compile", "internal_compile_num_devices", "compile_xla_flags", "compiled_trainstep_file", "write_estimator_result",
    "log_period", "log_config", "debug_sharding", "max_inflight_computations", "skip_jax_distributed_system", "subslice_shape", "upload_all_profiler_results",
    "skip_first_n_steps_for_profiler", "hide_profiler_step_metric", "enable_profiler", "enable_tpu_profiling_options", "enable_jax_profiler", "enable_goodput_recording", "monitor_goodput",
    "enable_pathways_goodput", "monitor_step_time_deviation", "step_deviation_interval_seconds", "enable_gcp_goodput_metrics", "enable_gcp_step_deviation_metrics",
    "report_heartbeat_metric_for_gcp_monitoring", "heartbeat_reporting_interval_in_seconds", "report_performance_metric_for_gcp_monitoring", "enable_tensorboard", "use_vertex_tensorboard",
    "prometheus_port", "record_internal_nn_metrics", "enable_nnx", "pure_nnx", "pure_nnx_decoder", "shardy", "shard_mode", "remove_size_one_mesh_axis_from_type", "check_vma",
    // The batch's contents and the course of the training.
    "reuse_example_batch", "dataset_type", "dataset_path", "dataset_name", "train_split", "train_data_columns", "train_image_column", "num_epoch", "packing", "max_segments_per_seq",
    "generate_padding_batch_train", "generate_padding_batch_eval", "expansion_factor_real_data", "default_prompt", "max_corpus_chars", "use_chat_template", "chat_template", "chat_template_path", "add_bos",
    "add_eos", "use_truncation", "colocated_python_data_input", "per_device_batch_size_start", "per_device_batch_size_increment", "global_rampup_samples", "use_sft",
    "sft_train_on_completion_only", "steps", "target_eval_loss", "abort_on_nan_loss", "abort_on_inf_loss", "learning_rate", "lr_schedule_type", "learning_rate_final_fraction",
    "warmup_steps_fraction", "cosine_learning_rate_final_fraction", "learning_rate_schedule_steps", "enable_dropout", "enable_data_shuffling", "data_shuffle_seed", "init_weights_seed",
    "gradient_clipping_threshold", "skip_step_on_spikes", "skip_step_interval", "skip_step_scaling_factor", "dense_init_scale", "normalization_layer_epsilon", "normalize_embedding_logits",
    "mtp_loss_scaling_factor", "mtp_eval_target_module", "custom_mesh_and_rule_for_eval",
    // Kernels and layouts whose work is the same; products of queries, keys, values and of gate and up are one each here in any case.
    "fused_qkv", "fused_mlp", "param_scan_axis", "reshape_q", "compute_axis_order", "use_tokamax_splash", "use_jax_splash", "use_splash_scheduler", "local_use_splash_scheduler",
    "force_q_layout", "ring_scan_unroll", "use_max_logit_estimate", "dq_reduction_steps", "enable_padding_causal_mask", "allow_split_physical_axes", "optimize_mesh_for_tpu_v6e",
    "sharding_tolerance", "dense_fsdp_use_two_stage_all_gather", "experimental_sa_quant_q_fp8", "experimental_sa_quant_k_fp8", "v_norm_with_scale", "qk_norm_with_scale",
    "mlp_activations_limit", "context_parallel_load_balance", "context_parallel_strategy", "context_parallel_reorder_strategy", "context_sharding", "ulysses_context_sharding",
    // Positions and angles.
    "local_rope_max_timescale", "global_rope_max_timescale", "global_rope_proportion", "local_rope_proportion", "max_position_embeddings", "original_max_position_embeddings", "beta_fast",
    "beta_slow", "mscale", "nope_layer_interval", "temperature_tuning", "partial_rotary_factor", "use_mrope", "mrope_section", "position_id_per_seconds",
    // Read only by features that fixed keys keep off: quantisation, experts, MLA and other attentions, rematerialisation of these, encoders.
    "constant_bound_config", "replicate_quant_scale", "quant_cfg_path", "quantize_kvcache", "save_quantized_params_path", "use_qwix_quantization", "use_manual_quantization",
    "quantization_local_shard_count", "weight_sparsity_update_step", "weight_sparsity_start_step", "megablox",
    "num_moe_token_chunks", "num_moe_emb_chunks", "load_balance_loss_weight", "use_random_routing", "use_custom_sort_vjp", "use_ragged_sort",
    "use_gather_mosaic_kernel", "merge_gating_gmm", "use_tokamax_gmm", "use_gmm_v2", "norm_topk_prob", "shard_exp_on_fsdp", "n_routing_groups",
    "first_num_hash_layers", "topk_routing_group", "expert_shard_attention_option", "float32_weight_sum", "float32_gate_logits", "batch_split_factor",
    "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "use_sliced_mla_proj", "o_lora_rank", "o_groups", "compress_ratios", "qk_clip_threshold",
    "causal_block_size", "use_ragged_attention", "kv_proj", "query_wa_proj", "kv_wa_proj", "attention_out", "engram", "vocab_size_per_layer_input", "use_qk_norm_in_gdn",
    "sinkhorn_iterations", "enable_mhc_lite", "use_mhc_pallas_kernel", "num_diloco_fragments", "num_communication_overlapping_steps", "communication_overlapping_alpha", "vision_encoder_block", "freeze_vision_encoder_params", "freeze_audio_encoder_params", "dtype_mm", "image_path", "video_path", "audio_path", "image_placeholder",
    "video_placeholder", "audio_placeholder", "use_audio_in_video", "video_max_grid_t", "video_max_grid_h", "video_max_grid_w", "max_num_images_per_example", "vision_output_length",
    // Inference.
    "max_prefill_predict_length", "prompt", "load_from_prefill_dir", "prefill_cache_dir", "autoregressive_decode_assert", "prefill_slice", "generate_slice", "enable_model_warmup",
    "enable_llm_inference_pool", "multi_sampling", "return_log_prob", "stack_prefill_result_cache", "prefill_cache_axis_order", "ar_cache_axis_order", "prefill_chunk_size",
    "use_chunked_prefill", "enable_prefix_caching"};

template <class Keys>
bool contains(const Keys& keys, std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

bool is_harmless(std::string_view key) {
  return contains(harmless_keys, key) || std::any_of(harmless_beginnings.begin(), harmless_beginnings.end(), [&](std::string_view begin) { return key.starts_with(begin); }) ||
         std::any_of(harmless_endings.begin(), harmless_endings.end(), [&](std::string_view end) { return key.ends_with(end); });
}

const FixedKey* find_fixed(std::string_view key) {
  const auto found = std::find_if(fixed_keys().begin(), fixed_keys().end(), [&](const FixedKey& fixed) { return fixed.key == key; });
  return found == fixed_keys().end() ? nullptr : &*found;
}

const Default* find_read(std::string_view key) {
  const auto found = std::find_if(read_keys.begin(), read_keys.end(), [&](const Default& entry) { return entry.first == key; });
  return found == read_keys.end() ? nullptr : &*found;
}

}  // namespace

KeyUse use_of_key(std::string_view key) {
  if (find_read(key) != nullptr) return KeyUse::read;
  if (find_fixed(key) != nullptr) return KeyUse::fixed;
  if (contains(sharding_rule_keys, key)) return KeyUse::sharding_rules;
  return is_harmless(key) ? KeyUse::harmless : KeyUse::unknown;
}

std::string_view default_of_key(std::string_view key) {
  const Default* found = find_read(key);
  PODSIM_ASSERT(found != nullptr);
  return found->second;
}

const FixedKey& fixed_key(std::string_view key) {
  const FixedKey* found = find_fixed(key);
  PODSIM_ASSERT(found != nullptr);
  return *found;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const Default& entry : read_keys) names.emplace_back(entry.first);
  for (const FixedKey& entry : fixed_keys()) names.emplace_back(entry.key);
  for (const std::string_view key : harmless_keys) names.emplace_back(key);
  return names;
}

}  // namespace podsim
