// A transformer block as data: its widths, and the stages that it computes one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

enum class Norm { none, rms, layer };

struct TransformerBlock {
  std::string name, description;
  std::int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ff = 0;
  bool gated = false, residuals = true, attention = true, causal = true;
  Norm norm = Norm::layer;
  std::int64_t sequence = 0, batch = 0;  // batch 0: as many sequences as devices
  std::int64_t layers = 1;               // blocks that a device holds
  DType dtype = DType::bf16;
  double optimizer_bytes = 12;  // per parameter, beside weight and gradient
  friend bool operator==(const TransformerBlock&, const TransformerBlock&) = default;
};

/// A textproto (transformer.proto). Errors: `file:line:column` of what is wrong: unknown fields, extents that are not positive, heads that kv_heads
/// do not divide.
Expected<TransformerBlock> read_transformer_block(std::string_view text, const std::string& file);

/// "gpt3-block", "llama3-70b-block"; with "-mlp" in place of "-block" the MLP alone; otherwise the path of a textproto. Errors: no such block (names
/// the near ones); what read_transformer_block() finds.
Expected<TransformerBlock> find_transformer_block(const std::string& name);
std::vector<std::string> shipped_transformer_blocks();

/// One step of a workload. Products are Y[tokens, outputs] = X[tokens, inputs].W[inputs, outputs]; everything else keeps the layout of what it reads.
///
///   block   norm1, in_proj, attention, out_proj, residual1, norm2, ff1, activation, ff2, residual2
struct Stage {
  enum class Kind { product, norm, attention, activation, residual };
  Kind kind = Kind::product;
  std::string name;
  std::int64_t tokens = 0, inputs = 0, outputs = 0;  // features a token has before and after; of grouped-query attention without copies
  friend bool operator==(const Stage&, const Stage&) = default;
};

inline constexpr std::string_view qkv_stage = "in_proj";  // the product that writes queries, keys and values

/// What is to be simulated: the stages of a block, all of them or only its products or only the rest; or products that have nothing to do with each
/// other.
enum class Only { everything, gemm, other };
std::optional<Only> only_named(std::string_view name);
struct Workload {
  std::string name;
  std::optional<TransformerBlock> block;  // batch is set
  std::vector<Stage> stages;
  DType dtype = DType::bf16;
  Only only = Only::everything;

  /// Whether a stage reads what the one before wrote.
  [[nodiscard]] bool data_flows() const { return block && only == Only::everything; }
  /// Whether it has to lie where the one before left it, be it the result or what becomes of it in between.
  [[nodiscard]] bool layouts_meet() const { return block.has_value(); }
};
/// Errors: more tokens than 2^40.
Expected<Workload> workload_of(const TransformerBlock& block, int devices, Only only = Only::everything);
/// Y[m,n] = X[m,k].W[k,n], named gemm1, gemm2, ...
struct NamedProduct {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::bf16;
};
/// Errors: none, or of different dtypes.
Expected<Workload> workload_of(const std::vector<NamedProduct>& products);

/// Keys and values of a group of heads are on one device. On P devices along the features, groups = kv_heads if P divides them; if P is a multiple of
/// kv_heads, P: keys and values are computed on several devices each, as Megatron-LM does with few kv heads. nullopt: heads cannot be split so.
std::optional<std::int64_t> attention_groups(const TransformerBlock& block, std::int64_t feature_devices);
/// Features of queries, keys and values of so many groups.
std::int64_t qkv_features(const TransformerBlock& block, std::int64_t groups);

/// Parameters of the products, without copies of keys and values; norms have none here.
std::int64_t parameters_of(const Workload& workload);

}  // namespace podsim
