// Custom-calls of libraries: what XLA's compilers leave to a kernel whose meaning is known.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "workloads/hlo/shared_value.hpp"
#include "workloads/hlo_values/array_operation.hpp"

namespace podsim {

namespace {

bool is_tuple_of(const HloShape& shape, std::size_t count) { return shape.is_tuple() && shape.elements.size() >= count; }

/// The largest of each row, the largest first; of equal ones the first comes first, and NaN is above all. Source: jax.lax.top_k.
Expected<HloArrays> top_k(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  const HloShape& shape = operation.shape();
  if (!is_tuple_of(shape, 2) || x.dims.empty() || is_complex(x.type) || shape.elements[0].rank() != x.dims.size() || !is_integer(shape.elements[1].type) || shape.elements[1].dims != shape.elements[0].dims)
    return operation.error(fmt::format("expected values and their indices of {}, got {}", short_text(x), cut_text(shape)));
  std::vector<std::int64_t> rows = x.dims;
  rows.back() = shape.elements[0].dims.back();
  const auto row = to_size(x.dims.back()), k = to_size(rows.back());
  if (rows != shape.elements[0].dims || k > row) return operation.error(fmt::format("expected the largest of each row of {}, got {}", short_text(x), cut_text(shape)));
  if (const auto ok = operation.spend(static_cast<double>(elements_of(x)) * (1 + std::log2(static_cast<double>(std::max<std::size_t>(row, 1))))); !ok) return ok.error();
  HloArray values = zeros(x.type, rows), indices = zeros(shape.elements[1].type, rows);
  const auto above = [&](std::size_t a, std::size_t b) {
    if (is_unsigned(x.type)) return static_cast<std::uint64_t>(x.integers[a]) > static_cast<std::uint64_t>(x.integers[b]);
    if (is_integer(x.type)) return x.integers[a] > x.integers[b];
    return std::isnan(x.reals[a]) ? !std::isnan(x.reals[b]) : x.reals[a] > x.reals[b];
  };
  std::vector<std::size_t> order(row);
  for (std::size_t first = 0, to = 0; row > 0 && first < to_size(elements_of(x)); first += row, to += k) {
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(), above);
    for (std::size_t i = 0; i < k; ++i) {
      if (is_integer(x.type)) values.integers[to + i] = x.integers[order[i]];
      else values.reals[to + i] = x.reals[order[i]];
      indices.integers[to + i] = wrapped(indices.type, order[i] - first);
    }
  }
  return HloArrays{std::move(values), std::move(indices)};
}

/// Numbers of 64 bits as two of 32 on TPUs: the low and the high half of a whole number, the real and the imaginary part of a complex one.
Expected<HloArrays> half(const ArrayOperation& operation, bool high) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  HloArray result = zeros(operation.shape().type, x.dims);
  if (is_complex(x.type) && is_float(result.type)) {
    result.reals = high ? x.imaginaries : x.reals;
  } else if (is_integer(x.type) && bits_of(x.type) == 64 && is_integer(result.type)) {
    for (std::size_t i = 0; i < x.integers.size(); ++i) result.integers[i] = wrapped(result.type, static_cast<std::uint64_t>(x.integers[i]) >> (high ? 32 : 0));
  } else {
    return operation.error(fmt::format("half of {} as {} is not interpreted", short_text(x), cut_text(operation.shape())));
  }
  return HloArrays{std::move(result)};
}
Expected<HloArrays> low_half(const ArrayOperation& operation) { return half(operation, false); }
Expected<HloArrays> high_half(const ArrayOperation& operation) { return half(operation, true); }

Expected<HloArrays> of_halves(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  const HloArray &low = operation.operand(0), &high = operation.operand(1);
  const HloType type = operation.shape().type;
  const bool complex = is_complex(type) && is_float(low.type) && is_float(high.type), whole = is_integer(type) && bits_of(type) == 64 && is_integer(low.type) && is_integer(high.type);
  if (low.dims != high.dims || (!complex && !whole))
    return operation.error(fmt::format("{} of the halves {} and {} is not interpreted", cut_text(operation.shape()), short_text(low), short_text(high)));
  HloArray result = zeros(type, low.dims);
  if (complex) {
    result.reals = low.reals;
    result.imaginaries = high.reals;
  }
  constexpr std::uint64_t lower = 0xffffffff;
  for (std::size_t i = 0; i < result.integers.size(); ++i)
    result.integers[i] = wrapped(type, (static_cast<std::uint64_t>(low.integers[i]) & lower) | static_cast<std::uint64_t>(high.integers[i]) << 32);
  return HloArrays{std::move(result)};
}

