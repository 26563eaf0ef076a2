#include "workloads/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/units.hpp"
#include "workloads/embedded_blocks.hpp"
#include "workloads/transformer_message.hpp"

namespace podsim {

namespace {

constexpr FileFormat block_format{"a transformer block", 0, 1};
constexpr std::int64_t largest_extent = std::int64_t{1} << 30;

static_assert(static_cast<int>(Norm::none) == proto::TransformerBlock::none && static_cast<int>(Norm::rms) == proto::TransformerBlock::rms &&
              static_cast<int>(Norm::layer) == proto::TransformerBlock::layer);

}  // namespace

TransformerBlock read_block(const proto::TransformerBlock& message, MessageFile& file, const Place& root) {
  const auto extent = [&](const char* field, std::int64_t value) -> std::int64_t {
    if (value >= 1 && value <= largest_extent) return value;
    file.problem(root.at(field), fmt::format("expected a whole number from 1 to {}, found {}", largest_extent, value));
    return 1;
  };
  TransformerBlock block;
  block.name = message.name();
  if (block.name.empty()) file.problem(root.at("name"), "expected a name, found an empty text");
  block.description = message.description();
  block.heads = extent("heads", message.heads());
  block.kv_heads = message.has_kv_heads() ? extent("kv_heads", message.kv_heads()) : block.heads;
  if (block.heads % block.kv_heads != 0)
    file.problem(root.at("kv_heads"), fmt::format("must divide the {} heads, found {}", block.heads, block.kv_heads));
  block.head_dim = extent("head_dim", message.head_dim());
  block.hidden = message.has_hidden() ? extent("hidden", message.hidden()) : block.heads * block.head_dim;
  block.ff = extent("ff", message.ff());
  block.gated = message.gated();
  block.norm = static_cast<Norm>(message.norm());
  block.residuals = message.residuals();
  block.attention = message.attention();
  block.causal = message.causal();
  block.sequence = extent("sequence", message.sequence());
  block.batch = message.has_batch() ? extent("batch", message.batch()) : 0;
  block.layers = extent("layers", message.layers());
  const auto dtype = dtype_named(message.dtype());
  if (dtype && is_real(*dtype))
    block.dtype = *dtype;
  else
    file.problem(root.at("dtype"), "expected bf16 or f32, found " + quoted(message.dtype()));
  block.optimizer_bytes = message.optimizer_bytes_per_parameter();
  if (!(block.optimizer_bytes >= 0 && block.optimizer_bytes <= 1024))
    file.problem(root.at("optimizer_bytes_per_parameter"), fmt::format("expected 0 to 1024, found {}", block.optimizer_bytes));
  return block;
}

void write_block(const TransformerBlock& block, proto::TransformerBlock& message) {
  message.set_format_version(block_format.version);
  message.set_name(block.name);
  message.set_heads(block.heads);
  if (block.kv_heads != block.heads) message.set_kv_heads(block.kv_heads);
  message.set_head_dim(block.head_dim);
  if (block.hidden != block.heads * block.head_dim) message.set_hidden(block.hidden);
  message.set_ff(block.ff);
  if (block.gated) message.set_gated(true);
  message.set_norm(static_cast<proto::TransformerBlock::Norm>(block.norm));
  if (!block.residuals) message.set_residuals(false);
  if (!block.attention) message.set_attention(false);
  if (!block.causal) message.set_causal(false);
  message.set_sequence(block.sequence);
  if (block.batch != 0) message.set_batch(block.batch);
  if (block.layers != 1) message.set_layers(block.layers);
  if (block.dtype != DType::bf16) message.set_dtype(std::string{name_of(block.dtype)});
  message.set_optimizer_bytes_per_parameter(block.optimizer_bytes);
}

Expected<TransformerBlock> read_transformer_block(std::string_view text, const std::string& file) {
  proto::TransformerBlock message;
  MessageFile parsed{block_format, file, message};
  if (!parsed.parse(text)) return parsed.error();
  const TransformerBlock block = read_block(message, parsed, {});
  if (!parsed.ok()) return parsed.error();
  return block;
}

std::vector<std::string> shipped_transformer_blocks() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_blocks()) names.emplace_back(file.name);
  std::sort(names.begin(), names.end());
  return names;
}

