// An HLO module as values: computations of instructions, in the order of the text, which is the order of execution where the module is scheduled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_opcode.hpp"
#include "workloads/hlo/hlo_shape.hpp"
#include "workloads/hlo/replica_groups.hpp"
#include "workloads/hlo/shared_value.hpp"

namespace podsim {

/// One spatial dimension of `window={size=32 pad=31_31 rhs_reversal=1}`.
struct HloWindowDimension {
  std::int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0;  // padding may be negative
  std::int64_t lhs_dilate = 1, rhs_dilate = 1;                   // of the input (base) and of the kernel (window)
  bool reversal = false;
  friend bool operator==(const HloWindowDimension&, const HloWindowDimension&) = default;
};

/// dim_labels=bf0_i0o->b0f: the position of each dimension in input, kernel and output.
struct HloConvolutionDims {
  int input_batch = 0, input_feature = 0, kernel_input = 0, kernel_output = 0, output_batch = 0, output_feature = 0;
  std::vector<int> input_spatial{}, kernel_spatial{}, output_spatial{};  // of spatial dimension 0, 1, ..
  friend bool operator==(const HloConvolutionDims&, const HloConvolutionDims&) = default;
};

/// slice={[0:16:1], ..}
struct HloSliceExtent {
  std::int64_t start = 0, limit = 0, stride = 1;
  friend bool operator==(const HloSliceExtent&, const HloSliceExtent&) = default;
};

/// padding=0_1_0x..: of one dimension
struct HloPadding {
  std::int64_t low = 0, high = 0, interior = 0;
  friend bool operator==(const HloPadding&, const HloPadding&) = default;
};

/// operand_precision={highest,default} of products: as jax.lax.Precision.
enum class HloPrecision : std::uint8_t { standard, high, highest };

enum class HloDirection : std::uint8_t { none, eq, ne, ge, gt, le, lt };

/// The value of a constant, row-major. `elided`: the text has {...}. `unread`: too long (more than 2^20 numbers) or of a tuple.
struct HloLiteral {
  enum class Kind : std::uint8_t { none, values, elided, unread };
  Kind kind = Kind::none;
  std::vector<std::int64_t> integers{};  // of integer types and pred (0, 1); u64 beyond 2^63-1 as its bits
  std::vector<double> reals{};           // of floating-point types; of complex ones real and imaginary part in turn
  friend bool operator==(const HloLiteral&, const HloLiteral&) = default;
};

/// An attribute without a field of its own, verbatim.
struct HloAttribute {
  std::string name, text;
  bool known = false;  // XLA documents it, but nothing here depends on it
  friend bool operator==(const HloAttribute&, const HloAttribute&) = default;
};

/// cost_estimate of a custom-call: what the author of a kernel says that it costs.
struct HloStatedCost {
  std::int64_t flops = 0, transcendentals = 0, bytes = 0;
  std::int64_t remote_bytes = 0;  // that it sends to other devices by itself
  friend bool operator==(const HloStatedCost&, const HloStatedCost&) = default;
};

/// The algorithm of a collective as a TPU's compiler chose it: parts of the data that go different ways at the same time, each in phases, a ring after the
/// other. Of collective_algorithm_config (by the TensorCore) or collective_offload_config (by the SparseCores).
struct HloStrategy {
  std::string name{};           // "UniDirection1DRingStrategy"; "SparseCore"
  int colors = 1;               // the parts; 0: not told
  std::vector<int> rings{};     // devices in the ring of each phase; empty: not told, through as many dimensions as colours
  friend bool operator==(const HloStrategy&, const HloStrategy&) = default;
};

/// What a call of cuDNN or cuBLASLt does beside its convolution or dot: activation(result_scale * product + side_scale * side input + bias).
struct HloLibraryProduct {
  std::string activation{};  // as written: kRelu of cuDNN, the epilogue of cuBLASLt
  double result_scale = 1, result_scale_imaginary = 0, side_scale = 0, leaky_slope = 0;
  friend bool operator==(const HloLibraryProduct&, const HloLibraryProduct&) = default;
};

/// What an instruction says beside shape, opcode and operands. Empty where it says nothing.
struct HloAttributes {
  std::vector<std::int64_t> dimensions{};  // of collectives, broadcast, reduce, transpose, concatenate, reverse, ..; also iota_dimension
  std::vector<std::int64_t> lhs_contracting{}, rhs_contracting{}, lhs_batch{}, rhs_batch{};  // of dots, and of calls of a library's products
  std::vector<HloWindowDimension> window{};
  std::optional<HloConvolutionDims> convolution{};  // of dim_labels
  std::int64_t feature_group_count = 1, batch_group_count = 1;
  HloPrecision precision = HloPrecision::standard;  // of products: the highest of an operand
  std::string algorithm{};                          // of dot: dot_bf16_bf16_f32_x3
  std::vector<HloSliceExtent> slice{};
  std::vector<std::int64_t> dynamic_slice_sizes{};
  std::vector<HloPadding> padding{};
  std::optional<ReplicaGroups> replica_groups{};
  std::vector<SourceTarget> source_target_pairs{};
  std::optional<std::int64_t> channel_id{};
  std::optional<bool> use_global_device_ids{};
  HloDirection direction = HloDirection::none;
  HloLiteral literal{};
  std::string custom_call_target{};
  std::string fft_type{};  // FFT, IFFT, RFFT, IRFFT
  std::vector<std::int64_t> fft_length{};
  std::vector<int> control_predecessors{};  // instructions of the same computation
  std::string sharding{};                   // verbatim: parse_hlo_sharding() of sim/mesh reads it
  std::string fusion_kind{};                // kLoop, kInput, kOutput, kCustom
  std::string async_execution_thread{};
  std::string backend_config{};       // verbatim; JSON, but for old modules
  std::string frontend_attributes{};  // verbatim
  // Of backend_config and frontend_attributes:
  std::optional<std::int64_t> known_trip_count{};
  std::optional<std::int64_t> estimated_cycles{};  // of the TPU's window_config; 0 and 2^63-1 mean not told
  std::vector<std::int64_t> index_multiples{};     // of indices_config: a power of two that divides each index of a dynamic-slice or an update
  std::optional<HloStatedCost> stated_cost{};      // of custom_call_config
  std::optional<HloLibraryProduct> library_product{};  // of cudnn_conv_backend_config and gemm_backend_config
  std::optional<HloStrategy> strategy{};           // of a collective, or of the fusion with it
  bool is_sync = false;                            // a -start that blocks
  std::string async_collective_name{};             // the compiler wanted this plain collective to be asynchronous
  std::string megascale_transfer{};                // of send and recv between slices, by Megascale: "ALL_REDUCE"
  std::string host_rendezvous{};                   // the name that a send to the host and its recv share
  bool across_slices = false;                      // a collective of the devices of one number in all slices: joined_transfers.hpp
  std::vector<HloAttribute> others{};
  std::string unknown_opcode{};
  friend bool operator==(const HloAttributes&, const HloAttributes&) = default;
};

/// How an instruction uses a computation. `branch`: of a conditional, in the order of its branches (true_computation is branch 0). `called`:
/// called_computations of a custom-call.
enum class HloRole : std::uint8_t { calls, to_apply, condition, body, branch, select, scatter, called };
struct HloCall {
  HloRole role = HloRole::calls;
  int computation = 0;  // in HloModule::computations
  friend bool operator==(const HloCall&, const HloCall&) = default;
};

struct HloInstruction {
  std::string name;  // without %
  SharedValue<HloShape> shape{};
  HloOpcode opcode = HloOpcode::unknown;
  HloPhase phase = HloPhase::whole;
  int line = 0, column = 0;
  std::vector<int> operands{};  // instructions of the same computation; `missing` where a cut file does not have it
  std::vector<HloCall> calls{};
  std::int64_t number = 0;  // of a parameter its number, of get-tuple-element its index
  std::string op_name{};    // of metadata: "jit(f)/dot_general"
  std::string source{};     // of metadata, the innermost of its stack frames: "layers.py:85"
  SharedValue<HloAttributes> attributes{};
  static constexpr int missing = -1;
  friend bool operator==(const HloInstruction&, const HloInstruction&) = default;
};
/// "all-gather-start", or the word of an unknown opcode.
std::string opcode_text(const HloInstruction& instruction);

struct HloComputation {
  std::string name;
  std::vector<HloInstruction> instructions{};  // operands come before their users, but in tolerant reading of cut files
  int root = 0;                                // the last one where none is marked; `missing` where there are no instructions (tolerant)
  std::vector<int> parameters{};               // instructions by parameter number; `missing` as above
  std::string execution_thread{};              // "sparsecore", "host"
  int line = 0, column = 0;
  friend bool operator==(const HloComputation&, const HloComputation&) = default;
};

/// input_output_alias={ {0}: (3, {1}, may-alias) }: output `output` of the entry lives in the buffer of a parameter.
struct HloAlias {
  std::vector<std::int64_t> output{};  // index into nested tuples
  int parameter = 0;
  std::vector<std::int64_t> parameter_index{};
  bool must = false;
  friend bool operator==(const HloAlias&, const HloAlias&) = default;
};
/// buffer_donor={ (3, {1}) }
struct HloDonor {
  int parameter = 0;
  std::vector<std::int64_t> parameter_index{};
  friend bool operator==(const HloDonor&, const HloDonor&) = default;
};

/// Something that a tolerant reader went past: how often, and where first.
struct HloWarning {
  std::string message;  // "operands of unknown name"
  std::int64_t count = 0;
  SourceLocation first;
  friend bool operator==(const HloWarning&, const HloWarning&) = default;
};

struct HloModule {
  std::string name, file;
  bool is_scheduled = false;
  std::int64_t replica_count = 1;
  std::optional<std::int64_t> num_partitions{};  // as written; devices_of() tells the devices where it is not
  std::int64_t named_devices = 1;                // devices that replica groups and permutes name: the largest id + 1
  std::vector<HloAlias> aliases{};
  std::vector<HloDonor> donors{};
  std::vector<HloAttribute> others{};          // of the header, verbatim
  std::vector<HloComputation> computations{};  // called ones before their callers, but in tolerant reading of cyclic files
  int entry = 0;                               // `missing` in a cut file
  std::int64_t joined = 0;                     // instructions of the text that others stand for, less those that it leaves out: joined_transfers.hpp
  std::vector<HloWarning> warnings{};
  bool has_lines = true;  // false: read from a binary form
  [[nodiscard]] const HloComputation& entry_computation() const { return computations[static_cast<std::size_t>(entry)]; }
  [[nodiscard]] SourceLocation where(const HloInstruction& instruction) const {
    return has_lines ? SourceLocation{file, instruction.line, instruction.column} : SourceLocation{file + ": " + instruction.name};
  }
  friend bool operator==(const HloModule&, const HloModule&) = default;
};

/// Instructions of all computations, as many as the text has.
std::size_t instructions_of(const HloModule& module);

/// replica_count * num_partitions; where num_partitions is not told, named_devices, at least replica_count.
std::int64_t devices_of(const HloModule& module);

/// Of a collective: what its ids count (GetCollectiveOpGroupMode of XLA). Those that may say use_global_device_ids, and do not, count replicas.
HloGroupMode group_mode_of(const HloInstruction& collective);

/// The dimensions that an attribute without a field of its own lists, "{0,1}"; empty where it is not there or lists none.
std::vector<std::int64_t> listed_dimensions(const HloAttributes& attributes, std::string_view name);
/// The attribute's number; nullopt where it is not there or none.
std::optional<std::int64_t> number_named(const HloAttributes& attributes, std::string_view name);

/// The first computation of a role, or nullptr.
const HloComputation* called(const HloModule& module, const HloInstruction& instruction, HloRole role);
/// The n-th one: branch n of a conditional.
const HloComputation* called(const HloModule& module, const HloInstruction& instruction, HloRole role, std::size_t n);

}  // namespace podsim
