// The operations of HLO by name, and the phases of an asynchronous one.
#pragma once

#include <cstdint>
#include <string_view>

namespace podsim {

/// Every opcode of openxla/xla xla/hlo/ir/hlo_opcode.h, without its -start, -update and -done forms (HloPhase). `unknown` stands for any other word.
enum class HloOpcode : std::uint8_t {
  unknown,
  abs,
  acos,
  acosh,
  add,
  add_dependency,
  after_all,
  all_gather,
  all_reduce,
  all_to_all,
  and_,
  asin,
  asinh,
  async,
  atan2,
  atanh,
  batch_norm_grad,
  batch_norm_inference,
  batch_norm_training,
  bitcast,
  bitcast_convert,
  broadcast,
  call,
  cbrt,
  ceil,
  cholesky,
  clamp,
  clz,
  collective_broadcast,
  collective_permute,
  compare,
  complex,
  concatenate,
  conditional,
  constant,
  convert,
  convolution,
  copy,
  cosine,
  cosh,
  custom_call,
  divide,
  domain,
  dot,
  dynamic_reshape,
  dynamic_slice,
  dynamic_update_slice,
  erf,
  exponential,
  exponential_minus_one,
  fft,
  floor,
  fusion,
  gather,
  get_dimension_size,
  get_tuple_element,
  imag,
  infeed,
  iota,
  is_finite,
  log,
  log_plus_one,
  logistic,
  map,
  maximum,
  minimum,
  multiply,
  negate,
  not_,
  opt_barrier,
  or_,
  outfeed,
  pad,
  parameter,
  partition_id,
  popcnt,
  power,
  ragged_all_to_all,
  ragged_dot,
  real,
  recv,
  reduce,
  reduce_precision,
  reduce_scatter,
  reduce_window,
  remainder,
  replica_id,
  reshape,
  reverse,
  rng,
  rng_bit_generator,
  rng_get_and_update_state,
  round_nearest_afz,
  round_nearest_even,
  rsqrt,
  scaled_dot,
  scan,
  scatter,
  select,
  select_and_scatter,
  send,
  set_dimension_size,
  shift_left,
  shift_right_arithmetic,
  shift_right_logical,
  sign,
  sine,
  sinh,
  slice,
  sort,
  sqrt,
  stochastic_convert,
  subtract,
  tan,
  tanh,
  topk,
  transpose,
  triangular_solve,
  tuple,
  while_,
  xor_
};

/// all-gather is whole; all-gather-start, -update and -done are the phases of an asynchronous one. `async-start` is HloOpcode::async, whose called
/// computation holds the operation; `foo-start` of any other opcode is the same without a computation.
enum class HloPhase : std::uint8_t { whole, start, update, done };

/// "all-gather"; "?" of `unknown`.
std::string_view name_of(HloOpcode opcode);

struct HloOperation {
  HloOpcode opcode = HloOpcode::unknown;
  HloPhase phase = HloPhase::whole;
  friend bool operator==(const HloOperation&, const HloOperation&) = default;
};
/// Of a word as printed: "all-gather-start". O(1). `unknown`, whole, where no opcode has the name; a phase is told apart only from known opcodes.
HloOperation operation_named(std::string_view word);

/// all-gather, all-reduce, all-to-all, ragged-all-to-all, collective-broadcast, collective-permute, reduce-scatter.
bool is_collective(HloOpcode opcode);
/// Parameters, constants, tuples and their elements, bitcasts, after-all, add-dependency, opt-barrier, domain, partition-id, replica-id: cost
/// nothing.
bool is_free(HloOpcode opcode);
/// One result element from the elements of the operands at the same position: add, exponential, select, convert, compare, ...
bool is_elementwise(HloOpcode opcode);

}  // namespace podsim
