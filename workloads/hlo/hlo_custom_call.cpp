#include "workloads/hlo/hlo_custom_call.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

namespace podsim {

namespace {

constexpr std::array<std::string_view, 15> free_targets{
    "AllocateBuffer", "AsyncCollectiveStart", "AsyncCollectiveDone", "AssumeGatherIndicesInBound", "ConcatBitcast", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
    "annotate_device_placement", "X64Combine", "X64SplitHigh", "X64SplitLow", "PrepareAsyncCallStart", "PrepareAsyncCallDone"};

/// 2 to 5, or a word with CAUSAL, behind `mask_type =` or `"mask_type":` in a backend_config, which is no JSON where MLIR prints it.
bool says_causal(std::string_view config) {
  const std::size_t at = config.find("mask_type");
  if (at == std::string_view::npos) return false;
  const std::size_t end = config.find_first_of("0123456789,}", at);
  if (config.substr(at, end - at).find("CAUSAL") != std::string_view::npos) return true;
  return end != std::string_view::npos && config[end] >= '2' && config[end] <= '5';
}

std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product)) return std::numeric_limits<std::int64_t>::max() / 4;
  return product;
}

/// nullptr: the call has no such operand.
const HloShape* operand_of(const HloComputation& computation, const HloInstruction& call, std::size_t position) {
  if (position >= call.operands.size() || call.operands[position] == HloInstruction::missing) return nullptr;
  return &*computation.instructions[static_cast<std::size_t>(call.operands[position])].shape;
}

std::vector<const HloShape*> float_operands(const HloComputation& computation, const HloInstruction& call) {
  std::vector<const HloShape*> found;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (const HloShape* const shape = operand_of(computation, call, i); shape != nullptr && shape->is_array() && is_float(shape->type)) found.push_back(shape);
  return found;
}

/// The result of a call, without its scratch memory.
const HloShape& result_of(const HloInstruction& call) {
  const HloShape& shape = *call.shape;
  return shape.is_tuple() && !shape.elements.empty() ? shape.elements.front() : shape;
}

struct AttentionShapes {
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, key_dim = 1, value_dim = 1;
};

/// Of the first three floating-point operands of one rank, 3 or more: queries, keys and values. `heads_first`: [.., heads, sequence, dim], else
/// [.., sequence, heads, dim].
std::optional<AttentionShapes> attention_shapes(const std::vector<const HloShape*>& floats, bool heads_first) {
  std::vector<const HloShape*> operands;
  for (const HloShape* const shape : floats)
    if (shape->rank() >= 3 && (operands.empty() || shape->rank() == operands.front()->rank())) operands.push_back(shape);
  if (operands.size() < 3 || operands.front()->rank() > 5) return std::nullopt;
  const HloShape &q = *operands[0], &k = *operands[1], &v = *operands[2];
  const std::size_t rank = q.rank(), sequence = heads_first ? rank - 2 : rank - 3, head = heads_first ? rank - 3 : rank - 2;
  AttentionShapes shapes{1, q.dims[head], q.dims[sequence], k.dims[sequence], k.dims[rank - 1], v.dims[rank - 1]};
  for (std::size_t d = 0; d + 3 < rank; ++d) shapes.batch = saturating_product({shapes.batch, q.dims[d]});
  if (q.dims[rank - 1] != shapes.key_dim || v.dims[sequence] != shapes.keys) return std::nullopt;
  return shapes;
}

/// What one call is tried against: empty where the rule says nothing of it.
struct OneCall {
  const HloComputation& computation;
  const HloInstruction& instruction;
  std::string_view target;
  std::vector<const HloShape*> floats;
  [[nodiscard]] bool says(std::string_view word) const { return instruction.name.find(word) != std::string::npos || instruction.op_name.find(word) != std::string::npos; }
  [[nodiscard]] bool is_kernel() const { return target == "tpu_custom_call"; }
  [[nodiscard]] HloProductRate rate() const {
    if (floats.empty()) return {};
    return product_rate_of(floats.front()->type, floats[floats.size() > 1 ? 1 : 0]->type, instruction.attributes->precision, instruction.attributes->algorithm);
  }
};
using Counted = std::optional<HloCustomCall>;

