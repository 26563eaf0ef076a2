// What is known of custom-calls: the text of a module does not tell what they cost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// The cost of a target as its user tells it.
struct HloCustomCallCost {
  std::int64_t flops = 0;
  std::optional<Bytes> bytes{};  // of HBM traffic; left out: operands and results
};
using HloCustomCallCosts = std::map<std::string, HloCustomCallCost>;

struct HloCustomCall {
  /// free: AssumeGatherIndicesInBound, ConcatBitcast and those that only mark a place. to_host, to_device: MoveToHost, MoveToDevice. attention: FLOPs
  /// by its shapes. given: as its user tells. opaque: nothing is known but its operands and results.
  enum class Kind { free, to_host, to_device, attention, given, opaque };
  Kind kind = Kind::opaque;
  std::int64_t flops = 0;        // of attention and given
  std::optional<Bytes> bytes{};  // of given, if told
};

/// Attention is te_fused_attn_forward_ffi and te_fused_attn_backward_ffi with queries, keys and values [batch, sequence, heads, dim], and a
/// tpu_custom_call whose name or op_name says splash_mha with [heads, sequence, dim] in front of any batch. With b batches, h heads of queries, q and
/// s sequence lengths and dims d of keys and e of values the forward pass is 2 b h q s (d + e) FLOPs, the backward pass 2 b h q s (3 d + 2 e); splash
/// attention's two halves of it are 2 b h q s (2 d + 2 e) for keys and values and 2 b h q s (2 d + e) for queries. Half of that where mask_type says
/// causal. A given cost is taken before all others. Source: FlashAttention-2, section 2.3; TransformerEngine's NVTE_Mask_Type (2 to 5 are causal).
HloCustomCall custom_call_of(const HloComputation& computation, const HloInstruction& call, const HloCustomCallCosts& given = {});

}  // namespace podsim
