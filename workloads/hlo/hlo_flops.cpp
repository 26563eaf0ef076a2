#include "workloads/hlo/hlo_flops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace podsim {

namespace {

constexpr std::int64_t most_flops = std::int64_t{1} << 62, most_classes = 1 << 20;

// GCC's and clang's integers of 128 bits: sums over positions and taps of 53 bits each.
__extension__ using Wide = __int128;

Wide floor_of(Wide a, Wide b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

/// Sum over i in [0, n) of floor((a*i + b) / m), m > 0; Euclid's algorithm on the slope.
Wide floor_sum(Wide n, Wide m, Wide a, Wide b) {
  Wide sum = 0;
  while (n > 0) {
    const Wide whole_a = floor_of(a, m), whole_b = floor_of(b, m);
    sum += n * (n - 1) / 2 * whole_a + n * whole_b;
    a -= whole_a * m;
    b -= whole_b * m;
    const Wide top = a * n + b;
    if (top < m) break;
    // Lattice points under the line, counted along the other axis.
    n = top / m;
    b = top % m;
    std::swap(m, a);
  }
  return sum;
}

/// How many t in [0, count) have offset + t*step == 0 (mod modulus): first one, and the distance to the next. nullopt if there is none.
struct Residues {
  Wide first = 0, period = 1;
};
std::optional<Residues> residues(Wide offset, Wide step, Wide modulus) {
  offset = ((offset % modulus) + modulus) % modulus;
  step = ((step % modulus) + modulus) % modulus;
  // step * t == -offset (mod modulus) by the extended Euclidean algorithm.
  Wide r0 = modulus, r1 = step, s0 = 0, s1 = 1;
  while (r1 != 0) {
    const Wide q = r0 / r1;
    r0 -= q * r1;
    std::swap(r0, r1);
    s0 -= q * s1;
    std::swap(s0, s1);
  }
  const Wide divisor = r0;  // gcd(step, modulus)
  const Wide target = (modulus - offset) % modulus;
  if (target % divisor != 0) return std::nullopt;
  const Wide period = modulus / divisor;
  const Wide inverse = ((s0 % period) + period) % period;
  return Residues{target / divisor % period * inverse % period, period};
}

/// Pairs (o, t), o in [0, outputs), t in [0, taps), with 0 <= o*stride + t*dilate - low <= last: taps whose index is below a bound, summed over o as
/// differences of floor sums. All factors positive.
Wide pairs_in_range(Wide outputs, Wide taps, Wide stride, Wide dilate, Wide low, Wide last) {
  if (outputs <= 0 || taps <= 0 || last < 0) return 0;
  // For one o the taps t with t*dilate <= x are clamp(floor(x / dilate) + 1, 0, taps); x = bound - o*stride falls with o.
  const auto below = [&](Wide bound) {
    // o for which x >= 0: [0, some); of those the first ones have all the taps.
    if (bound < 0) return Wide{0};
    const Wide some = std::min(outputs, bound / stride + 1);
    const Wide full_at = bound - (taps - 1) * dilate;  // all taps while o*stride <= this
    const Wide full = full_at < 0 ? 0 : std::min(some, full_at / stride + 1);
    // The rest backwards: o = some-1-i has x = bound - (some-1)*stride + i*stride >= 0.
    return full * taps + floor_sum(some - full, dilate, stride, bound - (some - 1) * stride) + (some - full);
  };
  return below(low + last) - below(low - 1);
}

Wide saturated(Wide value) { return std::min<Wide>(value, most_flops); }

std::int64_t extent_of(const HloShape& shape, int dimension) { return shape.dims[static_cast<std::size_t>(dimension)]; }

bool in_rank(const HloShape& shape, std::int64_t dimension) { return dimension >= 0 && static_cast<std::size_t>(dimension) < shape.rank(); }

/// The product of factors, or nullopt beyond the limit.
std::optional<std::int64_t> product_below(std::initializer_list<std::int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product) || product > most_flops) return std::nullopt;
  return product;
}

Expected<HloProduct> counted_product(HloProduct product, const SourceLocation& where) {
  const auto flops = product_below({2, product.batch, product.m, product.n, product.k});
  if (!flops) return Diagnostic{where, "expected a product of at most 2^62 FLOPs"};
  product.flops = *flops;
  return product;
}

