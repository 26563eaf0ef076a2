#include "workloads/training/maxtext_models.hpp"

#include <algorithm>
#include <array>

#include "sim/base/invariant.hpp"
#include "workloads/training/model.hpp"

namespace podsim {

namespace {

using KeyValue = std::pair<std::string_view, std::string_view>;

struct NamedModel {
  std::string_view name, shipped, decoder_block;
  std::vector<KeyValue> others;  // what MaxText's file has otherwise than the shipped model
};

// Names of AI-Hypercomputer/maxtext, src/maxtext/configs/models at commit e591f30c (2026-08-22). Its gpt3-175b takes opt_type adam_pax, which does the work of adamw.
const std::vector<NamedModel>& named_models() {
  static const std::vector<NamedModel> models{
      {"llama2-7b", "llama2-7b", "llama2", {}},
      {"llama2-13b", "llama2-13b", "llama2", {}},
      {"llama2-70b", "llama2-70b", "llama2", {}},
      {"llama3-8b", "llama3-8b", "llama2", {}},
      {"llama3-70b", "llama3-70b", "llama2", {}},
      {"llama3-405b", "llama3-405b", "llama2", {}},
      {"llama3.1-8b", "llama3-8b", "llama2", {}},
      {"llama3.1-70b", "llama3-70b", "llama2", {}},
      {"llama3.1-405b", "llama3-405b", "llama2", {}},
      {"llama3.3-70b", "llama3-70b", "llama2", {}},
      {"mistral-7b", "mistral-7b", "mistral", {}},
      {"gemma-2b", "gemma-2b", "gemma", {{"vocab_size", "256128"}, {"mlp_activations", "[gelu, linear]"}}},
      {"gemma-7b", "gemma-7b", "gemma", {{"vocab_size", "256128"}, {"mlp_activations", "[gelu, linear]"}}},
      {"qwen3-0.6b", "qwen3-0.6b", "qwen3", {}},
      {"qwen3-1.7b", "qwen3-1.7b", "qwen3", {}},
      {"qwen3-1.7b-base", "qwen3-1.7b", "qwen3", {}},
      {"qwen3-4b", "qwen3-4b", "qwen3", {}},
      {"qwen3-4b-base", "qwen3-4b", "qwen3", {}},
      {"qwen3-4b-thinking-2507", "qwen3-4b", "qwen3", {}},
      {"qwen3-8b", "qwen3-8b", "qwen3", {}},
      {"qwen3-8b-base", "qwen3-8b", "qwen3", {}},
      {"qwen3-14b", "qwen3-14b", "qwen3", {}},
      {"qwen3-14b-base", "qwen3-14b", "qwen3", {}},
      {"qwen3-32b", "qwen3-32b", "qwen3", {}},
      {"mixtral-8x7b", "mixtral-8x7b", "mixtral", {}},
      {"mixtral-8x22b", "mixtral-8x22b", "mixtral", {}},
      {"qwen3-30b-a3b", "qwen3-30b-a3b", "qwen3_moe", {}},
      {"qwen3-30b-a3b-base", "qwen3-30b-a3b", "qwen3_moe", {}},
      {"qwen3-235b-a22b", "qwen3-235b-a22b", "qwen3_moe", {}},
      {"gpt3-175b", "gpt3-175b", "gpt3", {{"vocab_size", "50304"}, {"trainable_position_size", "16384"}, {"use_iota_embed", "true"}}},
  };
  return models;
}

}  // namespace

std::optional<MaxTextModel> maxtext_model(std::string_view given) {
  constexpr std::string_view instruct = "-Instruct";
  std::string name{given};
  for (std::size_t at = name.find(instruct); at != std::string::npos; at = name.find(instruct)) name.erase(at, instruct.size());
  const auto& models = named_models();
  const auto found = std::find_if(models.begin(), models.end(), [&](const NamedModel& entry) { return entry.name == name; });
  if (found == models.end()) return std::nullopt;
  const auto model = find_training_model(std::string{found->shipped});
  PODSIM_ASSERT(model);
  MaxTextModel result{model->description, {}};
  const auto add = [&](std::string_view key, std::string value) { result.values.emplace_back(key, std::move(value)); };
  add("base_emb_dim", std::to_string(model->width));
  add("base_num_query_heads", std::to_string(model->heads));
  add("base_num_kv_heads", std::to_string(model->kv_heads));
  add("head_dim", std::to_string(model->head_dim));
  add("base_mlp_dim", std::to_string(model->mlp));
  add("base_num_decoder_layers", std::to_string(model->layers));
  if (model->experts > 0) {
    add("num_experts", std::to_string(model->experts));
    add("num_experts_per_tok", std::to_string(model->experts_per_token));
    add("base_moe_mlp_dim", std::to_string(model->mlp));
  }
  add("mlp_activations", model->gated ? "[silu, linear]" : "[gelu]");
  add("vocab_size", std::to_string(model->vocabulary));
  add("logits_via_embedding", model->tied ? "true" : "false");
  add("decoder_block", std::string{found->decoder_block});
  for (const auto& [key, value] : found->others) {
    const auto same = std::find_if(result.values.begin(), result.values.end(), [&, other = key](const auto& entry) { return entry.first == other; });
    if (same == result.values.end()) add(key, std::string{value});
    else same->second = value;
  }
  return result;
}

std::vector<std::string> maxtext_model_names() {
  std::vector<std::string> names;
  for (const NamedModel& entry : named_models()) names.emplace_back(entry.name);
  return names;
}

}  // namespace podsim
