#include "workloads/hlo/hlo_opcode.hpp"

#include <array>
#include <unordered_map>
#include <utility>

namespace podsim {

namespace {

using Word = HloOpcode;

enum class WordKind : std::uint8_t { other, free, elementwise, collective };
struct WordEntry {
  HloOpcode opcode;
  std::string_view name;
  WordKind kind = WordKind::other;
};

constexpr auto entries = std::to_array<WordEntry>({
    {Word::unknown, "?"},
    {Word::abs, "abs", WordKind::elementwise},
    {Word::acos, "acos", WordKind::elementwise},
    {Word::acosh, "acosh", WordKind::elementwise},
    {Word::add, "add", WordKind::elementwise},
    {Word::add_dependency, "add-dependency", WordKind::free},
    {Word::after_all, "after-all", WordKind::free},
    {Word::all_gather, "all-gather", WordKind::collective},
    {Word::all_reduce, "all-reduce", WordKind::collective},
    {Word::all_to_all, "all-to-all", WordKind::collective},
    {Word::and_, "and", WordKind::elementwise},
    {Word::asin, "asin", WordKind::elementwise},
    {Word::asinh, "asinh", WordKind::elementwise},
    {Word::async, "async"},
    {Word::atan2, "atan2", WordKind::elementwise},
    {Word::atanh, "atanh", WordKind::elementwise},
    {Word::batch_norm_grad, "batch-norm-grad"},
    {Word::batch_norm_inference, "batch-norm-inference"},
    {Word::batch_norm_training, "batch-norm-training"},
    {Word::bitcast, "bitcast", WordKind::free},
    {Word::bitcast_convert, "bitcast-convert", WordKind::elementwise},
    {Word::broadcast, "broadcast"},
    {Word::call, "call"},
    {Word::cbrt, "cbrt", WordKind::elementwise},
    {Word::ceil, "ceil", WordKind::elementwise},
    {Word::cholesky, "cholesky"},
    {Word::clamp, "clamp", WordKind::elementwise},
    {Word::clz, "count-leading-zeros", WordKind::elementwise},
    {Word::collective_broadcast, "collective-broadcast", WordKind::collective},
    {Word::collective_permute, "collective-permute", WordKind::collective},
    {Word::compare, "compare", WordKind::elementwise},
    {Word::complex, "complex", WordKind::elementwise},
    {Word::concatenate, "concatenate"},
    {Word::conditional, "conditional"},
    {Word::constant, "constant", WordKind::free},
    {Word::convert, "convert", WordKind::elementwise},
    {Word::convolution, "convolution"},
    {Word::copy, "copy"},
    {Word::cosine, "cosine", WordKind::elementwise},
    {Word::cosh, "cosh", WordKind::elementwise},
    {Word::custom_call, "custom-call"},
    {Word::divide, "divide", WordKind::elementwise},
    {Word::domain, "domain", WordKind::free},
    {Word::dot, "dot"},
    {Word::dynamic_reshape, "dynamic-reshape"},
    {Word::dynamic_slice, "dynamic-slice"},
    {Word::dynamic_update_slice, "dynamic-update-slice"},
    {Word::erf, "erf", WordKind::elementwise},
    {Word::exponential, "exponential", WordKind::elementwise},
    {Word::exponential_minus_one, "exponential-minus-one", WordKind::elementwise},
    {Word::fft, "fft"},
    {Word::floor, "floor", WordKind::elementwise},
    {Word::fusion, "fusion"},
    {Word::gather, "gather"},
    {Word::get_dimension_size, "get-dimension-size"},
    {Word::get_tuple_element, "get-tuple-element", WordKind::free},
    {Word::imag, "imag", WordKind::elementwise},
    {Word::infeed, "infeed"},
    {Word::iota, "iota"},
    {Word::is_finite, "is-finite", WordKind::elementwise},
    {Word::log, "log", WordKind::elementwise},
    {Word::log_plus_one, "log-plus-one", WordKind::elementwise},
    {Word::logistic, "logistic", WordKind::elementwise},
    {Word::map, "map"},
    {Word::maximum, "maximum", WordKind::elementwise},
    {Word::minimum, "minimum", WordKind::elementwise},
    {Word::multiply, "multiply", WordKind::elementwise},
    {Word::negate, "negate", WordKind::elementwise},
    {Word::not_, "not", WordKind::elementwise},
    {Word::opt_barrier, "opt-barrier", WordKind::free},
    {Word::or_, "or", WordKind::elementwise},
    {Word::outfeed, "outfeed"},
    {Word::pad, "pad"},
    {Word::parameter, "parameter", WordKind::free},
    {Word::partition_id, "partition-id", WordKind::free},
    {Word::popcnt, "popcnt", WordKind::elementwise},
    {Word::power, "power", WordKind::elementwise},
    {Word::ragged_all_to_all, "ragged-all-to-all", WordKind::collective},
    {Word::ragged_dot, "ragged-dot"},
    {Word::real, "real", WordKind::elementwise},
    {Word::recv, "recv"},
    {Word::reduce, "reduce"},
    {Word::reduce_precision, "reduce-precision", WordKind::elementwise},
    {Word::reduce_scatter, "reduce-scatter", WordKind::collective},
    {Word::reduce_window, "reduce-window"},
    {Word::remainder, "remainder", WordKind::elementwise},
    {Word::replica_id, "replica-id", WordKind::free},
    {Word::reshape, "reshape"},
    {Word::reverse, "reverse"},
    {Word::rng, "rng"},
    {Word::rng_bit_generator, "rng-bit-generator"},
    {Word::rng_get_and_update_state, "rng-get-and-update-state"},
    {Word::round_nearest_afz, "round-nearest-afz", WordKind::elementwise},
    {Word::round_nearest_even, "round-nearest-even", WordKind::elementwise},
    {Word::rsqrt, "rsqrt", WordKind::elementwise},
    {Word::scaled_dot, "scaled-dot"},
    {Word::scan, "scan"},
    {Word::scatter, "scatter"},
    {Word::select, "select", WordKind::elementwise},
    {Word::select_and_scatter, "select-and-scatter"},
    {Word::send, "send"},
    {Word::set_dimension_size, "set-dimension-size"},
    {Word::shift_left, "shift-left", WordKind::elementwise},
    {Word::shift_right_arithmetic, "shift-right-arithmetic", WordKind::elementwise},
    {Word::shift_right_logical, "shift-right-logical", WordKind::elementwise},
    {Word::sign, "sign", WordKind::elementwise},
    {Word::sine, "sine", WordKind::elementwise},
    {Word::sinh, "sinh", WordKind::elementwise},
    {Word::slice, "slice"},
    {Word::sort, "sort"},
    {Word::sqrt, "sqrt", WordKind::elementwise},
    {Word::stochastic_convert, "stochastic-convert", WordKind::elementwise},
    {Word::subtract, "subtract", WordKind::elementwise},
    {Word::tan, "tan", WordKind::elementwise},
    {Word::tanh, "tanh", WordKind::elementwise},
    {Word::topk, "topk"},
    {Word::transpose, "transpose"},
    {Word::triangular_solve, "triangular-solve"},
    {Word::tuple, "tuple", WordKind::free},
    {Word::while_, "while"},
    {Word::xor_, "xor", WordKind::elementwise},
});

constexpr std::size_t opcodes = static_cast<std::size_t>(Word::xor_) + 1;
static_assert(std::size(entries) == opcodes);
constexpr bool in_order() {
  for (std::size_t i = 0; i < opcodes; ++i)
    if (static_cast<std::size_t>(entries[i].opcode) != i) return false;
  return true;
}
static_assert(in_order());

const WordEntry& entry_of(HloOpcode opcode) { return entries[static_cast<std::size_t>(opcode)]; }

const std::unordered_map<std::string_view, HloOpcode>& by_name() {
  static const std::unordered_map<std::string_view, HloOpcode> names = [] {
    std::unordered_map<std::string_view, HloOpcode> all;
    for (std::size_t i = 1; i < opcodes; ++i) all.emplace(entries[i].name, entries[i].opcode);
    return all;
  }();
  return names;
}

}  // namespace

std::string_view name_of(HloOpcode opcode) { return entry_of(opcode).name; }

HloOperation operation_named(std::string_view word) {
  const auto& names = by_name();
  if (const auto found = names.find(word); found != names.end() && found->second != HloOpcode::async) return {found->second, HloPhase::whole};
  constexpr std::array<std::pair<std::string_view, HloPhase>, 3> ends{
      {{"-start", HloPhase::start}, {"-update", HloPhase::update}, {"-done", HloPhase::done}}};
  for (const auto& [end, phase] : ends)
    if (word.ends_with(end))
      if (const auto found = names.find(word.substr(0, word.size() - end.size())); found != names.end()) return {found->second, phase};
  return {};
}

bool is_collective(HloOpcode opcode) { return entry_of(opcode).kind == WordKind::collective; }
bool is_free(HloOpcode opcode) { return entry_of(opcode).kind == WordKind::free; }
bool is_elementwise(HloOpcode opcode) { return entry_of(opcode).kind == WordKind::elementwise; }

}  // namespace podsim
