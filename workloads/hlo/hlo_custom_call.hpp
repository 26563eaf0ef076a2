// What is known of custom-calls: of most the text of a module does not tell what they cost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "workloads/hlo/gpu_sorts.hpp"
#include "workloads/hlo/hlo_evidence.hpp"
#include "workloads/hlo/hlo_flops.hpp"
#include "workloads/hlo/hlo_module.hpp"
#include "workloads/hlo/hlo_product_rate.hpp"

namespace podsim {

/// The cost of a target as its user tells it.
struct HloCustomCallCost {
  std::int64_t flops = 0;
  std::optional<Bytes> bytes{};  // of HBM traffic; left out: operands and results
};
/// By custom_call_name() or by target; the name comes first.
using HloCustomCallCosts = std::map<std::string, HloCustomCallCost>;

/// What a custom-call is known by: its target, of a kernel of Pallas or Triton the kernel's name, where the module tells it.
std::string custom_call_name(const HloInstruction& call);

struct HloCustomCall {
  /// free: what only marks a place, begins or ends a collective beside it, or joins buffers. to_host, to_device: MoveToHost, MoveToDevice. counted: its cost is known or estimated. opaque: nothing is
  /// known but its operands and results.
  enum class Kind { free, to_host, to_device, counted, opaque };
  Kind kind = Kind::opaque;
  std::int64_t flops = 0;                // of the matrix unit
  std::int64_t vector = 0;               // operations of the vector unit
  HloProductRate rate{};                 // of `flops`
  std::optional<HloProduct> product{};   // if it is one product
  std::optional<Bytes> bytes{};          // across HBM; none: operands and results
  std::optional<RadixSort> sort{};       // cub's, whose kernels its bytes are of
  std::int64_t pivots = 0;               // of an LU factorisation: columns, each of which waits for the pivot before it; of a batch once
  HloEvidence evidence = HloEvidence::unknown;
  std::string why{};                     // why it is not known, or what an estimate rests on
};

/// The first of these that applies:
///   given                          by the user, --custom-call, by the kernel's name or by the target
///   cost_estimate                  of a Pallas kernel: FLOPs of the matrix unit, one vector operation for each transcendental; of bytes_accessed those in HBM
///   X64SplitHigh, -Low, X64Combine copies of half of the operand, and of both operands, where these or the result are in HBM
///   __cublas$gemm, $lt$matmul      also $f8: the product of the first two operands by dot_dimension_numbers
///   __cudnn$conv*                  the convolution of the forward pass: of BackwardInput and BackwardFilter the same pairs are multiplied
///   attention                      te_fused_attn_*_ffi and __cudnn$fmha* with queries, keys and values [batch, sequence, heads, dim] (as bmm1 of the
///                                  configuration says: [batch, heads, sequence, dim]); a tpu_custom_call whose name or op_name says splash_mha, splash_mqa or
///                                  flash_, [heads, sequence, dim] in front of any batch; mha_forward and mha_backward of Triton. With b batches, h heads of queries,
///                                  q and s sequence lengths and dims d of keys and e of values the forward pass is 2 b h q s (d + e) FLOPs, the backward pass
///                                  2 b h q s (3 d + 2 e); its two halves on a TPU are 2 b h q s (2 d + 2 e) for keys and values and 2 b h q s (2 d + e) for queries.
///                                  Half of that where mask_type says causal, w/s of it where a window of w keys is told. Splash attention skips blocks, as its
///                                  grid and kernel_metadata tell, and half of the pairs where it computes the mask from positions
///   paged attention                by name, on TPUs: as if all pages in the tables were full; bytes of these pages
///   te_gemm*, others of te_*       of TransformerEngine: 2 mnk of the operands 0 and 2; norms, activations, softmax, quantisation by their elements
///   gmm, tgmm                      by name, of megablox: 2 m k n of [m,k] and [groups,k,n], or of [k,m], [m,n] -> [groups,k,n]
///   factorisations                 Cholesky, LU, QR, eigenvalues, singular values, inverses of triangles by LAPACK's counts: column after column, so on the vector unit, and a
///                                  lower bound; of LU the machine may know what a column waits for (Chip::pivot_latency)
///   sorts of cub                   radix_sort_cost()
///   indices, TopK                  one operation for each element of the first operand
/// Sources: FlashAttention-2, section 2.3; TransformerEngine's NVTE_Mask_Type (2 to 5 are causal); LAPACK Working Note 41; Golub and Van Loan, sections 5.2,
/// 8.3 and 8.6.
HloCustomCall custom_call_of(const HloComputation& computation, const HloInstruction& call, const HloCustomCallCosts& given = {});

}  // namespace podsim