Expected<HloProduct> dot_product(const HloAttributes& attributes, const HloShape& left, const HloShape& right, const HloShape& result,
                                 const SourceLocation& where) {
  if (attributes.lhs_contracting.size() != attributes.rhs_contracting.size() || attributes.lhs_batch.size() != attributes.rhs_batch.size())
    return Diagnostic{where, "expected as many contracting and batch dimensions of the left as of the right operand of a dot"};
  const auto read = [&](const std::vector<std::int64_t>& lefts, const std::vector<std::int64_t>& rights, std::vector<bool>& used_left,
                        std::vector<bool>& used_right) -> std::optional<std::int64_t> {
    std::int64_t extent = 1;
    for (std::size_t i = 0; i < lefts.size(); ++i) {
      if (!in_rank(left, lefts[i]) || !in_rank(right, rights[i])) return std::nullopt;
      const auto l = static_cast<std::size_t>(lefts[i]), r = static_cast<std::size_t>(rights[i]);
      if (used_left[l] || used_right[r] || left.dims[l] != right.dims[r]) return std::nullopt;
      used_left[l] = used_right[r] = true;
      const auto next = product_below({extent, std::max<std::int64_t>(left.dims[l], 0)});
      if (!next) return std::nullopt;
      extent = *next;
    }
    return extent;
  };
  std::vector<bool> used_left(left.rank()), used_right(right.rank());
  const auto batch = read(attributes.lhs_batch, attributes.rhs_batch, used_left, used_right);
  const auto k = read(attributes.lhs_contracting, attributes.rhs_contracting, used_left, used_right);
  if (!batch || !k)
    return Diagnostic{where,
                      fmt::format("expected contracting and batch dimensions that both operands of the dot have, alike and once, got {} and {}",
                                  cut_text(left), cut_text(right))};
  const auto rest = [](const HloShape& shape, const std::vector<bool>& used) -> std::optional<std::int64_t> {
    std::int64_t extent = 1;
    for (std::size_t d = 0; d < shape.rank(); ++d) {
      const auto next = used[d] ? extent : product_below({extent, std::max<std::int64_t>(shape.dims[d], 0)});
      if (!next) return std::nullopt;
      extent = *next;
    }
    return extent;
  };
  const auto m = rest(left, used_left), n = rest(right, used_right);
  if (!m || !n) return Diagnostic{where, "expected a product of at most 2^62 FLOPs"};
  const auto results = product_below({*batch, *m, *n});
  if (!results || *results != elements_of(result))
    return Diagnostic{where,
                      fmt::format("expected a result of {} elements of this dot, got {}", results.value_or(0), cut_text(result))};
  return counted_product({*batch, *m, *n, *k}, where);
}

Expected<HloProduct> convolution_product(const HloAttributes& attributes, const HloShape& input, const HloShape& kernel, const HloShape& output,
                                         const SourceLocation& where) {
  if (!attributes.convolution) return Diagnostic{where, "expected dim_labels of a convolution"};
  const HloConvolutionDims& dims = *attributes.convolution;
  const std::size_t spatial = dims.input_spatial.size(), rank = spatial + 2;
  if (input.rank() != rank || kernel.rank() != rank || output.rank() != rank)
    return Diagnostic{where, fmt::format("expected operands and a result of {} dimensions, as dim_labels has, got {}, {} and {}", rank, input.rank(),
                                         kernel.rank(), output.rank())};
  // A window that is left out is one of size 1 in each dimension.
  if (!attributes.window.empty() && attributes.window.size() != spatial)
    return Diagnostic{where, fmt::format("expected a window of {} dimensions, got {}", spatial, attributes.window.size())};
  const std::int64_t in_features = extent_of(input, dims.input_feature), kernel_inputs = extent_of(kernel, dims.kernel_input);
  const std::int64_t out_features = extent_of(output, dims.output_feature), out_batch = extent_of(output, dims.output_batch);
  const std::int64_t groups = attributes.feature_group_count, batch_groups = attributes.batch_group_count;
  // kernel_inputs is that of one group.
  if (kernel_inputs < 0 || in_features != kernel_inputs * groups || extent_of(kernel, dims.kernel_output) != out_features || out_features < 0 ||
      out_batch < 0)
    return Diagnostic{where, fmt::format("expected features that agree, got {} x {} -> {}", short_text(input).substr(0, 100),
                                         short_text(kernel).substr(0, 100), short_text(output).substr(0, 100))};
  if (out_features % groups != 0 || (batch_groups > 1 && (groups > 1 || out_features % batch_groups != 0)))
    return Diagnostic{where, fmt::format("expected output features that the {} groups divide, got {}", std::max(groups, batch_groups), out_features)};

  // Each group multiplies its own features. Of batch groups every output feature sees the batch of its group alone, which the output's batch tells.
  const std::int64_t all_groups = std::max(groups, batch_groups);
  HloProduct product{all_groups, out_batch, out_features / all_groups, kernel_inputs};
  for (std::size_t d = 0; d < spatial; ++d) {
    const HloWindowDimension window = attributes.window.empty() ? HloWindowDimension{} : attributes.window[d];
    if (extent_of(kernel, dims.kernel_spatial[d]) != window.size)
      return Diagnostic{where, fmt::format("expected a window of size {} in spatial dimension {}, as the kernel has, got {}",
                                           extent_of(kernel, dims.kernel_spatial[d]), d, window.size)};
    const std::int64_t outputs = extent_of(output, dims.output_spatial[d]);
    const auto taps = valid_taps(window, extent_of(input, dims.input_spatial[d]), outputs);
    if (!taps) return Diagnostic{where, fmt::format("expected an lhs_dilate whose valid taps can be counted, got {}", window.lhs_dilate)};
    const bool even = outputs > 0 && *taps % outputs == 0;
    const auto m = product_below({product.m, even ? outputs : *taps}), k = product_below({product.k, even ? *taps / outputs : 1});
    if (!m || !k) return Diagnostic{where, "expected a product of at most 2^62 FLOPs"};
    product.m = *m;
    product.k = *k;
  }
  return counted_product(product, where);
}

}  // namespace

