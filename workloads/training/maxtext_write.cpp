#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "workloads/training/maxtext.hpp"
#include "workloads/training/maxtext_remat.hpp"

namespace podsim {

namespace {

std::string_view maxtext_name(DType dtype) { return dtype == DType::f32 ? "float32" : "bfloat16"; }
std::string_view flag_text(bool flag) { return flag ? "true" : "false"; }

/// What MaxText has no key for; empty if nothing.
std::string inexpressible(const TrainingStep& step) {
  const TrainingModel& model = step.model;
  if (model.parallel) return "parallel layers";
  if (!model.causal) return "attention that is not causal";
  if (model.vocabulary == 0) return "a model without vocabulary";
  if (model.experts > 0 && model.biases) return "experts with biases";
  if (model.norm != (model.biases ? Norm::layer : Norm::rms)) return model.biases ? "biases without layer norms" : "norms but RMS norms without biases";
  if (model.master_weights) return "a float32 copy of the weights";
  if (model.moments != model.weights) return "moments of another dtype than the weights";
  if (step.mesh.row > 1) return "an axis row";
  if (step.mesh.stage > 1 && step.pipeline != "gpipe") return "the pipeline " + quoted(step.pipeline);
  if (step.mesh.stage == 1 && !step.pipeline.empty()) return "a pipeline of one stage";
  if (step.mesh.stage == 1 && step.virtual_stages != 1) return "virtual stages of one stage";
  if (step.model.layers % (step.mesh.stage * step.virtual_stages) != 0) return "stages that do not divide the layers";
  if (step.pad) return "padding";
  if (step.shard_optimizer_over_data && step.mesh.slice > 1) return "an optimizer that is divided over data but not over slices";
  if (step.remat.kind == Remat::Kind::layer) return "computing the whole layer again";
  const auto& tensors = remat_tensors();
  for (const SavedStage& saved : step.remat.saved)
    if (std::none_of(tensors.begin(), tensors.end(), [&](const RematTensors& entry) { return entry.stage == saved.name; }))
      return "a saved output of " + saved.name;
  return "";
}

bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace

Expected<std::string> to_maxtext(const TrainingStep& step) {
  if (const std::string what = inexpressible(step); !what.empty()) return Diagnostic{{}, "MaxText has no key for " + what};
  const TrainingModel& model = step.model;
  const TrainingMesh& mesh = step.mesh;
  std::vector<std::string> words;
  const auto add = [&](std::string_view key, const auto& value) { words.push_back(fmt::format("{}={}", key, value)); };
  if (is_plain(model.name) && model.name != "maxtext") add("run_name", model.name);
  add("base_emb_dim", model.width);
  add("base_num_query_heads", model.heads);
  add("base_num_kv_heads", model.kv_heads);
  add("head_dim", model.head_dim);
  add("base_mlp_dim", model.mlp);
  add("base_num_decoder_layers", model.layers);
  add("global_parameter_scale", 1);
  add("mlp_activations", model.gated ? "[silu,linear]" : "[gelu]");
  add("decoder_block", model.biases ? "gpt3" : model.experts > 0 ? "mixtral" : "llama2");
  if (model.experts > 0) add("num_experts", model.experts), add("num_experts_per_tok", model.experts_per_token), add("base_moe_mlp_dim", model.mlp);
  add("vocab_size", model.vocabulary);
  add("logits_via_embedding", flag_text(model.tied));
  add("trainable_position_size", model.positions > 0 ? model.positions : -1);
  add("max_target_length", model.sequence);
  add("dtype", maxtext_name(model.activations));
  add("weight_dtype", maxtext_name(model.weights));
  add("grad_dtype", maxtext_name(model.gradients));
  add("mu_dtype", maxtext_name(model.moments));
  add("opt_type", name_of(step.optimizer));
  add("shard_optimizer_over_data", flag_text(step.shard_optimizer_over_data));
  const std::int64_t accumulated = mesh.stage == 1 ? step.microbatches : 1;
  // The shortest text that reads back as the same double; the product with the devices is rounded to whole sequences.
  add("per_device_batch_size", static_cast<double>(step.batch) / static_cast<double>(mesh.devices()) / static_cast<double>(accumulated));
  add("gradient_accumulation_steps", accumulated);
  add("dcn_data_parallelism", mesh.slice);
  add("ici_pipeline_parallelism", mesh.stage);
  add("ici_data_parallelism", mesh.data);
  add("ici_fsdp_parallelism", mesh.fsdp);
  if (mesh.expert > 1) add("ici_expert_parallelism", mesh.expert);
  add("ici_tensor_parallelism", mesh.col);
  if (mesh.stage > 1) {
    add("num_pipeline_microbatches", step.microbatches);
    add("num_layers_per_pipeline_stage", step.layers_per_stage());
  }
  if (const auto policy = policy_of(step.remat)) {
    add("remat_policy", *policy);
  } else {
    add("remat_policy", custom_policy);
    for (const SavedStage& saved : step.remat.saved)
      for (const RematTensors& tensors : remat_tensors())
        if (tensors.stage == saved.name)
          for (const std::string_view key : tensors.keys) add(key, saved.on_host ? "offload" : "device");
  }
  add("scan_layers", flag_text(step.scan));
  add("use_iota_embed", flag_text(step.embedding_by_product));
  add("num_vocab_tiling", step.loss_chunks);
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace podsim