using Activation = double (*)(double x, double slope);
/// By activation_mode of cudnn_conv_backend_config; nullptr: another one. Source: cuDNN's API reference, cudnnActivationMode_t.
Activation activation_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Activation>, 7> table{{{"kNone", [](double x, double) { return x; }},
                                                                          {"kRelu", [](double x, double) { return x < 0 ? 0.0 : x; }},
                                                                          {"kRelu6", [](double x, double) { return x < 0 ? 0.0 : x > 6 ? 6.0 : x; }},
                                                                          {"kElu", [](double x, double) { return x < 0 ? std::expm1(x) : x; }},
                                                                          {"kLeakyRelu", [](double x, double slope) { return x < 0 ? slope * x : x; }},
                                                                          {"kSigmoid", [](double x, double) { return 1 / (1 + std::exp(-x)); }},
                                                                          {"kTanh", [](double x, double) { return std::tanh(x); }}}};
  const auto* const found = std::ranges::find(table, name, &std::pair<std::string_view, Activation>::first);
  return found == table.end() ? nullptr : found->second;
}

/// activation(scale * convolution + side_scale * side input + bias), the bias by output feature. The second result is the library's workspace. Source: openxla/xla
/// xla/service/gpu/cublas_cudnn.h names the calls and their operands.
Expected<HloArrays> cudnn_convolution(const ArrayOperation& operation, Convolved makes, bool with_bias) {
  const HloShape& shape = operation.shape();
  const std::size_t operands = operation.operands.size();
  if (!is_tuple_of(shape, 2) || operands < 2 || operands > (with_bias ? 4U : 2U)) return operation.not_interpreted();
  const HloShape& made_shape = shape.elements.front();
  const HloLibraryProduct call = operation.attributes().library_product.value_or(HloLibraryProduct{.activation = "kNone"});
  const Activation activation = activation_named(call.activation);
  if (activation == nullptr) return operation.error(fmt::format("the activation {} is not interpreted", quoted(call.activation)));
  auto convolved = convolve(operation, makes, operation.operand(0), operation.operand(1), made_shape);
  if (!convolved) return convolved.error();
  HloArray& result = *convolved;
  if (!is_float(result.type)) return operation.error(fmt::format("a convolution of {} by this library is not interpreted", short_text(result)));
  const auto feature = with_bias ? to_size(operation.attributes().convolution->output_feature) : 0;
  const std::int64_t features = result.dims[feature];
  std::int64_t apart = 1;
  for (std::size_t d = feature + 1; d < result.dims.size(); ++d) apart *= result.dims[d];
  const HloArray* const bias = operands > 2 ? &operation.operand(2) : nullptr;
  const HloArray* const side = operands > 3 ? &operation.operand(3) : nullptr;
  if ((bias != nullptr && (!is_float(bias->type) || elements_of(*bias) != features)) || (side != nullptr && (!is_float(side->type) || side->dims != result.dims)))
    return operation.error(fmt::format("expected a bias for each of {} features and a side input like {}", features, short_text(result)));
  const bool is_plain = call.result_scale == 1 && bias == nullptr && side == nullptr && call.activation == "kNone";
  for (std::size_t i = 0; !is_plain && i < result.reals.size(); ++i) {
    double value = call.result_scale * result.reals[i], absolutes = std::fabs(value);
    const auto add = [&](double term) { value += term, absolutes += std::fabs(term); };
    if (side != nullptr) add(call.side_scale * side->reals[i]);
    if (bias != nullptr) add(bias->reals[to_size(static_cast<std::int64_t>(i) / apart % features)]);
    note_sum(operation.arithmetic, finite_or_zero(absolutes));
    result.reals[i] = rounded(operation.arithmetic, result.type, activation(value, call.leaky_slope));
  }
  HloArrays results{std::move(result)};
  for (std::size_t e = 1; e < shape.elements.size(); ++e) results.push_back(zeros(shape.elements[e].type, shape.elements[e].dims));
  return results;
}
/// alpha * dot + beta * side input; the second result is the library's workspace. Without an epilogue: others are none of what XLA writes without autotuning.
Expected<HloArrays> cublas_product(const ArrayOperation& operation) {
  const HloShape& shape = operation.shape();
  const HloLibraryProduct call = operation.attributes().library_product.value_or(HloLibraryProduct{.activation = "DEFAULT"});
  const std::size_t operands = call.side_scale != 0 ? 3 : 2;
  if (!is_tuple_of(shape, 1) || call.activation != "DEFAULT" || call.result_scale_imaginary != 0)
    return operation.error(fmt::format("a product of this library with the epilogue {} is not interpreted", quoted(call.activation)));
  if (const auto ok = operation.takes(operands); !ok) return ok.error();
  HloInstruction instruction = operation.instruction;
  instruction.shape = SharedValue<HloShape>{shape.elements.front()};
  const std::vector<const HloArray*> factors{operation.operands[0], operation.operands[1]};
  const ArrayOperation dot{operation.module, operation.computation, instruction, factors, operation.arithmetic, operation.budget, operation.call};
  auto results = is_complex(instruction.shape->type) ? complex_product(dot, dot_operation) : dot_operation(dot);
  if (!results) return results.error();
  HloArray& result = results->front();
  const HloArray* const side = operands > 2 ? &operation.operand(2) : nullptr;
  if (side != nullptr && (side->dims != result.dims || !mixes(side->type, result.type))) return operation.error(fmt::format("expected a side input like {}, got {}", short_text(result), short_text(*side)));
  if (call.result_scale != 1 || side != nullptr) {
    if (!has_reals(result.type)) return operation.not_interpreted();
    const auto scale = [&](std::vector<double>& values, const std::vector<double>* sides) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double product = call.result_scale * values[i], more = sides == nullptr ? 0 : call.side_scale * (*sides)[i];
        note_sum(operation.arithmetic, finite_or_zero(std::fabs(product) + std::fabs(more)));
        values[i] = rounded(operation.arithmetic, part_of(result.type), product + more);
      }
    };
    scale(result.reals, side == nullptr ? nullptr : &side->reals);
    scale(result.imaginaries, side == nullptr ? nullptr : &side->imaginaries);
  }
  for (std::size_t e = 1; e < shape.elements.size(); ++e) results->push_back(zeros(shape.elements[e].type, shape.elements[e].dims));
  return results;
}

