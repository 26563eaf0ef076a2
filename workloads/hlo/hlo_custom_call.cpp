#include "workloads/hlo/hlo_custom_call.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <string_view>
#include <vector>

namespace podsim {

namespace {

constexpr std::array<std::string_view, 13> free_targets{
    "AllocateBuffer", "AssumeGatherIndicesInBound", "ConcatBitcast", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
    "annotate_device_placement", "X64Combine", "X64SplitHigh", "X64SplitLow", "PrepareAsyncCallStart", "PrepareAsyncCallDone"};

/// The number behind `mask_type =` or `"mask_type":` in a backend_config, which is no JSON where MLIR prints it.
bool says_causal(std::string_view config) {
  std::size_t at = config.find("mask_type");
  if (at == std::string_view::npos) return false;
  at = config.find_first_of("0123456789,}", at);
  return at != std::string_view::npos && config[at] >= '2' && config[at] <= '5';
}

std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product)) return std::numeric_limits<std::int64_t>::max() / 4;
  return product;
}

struct AttentionShapes {
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, key_dim = 1, value_dim = 1;
};

/// Of the first three floating-point operands of one rank, 3 or more: queries, keys and values. `heads_first`: [.., heads, sequence, dim], else
/// [.., sequence, heads, dim].
std::optional<AttentionShapes> attention_shapes(const HloComputation& computation, const HloInstruction& call, bool heads_first) {
  std::vector<const HloShape*> operands;
  for (const int number : call.operands) {
    if (number == HloInstruction::missing) continue;
    const HloShape& shape = *computation.instructions[static_cast<std::size_t>(number)].shape;
    if (is_float(shape.type) && shape.rank() >= 3 && (operands.empty() || shape.rank() == operands.front()->rank())) operands.push_back(&shape);
  }
  if (operands.size() < 3 || operands.front()->rank() > 5) return std::nullopt;
  const HloShape &q = *operands[0], &k = *operands[1], &v = *operands[2];
  const std::size_t rank = q.rank(), sequence = heads_first ? rank - 2 : rank - 3, head = heads_first ? rank - 3 : rank - 2;
  AttentionShapes shapes{1, q.dims[head], q.dims[sequence], k.dims[sequence], k.dims[rank - 1], v.dims[rank - 1]};
  for (std::size_t d = 0; d + 3 < rank; ++d) shapes.batch = saturating_product({shapes.batch, q.dims[d]});
  if (q.dims[rank - 1] != shapes.key_dim || v.dims[sequence] != shapes.keys) return std::nullopt;
  return shapes;
}

}  // namespace

HloCustomCall custom_call_of(const HloComputation& computation, const HloInstruction& call, const HloCustomCallCosts& given) {
  using Kind = HloCustomCall::Kind;
  const HloAttributes& attributes = *call.attributes;
  const std::string_view target = attributes.custom_call_target;
  if (const auto found = given.find(attributes.custom_call_target); found != given.end())
    return {Kind::given, found->second.flops, found->second.bytes};
  if (std::find(free_targets.begin(), free_targets.end(), target) != free_targets.end()) return {Kind::free};
  if (target == "MoveToHost") return {Kind::to_host};
  if (target == "MoveToDevice") return {Kind::to_device};

  const bool te_forward = target == "te_fused_attn_forward_ffi", te_backward = target == "te_fused_attn_backward_ffi";
  const auto says = [&](std::string_view word) { return call.name.find(word) != std::string::npos || call.op_name.find(word) != std::string::npos; };
  const bool splash = target == "tpu_custom_call" && says("splash_mha");
  if (!te_forward && !te_backward && !splash) return {};
  const auto shapes = attention_shapes(computation, call, splash);
  if (!shapes) return {};
  const std::int64_t d = shapes->key_dim, e = shapes->value_dim;
  const bool backward = te_backward || (splash && says("bwd"));
  std::int64_t dims = backward ? 3 * d + 2 * e : d + e;
  if (splash && says("dkv")) dims = 2 * d + 2 * e;
  if (splash && says("_dq")) dims = 2 * d + e;
  const std::int64_t flops = saturating_product({2, shapes->batch, shapes->heads, shapes->queries, shapes->keys, dims});
  return {Kind::attention, says_causal(attributes.backend_config) ? flops / 2 : flops};
}

}  // namespace podsim
