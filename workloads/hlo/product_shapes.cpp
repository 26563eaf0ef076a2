// Shapes of products: dots, convolutions.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "workloads/hlo/shape_rule.hpp"

namespace podsim {

namespace {

__extension__ typedef __int128 Wide;

/// Truths are added up as whole numbers; real numbers, as libtpu makes them also of whole ones, are no whole ones again.
bool has_kind(const HloShape& result, const HloShape& lhs, const HloShape& rhs) {
  const auto any = [&](bool (*is)(HloType)) { return is(lhs.type) || is(rhs.type); };
  return is_complex(result.type) ? any(is_complex) : !any(is_complex) && (is_float(result.type) || any(is_integer));
}

ShapeProblem result_has(const ShapeDims& wanted, const HloShape& lhs, const HloShape& rhs, const HloShape& result) {
  if (wanted != result.dims) return fmt::format("expected a result of {}, got {}", cut_text(wanted), cut_text(result));
  if (has_kind(result, lhs, rhs)) return {};
  return fmt::format("expected a result of the kind of its operands, {} and {}, got {}", cut_text(lhs), cut_text(rhs), cut_text(result));
}

}  // namespace

ShapeProblem dot_shape_problem(const HloAttributes& attributes, const HloShape& lhs, const HloShape& rhs, const HloShape& result) {
  const auto &a = attributes.lhs_contracting, &b = attributes.rhs_contracting;
  const auto within = [](const ShapeDims& dims, const HloShape& shape) { return std::ranges::all_of(dims, [&](std::int64_t d) { return d >= 0 && static_cast<std::size_t>(d) < shape.rank(); }); };
  if (!within(a, lhs) || !within(attributes.lhs_batch, lhs)) return fmt::format("expected dimensions of {}, got {}", cut_text(lhs), cut_text(a));
  if (!within(b, rhs) || !within(attributes.rhs_batch, rhs)) return fmt::format("expected dimensions of {}, got {}", cut_text(rhs), cut_text(b));
  const auto of = [](const ShapeDims& dims, const HloShape& shape) {
    ShapeDims lengths;
    for (const std::int64_t d : dims) lengths.push_back(shape.dims[static_cast<std::size_t>(d)]);
    return lengths;
  };
  if (of(a, lhs) != of(b, rhs) || of(attributes.lhs_batch, lhs) != of(attributes.rhs_batch, rhs))
    return fmt::format("expected operands that agree on what is contracted and on batches, got {} and {}", cut_text(lhs), cut_text(rhs));
  ShapeDims wanted = of(attributes.lhs_batch, lhs);
  for (const auto& [shape, contracting, batch] : {std::tie(lhs, a, attributes.lhs_batch), std::tie(rhs, b, attributes.rhs_batch)}) {
    ShapeDims used = contracting;
    used.insert(used.end(), batch.begin(), batch.end());
    std::ranges::copy(dims_without(shape.dims, used), std::back_inserter(wanted));
  }
  return result_has(wanted, lhs, rhs, result);
}

ShapeProblem convolution_shape_problem(const HloAttributes& attributes, const HloShape& input, const HloShape& kernel, const HloShape& result) {
  if (!attributes.convolution) return {};
  const HloConvolutionDims& at = *attributes.convolution;
  const std::size_t spatial = at.input_spatial.size();
  if (input.rank() != spatial + 2 || kernel.rank() != spatial + 2 || result.rank() != spatial + 2)
    return fmt::format("expected {} dimensions as in dim_labels, got {}, {} and {}", spatial + 2, cut_text(input), cut_text(kernel), cut_text(result));
  const auto length = [](const HloShape& shape, int dim) { return shape.dims[static_cast<std::size_t>(dim)]; };
  if (length(input, at.input_feature) != Wide{length(kernel, at.kernel_input)} * attributes.feature_group_count)
    return fmt::format("expected operands that agree on input features, got {} and {}", cut_text(input), cut_text(kernel));
  ShapeDims wanted(spatial + 2);
  const auto wants = [&](int dim, std::int64_t extent) { wanted[static_cast<std::size_t>(dim)] = extent; };
  wants(at.output_batch, length(input, at.input_batch) / std::max<std::int64_t>(attributes.batch_group_count, 1));
  wants(at.output_feature, length(kernel, at.kernel_output));
  for (std::size_t d = 0; d < spatial; ++d) {
    const HloWindowDimension window = d < attributes.window.size() ? attributes.window[d] : HloWindowDimension{};
    if (window.size != length(kernel, at.kernel_spatial[d])) return fmt::format("expected a window of the kernel {}, got {} places along dimension {}", cut_text(kernel), window.size, d);
    wants(at.output_spatial[d], window_places(window, length(input, at.input_spatial[d])));
  }
  return result_has(wanted, input, kernel, result);
}

}  // namespace podsim