Expected<HloArrays> cudnn_forward(const ArrayOperation& operation) { return cudnn_convolution(operation, Convolved::output, false); }
Expected<HloArrays> cudnn_forward_with_bias(const ArrayOperation& operation) { return cudnn_convolution(operation, Convolved::output, true); }
Expected<HloArrays> cudnn_input_gradient(const ArrayOperation& operation) { return cudnn_convolution(operation, Convolved::input, false); }
Expected<HloArrays> cudnn_kernel_gradient(const ArrayOperation& operation) { return cudnn_convolution(operation, Convolved::kernel, false); }

}  // namespace

LibraryCall library_call(std::string_view target) {
  constexpr std::array<std::pair<std::string_view, LibraryCall>, 11> table{{{"ConcatBitcast", memory_operation},
                                                                           {"TopK", top_k},
                                                                           {"X64Combine", of_halves},
                                                                           {"X64SplitHigh", high_half},
                                                                           {"X64SplitLow", low_half},
                                                                           {"__cublas$gemm", cublas_product},
                                                                           {"__cublas$lt$matmul", cublas_product},
                                                                           {"__cudnn$convBackwardFilter", cudnn_kernel_gradient},
                                                                           {"__cudnn$convBackwardInput", cudnn_input_gradient},
                                                                           {"__cudnn$convBiasActivationForward", cudnn_forward_with_bias},
                                                                           {"__cudnn$convForward", cudnn_forward}}};
  const auto* const found = std::ranges::find(table, target, &std::pair<std::string_view, LibraryCall>::first);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace podsim