HloCustomCall counted(const OneCall& call, std::int64_t flops, HloEvidence evidence, std::string why) {
  HloCustomCall made{HloCustomCall::Kind::counted, flops};
  made.rate = call.rate(), made.evidence = evidence, made.why = std::move(why);
  return made;
}

Counted stated(const OneCall& call) {
  const auto& stated = call.instruction.attributes->stated_cost;
  if (!stated) return std::nullopt;
  HloCustomCall made = counted(call, stated->flops, HloEvidence::estimated, "as its author states");
  made.vector = stated->transcendentals;
  if (stated->remote_bytes > 0) made.evidence = HloEvidence::unknown, made.why = "it sends to other devices by itself";
  if (stated->bytes == 0) return made;
  Bytes elsewhere;
  const auto add = [&](const HloShape& shape) { elsewhere = saturated_sum(elsewhere, device_bytes(shape) - device_bytes_in(shape, HloMemory::hbm)); };
  add(*call.instruction.shape);
  for (std::size_t i = 0; i < call.instruction.operands.size(); ++i)
    if (const HloShape* const shape = operand_of(call.computation, call.instruction, i)) add(*shape);
  made.bytes = Bytes{std::max<std::int64_t>(0, stated->bytes - elsewhere.count())};
  return made;
}

/// Across HBM, of a call of a library: a last result of plain bytes is its scratch memory.
Bytes bytes_of_library(const OneCall& call) {
  Bytes bytes;
  const auto add = [&](const HloShape& shape) { bytes = saturated_sum(bytes, device_bytes_in(shape, HloMemory::hbm)); };
  for (std::size_t i = 0; i < call.instruction.operands.size(); ++i)
    if (const HloShape* const shape = operand_of(call.computation, call.instruction, i)) add(*shape);
  const HloShape& results = *call.instruction.shape;
  if (!results.is_tuple()) add(results);
  for (std::size_t i = 0; i < results.elements.size(); ++i) {
    const HloShape& result = results.elements[i];
    const bool is_scratch = i > 0 && i + 1 == results.elements.size() && result.is_array() && result.rank() == 1 && (result.type == HloType::s8 || result.type == HloType::u8);
    if (!is_scratch) add(result);
  }
  return bytes;
}

Counted library_product(const OneCall& call) {
  const bool is_gemm = call.target.starts_with("__cublas$gemm") || call.target.starts_with("__cublas$lt$matmul");
  const bool is_convolution = call.target.starts_with("__cudnn$conv");
  const HloShape *left = operand_of(call.computation, call.instruction, 0), *right = operand_of(call.computation, call.instruction, 1);
  if ((!is_gemm && !is_convolution) || left == nullptr || right == nullptr || !left->is_array() || !right->is_array()) return std::nullopt;
  HloInstruction as;
  as.opcode = is_gemm ? HloOpcode::dot : HloOpcode::convolution;
  as.attributes = call.instruction.attributes;
  const HloShape *result = &result_of(call.instruction);
  if (call.target.starts_with("__cudnn$convBackwardInput")) std::swap(left, result);
  if (call.target.starts_with("__cudnn$convBackwardFilter")) std::swap(right, result);
  as.shape = *result;
  const auto product = product_of(as, *left, *right, {});
  if (!product) return std::nullopt;
  HloCustomCall made = counted(call, product->flops, HloEvidence::known, "");
  made.rate = product_rate_of(left->type, right->type, call.instruction.attributes->precision, call.instruction.attributes->algorithm);
  made.product = *product;
  made.bytes = bytes_of_library(call);
  return made;
}

