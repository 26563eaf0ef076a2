#include "workloads/hlo/hlo_custom_call.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

namespace podsim {

namespace {

constexpr std::array<std::string_view, 13> free_targets{
    "AllocateBuffer", "AsyncCollectiveStart", "AsyncCollectiveDone", "AssumeGatherIndicesInBound", "ConcatBitcast", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
    "annotate_device_placement", "PrepareAsyncCallStart", "PrepareAsyncCallDone", "SliceId"};

/// Kernels of Pallas on GPUs, and of Triton in JAX: none of them states a cost.
bool is_gpu_kernel(std::string_view target) { return target == "__gpu$xla.gpu.triton" || target.starts_with("triton_kernel_call") || target.starts_with("mosaic_gpu"); }

/// The number behind the last `word` of a configuration, quotes, colons and equal signs in between; nullopt: none there.
std::optional<std::int64_t> told_number(std::string_view config, std::string_view word) {
  const std::size_t at = config.rfind(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = config.substr(at + word.size());
  rest.remove_prefix(std::min(rest.find_first_not_of("\\\" :="), rest.size()));
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return status == std::errc{} ? std::optional{number} : std::nullopt;
}

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
const HloShape* operand_shape(const HloComputation& computation, const HloInstruction& call, std::size_t position) {
  if (position >= call.operands.size() || call.operands[position] == HloInstruction::missing) return nullptr;
  return &*computation.instructions[static_cast<std::size_t>(call.operands[position])].shape;
}

std::vector<const HloShape*> float_operands(const HloComputation& computation, const HloInstruction& call) {
  std::vector<const HloShape*> found;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (const HloShape* const shape = operand_shape(computation, call, i); shape != nullptr && shape->is_array() && is_float(shape->type)) found.push_back(shape);
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
/// [.., sequence, heads, dim]. `one_head`: of keys and values, which have no dimension for it.
std::optional<AttentionShapes> attention_shapes(const std::vector<const HloShape*>& floats, bool heads_first, bool one_head = false) {
  std::vector<const HloShape*> operands;
  for (const HloShape* const shape : floats)
    if (shape->rank() >= 3 && (operands.empty() || shape->rank() + (one_head ? 1 : 0) == operands.front()->rank())) operands.push_back(shape);
  if (operands.size() < 3 || operands.front()->rank() > 6) return std::nullopt;
  const HloShape &q = *operands[0], &k = *operands[1], &v = *operands[2];
  const std::size_t rank = q.rank(), sequence = heads_first ? rank - 2 : rank - 3, head = heads_first ? rank - 3 : rank - 2, of_keys = k.rank() - (rank - sequence);
  AttentionShapes shapes{1, q.dims[head], q.dims[sequence], k.dims[of_keys], k.dims.back(), v.dims.back()};
  for (std::size_t d = 0; d + 3 < rank; ++d) shapes.batch = saturating_product({shapes.batch, q.dims[d]});
  if (q.dims[rank - 1] != shapes.key_dim || v.dims[of_keys] != shapes.keys) return std::nullopt;
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
    if (const HloShape* const shape = operand_shape(call.computation, call.instruction, i)) add(*shape);
  made.bytes = Bytes{std::max<std::int64_t>(0, stated->bytes - elsewhere.count())};
  return made;
}

/// Across HBM, of a call of a library: a last result of plain bytes is its scratch memory.
Bytes bytes_of_library(const OneCall& call) {
  Bytes bytes;
  const auto add = [&](const HloShape& shape) { bytes = saturated_sum(bytes, device_bytes_in(shape, HloMemory::hbm)); };
  for (std::size_t i = 0; i < call.instruction.operands.size(); ++i)
    if (const HloShape* const shape = operand_shape(call.computation, call.instruction, i)) add(*shape);
  const HloShape& results = *call.instruction.shape;
  if (!results.is_tuple()) add(results);
  for (std::size_t i = 0; i < results.elements.size(); ++i) {
    const HloShape& result = results.elements[i];
    const bool is_scratch = i > 0 && i + 1 == results.elements.size() && result.is_array() && result.rank() == 1 && (result.type == HloType::s8 || result.type == HloType::u8);
    if (!is_scratch) add(result);
  }
  return bytes;
}

/// Words of 64 bits, c64 too, whose halves a TPU keeps in arrays of their own: a half is copied out of the words by itself, or both into them.
Counted halves_of_words(const OneCall& call) {
  const bool is_split = call.target == "X64SplitHigh" || call.target == "X64SplitLow";
  if (!is_split && call.target != "X64Combine") return std::nullopt;
  HloCustomCall made = counted(call, 0, HloEvidence::known, "");
  if (const HloShape* const words = operand_shape(call.computation, call.instruction, 0); is_split && words != nullptr)
    made.bytes = saturated_sum(Bytes{device_bytes_in(*words, HloMemory::hbm).count() / 2}, device_bytes_in(*call.instruction.shape, HloMemory::hbm));
  return made;
}

Counted library_product(const OneCall& call) {
  const bool is_gemm = call.target.starts_with("__cublas$gemm") || call.target.starts_with("__cublas$lt$matmul");
  const bool is_convolution = call.target.starts_with("__cudnn$conv");
  const HloShape *left = operand_shape(call.computation, call.instruction, 0), *right = operand_shape(call.computation, call.instruction, 1);
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

/// What splash attention leaves out, as a share of all pairs of queries and keys: with its grid, [heads, blocks of queries, blocks of keys] of its first integer operands, it
/// skips blocks for all queries (of dkv: for all keys). An operand of positions, [queries, lanes] (of dkv [sublanes, queries]), comes last where it computes the mask, by
/// which no query sees what is behind it.
struct SplashMask {
  double share = 1;
  bool is_computed = false;
};
SplashMask splash_mask(const OneCall& call, const AttentionShapes& of) {
  SplashMask mask;
  const bool by_keys = call.says("dkv");
  const std::int64_t kept = by_keys ? of.queries : of.keys;
  const auto block = told_number(call.instruction.attributes->frontend_attributes, by_keys ? "block_q_dkv" : call.says("_dq") ? "block_kv_dq" : "block_kv\\\"");
  const HloShape* const grid = operand_shape(call.computation, call.instruction, 0);
  if (block && *block > 0 && kept > 0 && grid != nullptr && grid->is_array() && is_integer(grid->type) && grid->rank() == 3)
    mask.share = std::min(1.0, static_cast<double>(grid->dims[by_keys ? 1 : 2]) * static_cast<double>(*block) / static_cast<double>(kept));
  const HloShape* const last = operand_shape(call.computation, call.instruction, call.instruction.operands.size() - 1);
  mask.is_computed = last != nullptr && last->is_array() && last->type == HloType::s32 && last->rank() == 2 && last->dims[by_keys ? 1 : 0] == of.queries;
  return mask;
}

/// Queries times keys that a window leaves: each query sees as many keys; nullopt: no window.
std::optional<std::int64_t> window_of(std::string_view config) {
  for (const std::string_view word : {"sliding_window_length", "window_size_left"})
    if (const auto window = told_number(config, word); window && *window > 0) return window;
  return std::nullopt;
}

Counted counted_attention(const OneCall& call) {
  const bool of_te = call.target == "te_fused_attn_forward_ffi" || call.target == "te_fused_attn_backward_ffi", of_cudnn = call.target.starts_with("__cudnn$fmha");
  const bool is_splash = call.is_kernel() && (call.says("splash_mha") || call.says("splash_mqa")), on_tpu = is_splash || (call.is_kernel() && call.says("flash_"));
  const bool of_triton = is_gpu_kernel(call.target) && (call.says("mha_forward") || call.says("mha_backward"));
  if (!of_te && !of_cudnn && !on_tpu && !of_triton) return std::nullopt;
  const std::string_view config = call.instruction.attributes->backend_config;
  const std::vector<std::int64_t>& batch = call.instruction.attributes->lhs_batch;
  const auto shapes = attention_shapes(call.floats, on_tpu || (of_cudnn && batch.size() == 2 && batch[1] == 1), is_splash && call.says("splash_mqa"));
  if (!shapes) return std::nullopt;
  const std::int64_t d = shapes->key_dim, e = shapes->value_dim;
  const bool backward = call.target.find("ackward") != std::string_view::npos || (on_tpu && call.says("bwd")) || (of_triton && call.says("mha_backward"));
  std::int64_t dims = backward ? 3 * d + 2 * e : d + e;
  // Fused, dkv also makes the gradient of the queries: three arrays in its own memory, then three results.
  if (on_tpu && call.says("dkv")) dims = call.instruction.shape->elements.size() >= 6 ? 3 * d + 2 * e : 2 * d + 2 * e;
  if (on_tpu && call.says("_dq")) dims = 2 * d + e;
  const std::int64_t flops = saturating_product({2, shapes->batch, shapes->heads, shapes->queries, shapes->keys, dims});
  if (is_splash) {
    const auto [share, is_computed] = splash_mask(call, *shapes);
    return counted(call, static_cast<std::int64_t>(static_cast<double>(flops) * std::min(share, is_computed ? 0.5 : 1.0)), HloEvidence::estimated,
                   is_computed ? "by its shapes: its mask, which it computes, is taken as causal" : share < 1 ? "by its shapes and blocks" : "by its shapes: a mask was not counted");
  }
  if (on_tpu || of_triton) return counted(call, flops, HloEvidence::estimated, "by its shapes: a mask was not counted");
  double seen = says_causal(config) ? 0.5 : 1;
  if (const auto window = window_of(config); window && shapes->keys > 0) seen = std::min(seen, static_cast<double>(*window) / static_cast<double>(shapes->keys));
  HloCustomCall made = counted(call, static_cast<std::int64_t>(static_cast<double>(flops) * seen), HloEvidence::estimated, "by its shapes");
  if (of_cudnn) made.bytes = bytes_of_library(call);
  return made;
}

/// Kernels of attention alternate products with a softmax: they have a rate of their own.
Counted attention(const OneCall& call) {
  Counted made = counted_attention(call);
  if (made) made->rate.attention = true;
  return made;
}

/// Attention to keys and values in pages, by JAX's kernels: as if every page in the tables were full.
///   paged_attention          queries [sequences, heads, .., dim], keys and values [heads, pages, tokens, dim] each, a page for each place of an s32[sequences * places]
///   ragged_paged_attention   queries [tokens, heads, dim], both in [pages, tokens, 2 * heads, dim], tables s32[sequences, places]; every query sees a whole sequence
Counted paged_attention(const OneCall& call) {
  if (!call.is_kernel() || !call.says("paged_attention")) return std::nullopt;
  const bool is_ragged = call.says("ragged_paged_attention");
  std::vector<const HloShape*> arrays;
  for (const HloShape* const shape : call.floats)
    if (shape->rank() >= 3) arrays.push_back(shape);
  if (arrays.size() < (is_ragged ? 2U : 3U) || arrays[1]->rank() != 4) return std::nullopt;
  const HloShape &queries = *arrays[0], &pages = *arrays[1];
  std::int64_t sequences = is_ragged ? 0 : queries.dims.front(), places = 0;
  for (std::size_t i = 0; i < call.instruction.operands.size(); ++i) {
    const HloShape* const table = operand_shape(call.computation, call.instruction, i);
    if (table == nullptr || !table->is_array() || table->type != HloType::s32 || table->rank() != (is_ragged ? 2U : 1U) || elements_of(*table) <= places) continue;
    places = elements_of(*table);
    if (is_ragged) sequences = table->dims.front();
  }
  if (places == 0 || sequences == 0) return std::nullopt;
  const std::int64_t tokens = pages.dims[is_ragged ? 1 : 2], keys_of_one = saturating_product({places / sequences, tokens}), dim = pages.dims.back();
  const std::int64_t read = saturating_product({std::min(places, pages.dims[is_ragged ? 0 : 1]), elements_of(pages) / std::max<std::int64_t>(1, pages.dims[is_ragged ? 0 : 1])});
  HloCustomCall made = counted(call, saturating_product({4, elements_of(queries) / std::max<std::int64_t>(1, dim), keys_of_one, dim}), HloEvidence::estimated, "by its shapes: all pages are taken as full");
  made.rate = product_rate_of(pages.type, pages.type);
  made.bytes = Bytes{saturating_product({(is_ragged ? 1 : 2) * read, bits_of(pages.type)}) / 8};
  made.bytes = saturated_sum(*made.bytes, saturated_sum(device_bytes_in(queries, HloMemory::hbm), device_bytes_in(*call.instruction.shape, HloMemory::hbm)));
  return made;
}

/// Of TransformerEngine: a product of the operands 0 and 2, each followed by its scales, whose contracted extent follows from all three sizes, k^2 = mk kn / mn; norms,
/// activations, softmax and quantisation, an operation for each element.
Counted transformer_engine(const OneCall& call) {
  if (!call.target.starts_with("te_")) return std::nullopt;
  const HloShape *first = operand_shape(call.computation, call.instruction, 0), *second = operand_shape(call.computation, call.instruction, 2);
  if (first == nullptr || !first->is_array()) return std::nullopt;
  const auto says = [&](std::string_view word) { return call.target.find(word) != std::string_view::npos; };
  if (call.target.starts_with("te_gemm")) {
    const HloShape& result = result_of(call.instruction);
    const double out = result.is_array() ? static_cast<double>(elements_of(result)) : 0;
    if (second == nullptr || !second->is_array() || !is_float(second->type) || !(out > 0)) return std::nullopt;
    const double k = std::round(std::sqrt(static_cast<double>(elements_of(*first)) * static_cast<double>(elements_of(*second)) / out));
    HloCustomCall made = counted(call, static_cast<std::int64_t>(std::min(0x1p61, 2 * out * k)), HloEvidence::estimated, "by its shapes");
    made.rate = product_rate_of(first->type, second->type);
    if (const std::int64_t contracted = static_cast<std::int64_t>(k); contracted > 0 && elements_of(*first) % contracted == 0 && elements_of(*second) % contracted == 0)
      made.product = HloProduct{1, elements_of(*first) / contracted, elements_of(*second) / contracted, contracted, made.flops};
    made.bytes = bytes_of_library(call);
    return made;
  }
  if (!says("norm") && !says("act") && !says("quantize") && !says("softmax") && !says("transpose") && !says("dbias")) return std::nullopt;
  HloCustomCall made = counted(call, 0, HloEvidence::estimated, "an operation for each element");
  made.vector = elements_of(*first);
  made.bytes = bytes_of_library(call);
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
constexpr std::array<Factorisation, 17> factorisations{{
    {"CompactWyHelper", [](double, double n) { return cube(n) / 3; }},  // the triangle T of reflections I - V T V', by its inverse
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
  HloCustomCall made = counted(call, 0, HloEvidence::lower_bound, "its columns depend on each other: at least this");
  if (known->word == "LuDecomposition" || known->word == "getrf") made.pivots = static_cast<std::int64_t>(n);
  made.vector = static_cast<std::int64_t>(std::min(0x1p61, batch * known->flops(m, n)));
  return made;
}

/// cuBLAS' trsm: the triangle, then the right-hand sides.
Counted triangular_solve(const OneCall& call) {
  const HloShape* const triangle = operand_shape(call.computation, call.instruction, 0);
  const HloShape* const sides = operand_shape(call.computation, call.instruction, 1);
  if (call.target != "__cublas$triangularSolve" || triangle == nullptr || sides == nullptr || triangle->rank() < 2 || !sides->is_array()) return std::nullopt;
  HloCustomCall made = counted(call, 0, HloEvidence::lower_bound, "its rows depend on each other: at least this");
  made.vector = saturating_product({elements_of(*sides), triangle->dims.back()});
  return made;
}

Counted device_sort(const OneCall& call) {
  const bool is_sort = call.target.starts_with("__cub$DeviceRadixSort") || call.target.starts_with("xla.gpu.ext.cub_sort");
  const HloShape* const keys = operand_shape(call.computation, call.instruction, 0);
  if (!is_sort || keys == nullptr || !keys->is_array()) return std::nullopt;
  const std::int64_t length = keys->rank() == 0 ? 1 : keys->dims.back();
  if (length <= 0) return std::nullopt;
  RadixSort sort{elements_of(*keys) / length, length, static_cast<int>(bits_of(keys->type))};
  if (const HloShape* const values = operand_shape(call.computation, call.instruction, 1); values != nullptr && values->is_array()) sort.value_bytes = (bits_of(values->type) + 7) / 8;
  HloCustomCall made = counted(call, 0, HloEvidence::estimated, "passes of a radix sort");
  made.bytes = Bytes{static_cast<std::int64_t>(std::min(0x1p61, radix_sort_cost(sort).bytes))};
  made.sort = sort;
  return made;
}

Counted over_elements(const OneCall& call) {
  // ZeroCrop: an array as its tiles are stored, zeros where they are padded: so Megascale sends it to other slices.
  constexpr std::array<std::string_view, 7> targets{"GatherScatterIndicesBitpacked", "TopK", "__gpu$TopK", "ApproxTopK", "PartialReduce", "cu_lu_pivots_to_permutation", "ZeroCrop"};
  const bool is_metadata = call.is_kernel() && call.says("ragged-dot-metadata");  // where the groups of a ragged product begin
  const HloShape* const first = operand_shape(call.computation, call.instruction, 0);
  if ((!is_metadata && std::ranges::find(targets, call.target) == targets.end()) || first == nullptr || !first->is_array()) return std::nullopt;
  HloCustomCall made = counted(call, 0, HloEvidence::estimated, "an operation for each element");
  made.vector = elements_of(*first);
  return made;
}

}  // namespace

std::string custom_call_name(const HloInstruction& call) {
  const std::string& target = call.attributes->custom_call_target;
  if (target == "tpu_custom_call") {
    const std::string kernel = call.name.substr(0, call.name.find('.'));
    return kernel == "custom-call" ? target : kernel;
  }
  if (!is_gpu_kernel(target)) return target;
  constexpr std::string_view name = "name = \"", call_of_pallas = "/pallas_call";
  const std::string& config = call.attributes->backend_config;
  if (const std::size_t at = config.rfind(name); at != std::string::npos)  // behind the code of the kernel
    if (const std::size_t end = config.find('"', at + name.size()); end != std::string::npos) return config.substr(at + name.size(), end - at - name.size());
  // The function around it: jit(f)/scale/pallas_call.
  const std::string_view path = call.op_name;
  if (!path.ends_with(call_of_pallas)) return target;
  const std::string_view around = path.substr(0, path.size() - call_of_pallas.size()), last = around.substr(around.rfind('/') + 1);
  return last.empty() || last.find('(') != std::string_view::npos || last == "shard_map" ? target : std::string{last};
}

HloCustomCall custom_call_of(const HloComputation& computation, const HloInstruction& instruction, const HloCustomCallCosts& given) {
  using Kind = HloCustomCall::Kind;
  const std::string_view target = instruction.attributes->custom_call_target;
  const OneCall call{computation, instruction, target, float_operands(computation, instruction)};
  if (!given.empty())
    for (const std::string& name : {custom_call_name(instruction), instruction.attributes->custom_call_target})
      if (const auto found = given.find(name); found != given.end()) {
        HloCustomCall made = counted(call, found->second.flops, HloEvidence::known, "given");
        made.bytes = found->second.bytes;
        return made;
      }
  if (std::ranges::find(free_targets, target) != free_targets.end()) return {Kind::free};
  if (target == "MoveToHost") return {Kind::to_host};
  if (target == "MoveToDevice") return {Kind::to_device};
  for (const auto rule : {&stated, &halves_of_words, &library_product, &paged_attention, &attention, &transformer_engine, &grouped_product, &factorisation, &triangular_solve, &device_sort, &over_elements})
    if (Counted made = rule(call)) return *std::move(made);
  HloCustomCall unknown;
  unknown.why = "an unknown custom-call";
  return unknown;
}

}  // namespace podsim