Expected<TransformerBlock> find_transformer_block(const std::string& name) {
  constexpr std::string_view whole = "-block", mlp = "-mlp";
  const bool mlp_alone = std::string_view{name}.ends_with(mlp);
  const std::string shipped = mlp_alone ? name.substr(0, name.size() - mlp.size()) + std::string{whole} : name;
  for (const EmbeddedFile& file : embedded_blocks()) {
    if (file.name != shipped) continue;
    auto block = read_transformer_block(file.text, "workloads/blocks/" + shipped + ".textproto");
    if (block && mlp_alone) block->attention = false, block->name = name;
    return block;
  }
  std::error_code none;
  if (name.find('/') != std::string::npos || name.ends_with(".textproto") || std::filesystem::is_regular_file(name, none)) {
    const auto text = read_file(name, config_limit);
    if (!text) return text.error();
    return read_transformer_block(*text, name);
  }
  const std::vector<std::string> names = shipped_transformer_blocks();
  return Diagnostic{{},
                    "there is no workload " + quoted(name) + did_you_mean(name, names) +
                        fmt::format("; shipped are {} (-mlp in place of -block: the MLP alone), or give a textproto file", fmt::join(names, ", "))};
}

std::optional<std::int64_t> attention_groups(const TransformerBlock& block, std::int64_t feature_devices) {
  if (block.kv_heads % feature_devices == 0) return block.kv_heads;
  if (feature_devices % block.kv_heads == 0 && block.heads % feature_devices == 0) return feature_devices;
  return std::nullopt;
}

std::int64_t qkv_features(const TransformerBlock& block, std::int64_t groups) { return (block.heads + 2 * groups) * block.head_dim; }

std::optional<Only> only_named(std::string_view name) {
  if (name == "gemm") return Only::gemm;
  if (name == "other") return Only::other;
  return std::nullopt;
}

Expected<Workload> workload_of(const std::vector<NamedProduct>& products) {
  if (products.empty()) return Diagnostic{{}, "a workload needs at least one product"};
  Workload workload{"gemms", std::nullopt, {}, products.front().dtype, Only::everything};
  for (const NamedProduct& product : products) {
    if (product.dtype != workload.dtype) return Diagnostic{{}, fmt::format("the products of a workload have one dtype, found {} and {}", name_of(workload.dtype), name_of(product.dtype))};
    workload.stages.push_back({Stage::Kind::product, fmt::format("gemm{}", workload.stages.size() + 1), product.m, product.k, product.n});
  }
  return workload;
}

Expected<Workload> workload_of(const TransformerBlock& given, int devices, Only only) {
  TransformerBlock block = given;
  if (block.batch == 0) block.batch = devices;
  constexpr std::int64_t most_tokens = std::int64_t{1} << 40;
  if (block.batch > most_tokens / block.sequence)
    return Diagnostic{{}, fmt::format("{} sequences of {} are more than 2^40 tokens", block.batch, block.sequence)};
  Workload workload{block.name, block, {}, block.dtype, only};
  const std::int64_t tokens = block.batch * block.sequence, hidden = block.hidden, attended = block.heads * block.head_dim;
  using enum Stage::Kind;
  std::int64_t copies = 1, experts = 1;  // of a token, and weights of a product: within the experts
  const auto add = [&](Stage::Kind kind, std::string name, std::int64_t inputs, std::int64_t outputs) {
    if (only != Only::everything && (kind == Stage::Kind::product) != (only == Only::gemm)) return;
    workload.stages.push_back({kind, std::move(name), copies * tokens, inputs, outputs, kind == product ? experts : 1});
  };
  if (block.attention) {
    const std::int64_t qkv = qkv_features(block, block.kv_heads);
    if (block.norm != Norm::none) add(norm, "norm1", hidden, hidden);
    add(product, std::string{qkv_stage}, hidden, qkv);
    add(attention, "attention", qkv, attended);
    add(product, "out_proj", attended, hidden);
    if (block.residuals) add(residual, "residual1", hidden, hidden);
  }
  const std::int64_t widened = block.gated ? 2 * block.ff : block.ff;
  if (block.norm != Norm::none) add(norm, "norm2", hidden, hidden);
  if (block.experts > 0) {
    add(product, std::string{router_stage}, hidden, block.experts);
    copies = block.experts_per_token, experts = block.experts;
    add(dispatch, "dispatch", hidden, hidden);
  }
  add(product, "ff1", hidden, widened);
  add(activation, "activation", widened, block.ff);
  add(product, "ff2", block.ff, hidden);
  copies = experts = 1;
  if (block.experts > 0) add(combine, "combine", hidden, hidden);
  if (block.residuals) add(residual, "residual2", hidden, hidden);
  return workload;
}

std::int64_t parameters_of(const Workload& workload) {
  std::int64_t count = 0;
  for (const Stage& stage : workload.stages)
    if (stage.kind == Stage::Kind::product) count += stage.experts * stage.inputs * stage.outputs;
  return count;
}

}  // namespace podsim