std::optional<std::int64_t> valid_taps(const HloWindowDimension& window, std::int64_t inputs, std::int64_t outputs) {
  if (inputs <= 0 || outputs <= 0 || window.size <= 0) return 0;
  const Wide last = Wide{inputs - 1} * window.lhs_dilate;
  if (window.lhs_dilate == 1)
    return static_cast<std::int64_t>(saturated(pairs_in_range(outputs, window.size, window.stride, window.rhs_dilate, window.pad_low, last)));
  // Only indices that lhs_dilate divides are elements. Positions and taps play the same part: those that are alike modulo the dilation are taken
  // together, on the side where there are fewer of them. For one of them every `period`-th of the others hits an element, from `first` on.
  struct Side {
    std::int64_t count, step;
  };
  const auto classes = [&](const Side& side) { return std::min(side.count, window.lhs_dilate / std::gcd(window.lhs_dilate, side.step)); };
  Side each{outputs, window.stride}, others{window.size, window.rhs_dilate};
  if (classes(others) < classes(each)) std::swap(each, others);
  if (classes(each) > most_classes) return std::nullopt;
  const Wide dilation = window.lhs_dilate, distance = window.lhs_dilate / std::gcd(window.lhs_dilate, each.step);
  Wide sum = 0;
  for (Wide i = 0; i < classes(each); ++i) {
    const auto hits = residues(i * each.step - window.pad_low, others.step, dilation);
    if (!hits || hits->first >= others.count) continue;
    const Wide alike = (each.count - 1 - i) / distance + 1, hit = (others.count - 1 - hits->first) / hits->period + 1;
    sum += pairs_in_range(alike, hit, distance * each.step, hits->period * others.step, window.pad_low - i * each.step - hits->first * others.step,
                          last);
  }
  return static_cast<std::int64_t>(saturated(sum));
}

Expected<HloProduct> product_of(const HloInstruction& product, const HloShape& left, const HloShape& right, const SourceLocation& where) {
  if (product.opcode == HloOpcode::dot) return dot_product(*product.attributes, left, right, *product.shape, where);
  if (product.opcode == HloOpcode::convolution) return convolution_product(*product.attributes, left, right, *product.shape, where);
  return Diagnostic{where, fmt::format("expected a dot or a convolution, got {}", opcode_text(product))};
}

Expected<HloProduct> product_of(const HloModule& module, const HloComputation& computation, const HloInstruction& product) {
  const SourceLocation where = module.where(product);
  if (product.operands.size() < 2) return Diagnostic{where, fmt::format("expected two operands of a product, got {}", product.operands.size())};
  for (std::size_t i = 0; i < 2; ++i)
    if (product.operands[i] == HloInstruction::missing) return Diagnostic{where, "expected operands that the module has"};
  const auto shape = [&](std::size_t i) -> const HloShape& { return *computation.instructions[static_cast<std::size_t>(product.operands[i])].shape; };
  return product_of(product, shape(0), shape(1), where);
}

}  // namespace podsim