Counted attention(const OneCall& call) {
  const bool of_te = call.target == "te_fused_attn_forward_ffi" || call.target == "te_fused_attn_backward_ffi", of_cudnn = call.target.starts_with("__cudnn$fmha");
  const bool on_tpu = call.is_kernel() && (call.says("splash_mha") || call.says("flash_"));
  if (!of_te && !of_cudnn && !on_tpu) return std::nullopt;
  const std::vector<std::int64_t>& batch = call.instruction.attributes->lhs_batch;
  const auto shapes = attention_shapes(call.floats, on_tpu || (of_cudnn && batch.size() == 2 && batch[1] == 1));
  if (!shapes) return std::nullopt;
  const std::int64_t d = shapes->key_dim, e = shapes->value_dim;
  const bool backward = call.target.find("ackward") != std::string_view::npos || (on_tpu && call.says("bwd"));
  std::int64_t dims = backward ? 3 * d + 2 * e : d + e;
  if (on_tpu && call.says("dkv")) dims = 2 * d + 2 * e;
  if (on_tpu && call.says("_dq")) dims = 2 * d + e;
  const std::int64_t flops = saturating_product({2, shapes->batch, shapes->heads, shapes->queries, shapes->keys, dims});
  const bool is_causal = says_causal(call.instruction.attributes->backend_config);
  if (on_tpu && !is_causal) return counted(call, flops, HloEvidence::estimated, "by its shapes: a mask was not counted");
  HloCustomCall made = counted(call, is_causal ? flops / 2 : flops, HloEvidence::estimated, "by its shapes");
  if (of_cudnn) made.bytes = bytes_of_library(call);
  return made;
}

/// Products of groups of rows, by megablox.
Counted grouped_product(const OneCall& call) {
  if (!call.is_kernel() || !call.says("gmm")) return std::nullopt;
  const auto left = std::ranges::find_if(call.floats, [](const HloShape* shape) { return shape->rank() == 2; });
  const HloShape& result = result_of(call.instruction);
  if (left == call.floats.end() || (result.rank() != 2 && result.rank() != 3)) return std::nullopt;
  // Of both one dimension of the left operand is one of the result, and is followed by the result's last one.
  const std::int64_t kept = result.dims[result.rank() - 2], elements = elements_of(**left);
  if (kept <= 0 || elements % kept != 0) return std::nullopt;
  return counted(call, saturating_product({2, elements, result.dims.back()}), HloEvidence::estimated, "by its shapes: rows that belong to no group count");
}

/// FLOPs of a factorisation of m x n numbers, m >= n.
struct Factorisation {
  std::string_view word;  // in the target
  double (*flops)(double m, double n);
};
constexpr double cube(double n) { return n * n * n; }
constexpr std::array<Factorisation, 16> factorisations{{
    {"InvertDiagBlocks", [](double, double n) { return cube(n) / 3; }},
    {"holesky", [](double, double n) { return cube(n) / 3; }},
    {"potrf", [](double, double n) { return cube(n) / 3; }},
    {"LuDecomposition", [](double m, double n) { return m * n * n - cube(n) / 3; }},
    {"getrf", [](double m, double n) { return m * n * n - cube(n) / 3; }},
    {"QrDecomposition", [](double m, double n) { return 2 * m * n * n - 2 * cube(n) / 3; }},
    {"geqrf", [](double m, double n) { return 2 * m * n * n - 2 * cube(n) / 3; }},
    {"geqp3", [](double m, double n) { return 2 * m * n * n - 2 * cube(n) / 3; }},
    {"sytrd", [](double, double n) { return 4 * cube(n) / 3; }},
    {"HouseholderReflectors", [](double m, double n) { return 2 * m * n * n - 2 * cube(n) / 3; }},
    {"orgqr", [](double m, double n) { return 2 * m * n * n - 2 * cube(n) / 3; }},
    {"ungqr", [](double m, double n) { return 2 * m * n * n - 2 * cube(n) / 3; }},
    {"Eigh", [](double, double n) { return 9 * cube(n); }},
    {"syev", [](double, double n) { return 9 * cube(n); }},
    {"heev", [](double, double n) { return 9 * cube(n); }},
    {"gesv", [](double m, double n) { return 4 * m * m * n + 8 * m * n * n + 9 * cube(n); }},  // gesvd, gesvdj
}};

