// A transformer block as data: its extents, and its stages in order.
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
  std::int64_t experts = 0, experts_per_token = 0;  // MLPs, of which each token takes some; 0: one MLP for all
  std::int64_t routed_apart = 1;                    // tokens are in so many equal blocks, each of which gives every expert as many (LocalKind::expert_gates)
  bool gated = false, residuals = true, attention = true, causal = true;
  Norm norm = Norm::layer;
  std::int64_t sequence = 0, batch = 0;  // batch 0: as many sequences as devices
  std::int64_t layers = 1;               // blocks per device
  DType dtype = DType::bf16;
  double optimizer_bytes = 12;  // per parameter, besides weight and gradient
  friend bool operator==(const TransformerBlock&, const TransformerBlock&) = default;
};

/// Reads a textproto (transformer.proto). Errors, with `file:line:column`: unknown fields, extents that are not positive, heads that are not a
/// multiple of kv_heads.
Expected<TransformerBlock> read_transformer_block(std::string_view text, const std::string& file);

/// "gpt3-block", "llama3-70b-block"; with "-mlp" in place of "-block" only the MLP; any other name is the path of a textproto. Errors: no such block
/// (the message names similar ones); those of read_transformer_block().
Expected<TransformerBlock> find_transformer_block(const std::string& name);
std::vector<std::string> shipped_transformer_blocks();

/// A stage of a workload. Products are Y[tokens, outputs] = X[tokens, inputs].W[inputs, outputs]; all other stages keep the layout of their input.
///
///   block          norm1, in_proj, attention, out_proj, residual1, norm2, ff1, activation, ff2, residual2
///   with experts   ..., norm2, router, dispatch, ff1, activation, ff2, combine, residual2
///
/// router gives a logit for each expert. dispatch copies norm2's token to each of its experts, so that the stages up to combine have experts_per_token times
/// as many tokens. combine adds up a token's copies, weighted by the softmax of its logits.
struct Stage {
  enum class Kind { product, norm, attention, activation, residual, dispatch, combine };
  Kind kind = Kind::product;
  std::string name;
  std::int64_t tokens = 0, inputs = 0, outputs = 0;  // features per token before and after; without copies of keys and values. combine's tokens are those after it
  std::int64_t experts = 1;                          // product: so many weights, each for its part of the tokens
  friend bool operator==(const Stage&, const Stage&) = default;
};

inline constexpr std::string_view qkv_stage = "in_proj";    // the product that writes queries, keys and values
inline constexpr std::string_view router_stage = "router";  // the product that gives a logit for each expert
/// Whether a product reads the features of the model: in_proj, router, ff1. The others of a block write them.
inline bool reads_model_width(std::string_view stage) { return stage == qkv_stage || stage == router_stage || stage == "ff1"; }

/// The workload to simulate: all stages of a block, only its products, or only the other stages; or independent products.
enum class Only { everything, gemm, other };
std::optional<Only> only_named(std::string_view name);
struct Workload {
  std::string name;
  std::optional<TransformerBlock> block;  // with its batch set
  std::vector<Stage> stages;
  DType dtype = DType::bf16;
  Only only = Only::everything;

  /// Whether each stage reads the output of the one before.
  [[nodiscard]] bool data_flows() const { return block && only == Only::everything; }
  /// Whether a stage's input must have the output layout of the stage before, even if stages between them are left out.
  [[nodiscard]] bool layouts_meet() const { return block.has_value(); }
};
/// Errors: more tokens than 2^40.
Expected<Workload> workload_of(const TransformerBlock& block, int devices, Only only = Only::everything);
/// Y[m,n] = X[m,k].W[k,n], named gemm1, gemm2, ...
struct NamedProduct {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::bf16;
};
/// Errors: no product, or products of different dtypes.
Expected<Workload> workload_of(const std::vector<NamedProduct>& products);

/// The number of groups in which attention is split. Keys and values of a group of heads are on one device. On P devices along the features: kv_heads
/// if it is a multiple of P; P if P is a multiple of kv_heads (several devices then compute the same keys and values, as in Megatron-LM with few kv
/// heads). nullopt: the heads cannot be split so.
std::optional<std::int64_t> attention_groups(const TransformerBlock& block, std::int64_t feature_devices);
/// The features of queries, keys and values together, for this number of groups.
std::int64_t qkv_features(const TransformerBlock& block, std::int64_t groups);

/// The parameters of all products, without copies of keys and values. Norms have no parameters here.
std::int64_t parameters_of(const Workload& workload);

}  // namespace podsim
