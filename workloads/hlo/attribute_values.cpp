#include "workloads/hlo/attribute_values.hpp"

#include <array>
#include <unordered_map>

namespace podsim {

namespace {

using Words = std::span<const std::string_view>;
using Kind = HloAttributeValues::Kind;

constexpr auto fusion_kinds = std::to_array<std::string_view>({"kLoop", "kInput", "kOutput", "kCustom"});
constexpr auto transforms = std::to_array<std::string_view>({"FFT", "IFFT", "RFFT", "IRFFT"});
constexpr auto generators = std::to_array<std::string_view>({"rng_default", "rng_three_fry", "rng_philox"});
constexpr auto distributions = std::to_array<std::string_view>({"rng_uniform", "rng_normal"});
constexpr auto comparisons = std::to_array<std::string_view>({"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"});
constexpr auto transpositions = std::to_array<std::string_view>({"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"});
constexpr auto call_versions = std::to_array<std::string_view>(
    {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"});
constexpr auto call_schedules = std::to_array<std::string_view>({"SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"});
constexpr auto paddings = std::to_array<std::string_view>({"PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"});
// PrecisionConfig.Algorithm of xla_data.proto, in lower case and without ALG_.
constexpr auto product_algorithms = std::to_array<std::string_view>(
    {"unset", "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
     "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_bf16_bf16_f32_x9", "dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32",
     "dot_f64_f64_f64"});

HloAttributeValues truth() { return {.kind = Kind::truth}; }
HloAttributeValues number(std::int64_t least) { return {.kind = Kind::number, .least = least}; }
HloAttributeValues numbers() { return {.kind = Kind::numbers}; }
HloAttributeValues one_of(Words words) { return {.kind = Kind::word, .words = words}; }

const std::unordered_map<std::string_view, HloAttributeValues>& table() {
  static const std::unordered_map<std::string_view, HloAttributeValues> table{
      {"api_version", one_of(call_versions)},
      {"async_execution_thread", {}},
      {"async_group_id", {}},
      {"backend_config", {}},
      {"batch_group_count", {}},
      {"channel_handle", {}},
      {"channel_id", {}},
      {"collapsed_slice_dims", numbers()},
      {"constrain_layout", truth()},
      {"control-predecessors", {}},
      {"convolution_kind", {}},
      {"cross_program_prefetch_index", {}},
      {"custom_call_has_side_effect", truth()},
      {"custom_call_schedule", one_of(call_schedules)},
      {"custom_call_target", {}},
      {"delta", number(0)},
      {"dim_labels", {}},
      {"dimensions", {}},
      {"direction", {}},
      {"distribution", one_of(distributions)},
      {"domain", {}},
      {"dynamic_slice_sizes", {}},
      {"entry", {}},
      {"epsilon", {}},
      {"exit", {}},
      {"exponent_bits", number(1)},
      {"feature_group_count", {}},
      {"feature_index", number(0)},
      {"fft_length", {}},
      {"fft_type", one_of(transforms)},
      {"frontend_attributes", {}},
      {"index", {}},
      {"index_vector_dim", number(0)},
      {"indices_are_sorted", truth()},
      {"infeed_config", {}},
      {"inferred_dimension", number(0)},
      {"input_batching_dims", numbers()},
      {"inserted_window_dims", numbers()},
      {"iota_dimension", {}},
      {"is_associative", truth()},
      {"is_composite", truth()},
      {"is_cross_program_prefetch_index", {}},
      {"is_host_transfer", truth()},
      {"is_reverse", truth()},
      {"is_stable", truth()},
      {"k", number(0)},
      {"kind", one_of(fusion_kinds)},
      {"largest", truth()},
      {"left_side", truth()},
      {"lhs_batch_dims", {}},
      {"lhs_contracting_dims", {}},
      {"lhs_ragged_dims", {}},
      {"literal", {}},
      {"lower", truth()},
      {"mantissa_bits", number(0)},
      {"metadata", {}},
      {"mode", {}},
      {"num_carries", number(0)},
      {"offset_dims", numbers()},
      {"operand_batching_dims", numbers()},
      {"operand_layout_constraints", {}},
      {"operand_precision", {}},
      {"origin", {}},
      {"outfeed_config", {}},
      {"outfeed_shape", {}},
      {"output_operand_aliasing", {}},
      {"output_to_operand_aliasing", {}},
      {"padding", {}},
      {"padding_type", one_of(paddings)},
      {"parameter_replication", {}},
      {"replica_groups", {}},
      {"result_accuracy", {}},
      {"rhs_batch_dims", {}},
      {"rhs_contracting_dims", {}},
      {"rhs_group_dims", {}},
      {"scatter_dims_to_operand_dims", numbers()},
      {"scatter_indices_batching_dims", numbers()},
      {"schedule", one_of(call_schedules)},
      {"sharding", {}},
      {"slice", {}},
      {"slice_sizes", numbers()},
      {"source_target_pairs", {}},
      {"sparsity", {}},
      {"sparsity_config", {}},
      {"split_count", {}},
      {"split_dimension", {}},
      {"start_index_map", numbers()},
      {"start_indices_batching_dims", numbers()},
      {"statistics", {}},
      {"transpose_a", one_of(transpositions)},
      {"type", one_of(comparisons)},
      {"unique_indices", truth()},
      {"unit_diagonal", truth()},
      {"update_window_dims", numbers()},
      {"use_global_device_ids", truth()},
      {"window", {}},
  };
  return table;
}

}  // namespace

std::optional<HloAttributeValues> attribute_values(std::string_view name, HloOpcode opcode) {
  if (name == "algorithm") return one_of(opcode == HloOpcode::rng_bit_generator ? Words{generators} : Words{product_algorithms});
  const auto found = table().find(name);
  if (found == table().end()) return std::nullopt;
  return found->second;
}

}  // namespace podsim