Counted factorisation(const OneCall& call) {
  const auto known = std::ranges::find_if(factorisations, [&](const Factorisation& one) { return call.target.find(one.word) != std::string_view::npos; });
  if (known == factorisations.end() || call.floats.empty() || call.floats.front()->rank() < 2) return std::nullopt;
  const HloShape& matrix = *call.floats.front();
  double batch = 1;
  for (std::size_t d = 0; d + 2 < matrix.rank(); ++d) batch *= static_cast<double>(matrix.dims[d]);
  const auto [n, m] = std::minmax({static_cast<double>(matrix.dims[matrix.rank() - 2]), static_cast<double>(matrix.dims.back())});
  HloCustomCall made = counted(call, 0, HloEvidence::estimated, "its columns depend on each other: at least this");
  made.vector = static_cast<std::int64_t>(std::min(0x1p61, batch * known->flops(m, n)));
  return made;
}

/// cuBLAS' trsm: the triangle, then the right-hand sides.
Counted triangular_solve(const OneCall& call) {
  const HloShape* const triangle = operand_of(call.computation, call.instruction, 0);
  const HloShape* const sides = operand_of(call.computation, call.instruction, 1);
  if (call.target != "__cublas$triangularSolve" || triangle == nullptr || sides == nullptr || triangle->rank() < 2 || !sides->is_array()) return std::nullopt;
  HloCustomCall made = counted(call, 0, HloEvidence::estimated, "its rows depend on each other: at least this");
  made.vector = saturating_product({elements_of(*sides), triangle->dims.back()});
  return made;
}

Counted device_sort(const OneCall& call) {
  const bool is_sort = call.target.starts_with("__cub$DeviceRadixSort") || call.target.starts_with("xla.gpu.ext.cub_sort");
  const HloShape* const keys = operand_of(call.computation, call.instruction, 0);
  if (!is_sort || keys == nullptr || !keys->is_array()) return std::nullopt;
  Bytes sorted;
  for (std::size_t i = 0; i < call.instruction.operands.size(); ++i)
    if (const HloShape* const shape = operand_of(call.computation, call.instruction, i)) sorted = saturated_sum(sorted, device_bytes_in(*shape, HloMemory::hbm));
  const int passes = (bits_of(keys->type) + 7) / 8;
  HloCustomCall made = counted(call, 0, HloEvidence::estimated, "passes of 8 bits of the keys");
  made.bytes = Bytes{saturating_product({2, passes, sorted.count()})};
  return made;
}

Counted over_elements(const OneCall& call) {
  constexpr std::array<std::string_view, 6> targets{"GatherScatterIndicesBitpacked", "TopK", "__gpu$TopK", "ApproxTopK", "PartialReduce", "cu_lu_pivots_to_permutation"};
  const bool is_metadata = call.is_kernel() && call.says("ragged-dot-metadata");  // where the groups of a ragged product begin
  const HloShape* const first = operand_of(call.computation, call.instruction, 0);
  if ((!is_metadata && std::ranges::find(targets, call.target) == targets.end()) || first == nullptr || !first->is_array()) return std::nullopt;
  HloCustomCall made = counted(call, 0, HloEvidence::estimated, "an operation for each element");
  made.vector = elements_of(*first);
  return made;
}

}  // namespace

HloCustomCall custom_call_of(const HloComputation& computation, const HloInstruction& instruction, const HloCustomCallCosts& given) {
  using Kind = HloCustomCall::Kind;
  const std::string_view target = instruction.attributes->custom_call_target;
  const OneCall call{computation, instruction, target, float_operands(computation, instruction)};
  if (const auto found = given.find(instruction.attributes->custom_call_target); found != given.end()) {
    HloCustomCall made = counted(call, found->second.flops, HloEvidence::known, "given");
    made.bytes = found->second.bytes;
    return made;
  }
  if (std::ranges::find(free_targets, target) != free_targets.end()) return {Kind::free};
  if (target == "MoveToHost") return {Kind::to_host};
  if (target == "MoveToDevice") return {Kind::to_device};
  for (const auto rule : {&stated, &library_product, &attention, &grouped_product, &factorisation, &triangular_solve, &device_sort, &over_elements})
    if (Counted made = rule(call)) return *std::move(made);
  HloCustomCall unknown;
  unknown.why = "an unknown custom-call";
  return unknown;
}

}  // namespace podsim
