#include "validation/calibration/importers/hlo_op.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "validation/calibration/importers/text_lines.hpp"
#include "workloads/hlo/read_hlo.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

void append_arrays(const HloShape& shape, std::vector<HloShape>& arrays) {
  if (shape.is_array()) arrays.push_back(shape);
  for (const HloShape& element : shape.elements) append_arrays(element, arrays);
}

/// The length that all cycles of the pairs have: a permute is then one shift by 1 on rings of that size. 0: there are none, or other chains.
int cycle_of(const std::vector<SourceTarget>& pairs) {
  std::map<std::int64_t, std::int64_t> next;
  for (const auto& [source, target] : pairs)
    if (!next.emplace(source, target).second) return 0;
  int length = 0;
  while (!next.empty()) {
    const std::int64_t begin = next.begin()->first;
    int steps = 0;
    for (std::int64_t device = begin; steps == 0 || device != begin; ++steps) {
      const auto found = next.find(device);
      if (found == next.end()) return 0;
      device = found->second;
      next.erase(found);
    }
    if (length != 0 && steps != length) return 0;
    length = steps;
  }
  return length > 1 && length <= most_observed_devices ? length : 0;
}

std::optional<Bytes> total(const std::vector<HloShape>& shapes) {
  Bytes sum;
  for (const HloShape& shape : shapes) {
    const auto size = size_of(shape);
    if (!size || sum + *size > most_observed_bytes) return std::nullopt;
    sum += *size;
  }
  return sum;
}

/// m and n of a product whose dimensions are these: of all ways to split them the one nearest to a square, the first dimension in m.
std::optional<std::pair<std::int64_t, std::int64_t>> sides(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> real;
  double elements = 1;
  for (const std::int64_t dim : dims)
    if (dim != 1) {
      real.push_back(dim);
      elements *= static_cast<double>(dim);
    }
  if (real.size() < 2 || real.size() > 8 || !(elements > 0) || elements > 0x1p60) return std::nullopt;
  const auto all = static_cast<std::int64_t>(elements);
  std::int64_t best = 0;
  for (unsigned subset = 1; subset + 1 < 1U << real.size(); subset += 2) {  // with the first, without at least one
    std::int64_t m = 1;
    for (std::size_t i = 0; i < real.size(); ++i)
      if ((subset >> i & 1U) != 0) m *= real[i];
    if (best == 0 || std::max(m, all / m) < std::max(best, all / best)) best = m;
  }
  return std::pair{best, all / best};
}

/// k of a product whose operands are stated; nullopt: they are no [m, k] and [k, n].
std::optional<std::int64_t> contraction_of(const HloOp& op, std::int64_t m, std::int64_t n) {
  if ((op.opcode != "dot" && op.opcode != "convolution") || op.operands.size() != 2) return std::nullopt;
  const std::int64_t left = elements_of(op.operands[0]), right = elements_of(op.operands[1]);
  if (m < 1 || n < 1 || left % m != 0 || right % n != 0 || left / m != right / n) return std::nullopt;
  return left / m;
}

}  // namespace

std::optional<Bytes> size_of(const HloShape& shape) {
  const Bytes bytes = logical_bytes(shape);
  if (!shape.is_array() || bytes > most_observed_bytes) return std::nullopt;
  return bytes;
}

std::vector<HloShape> shapes_in(std::string_view text) {
  std::vector<HloShape> shapes;
  for (std::size_t open = text.find('['); open != std::string_view::npos && shapes.size() < 4096; open = text.find('[', open + 1)) {
    std::size_t begin = open;
    while (begin > 0 && open - begin < 16 && std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    if (const auto shape = parse_hlo_shape(text, begin, {}); shape && shape->is_array()) shapes.push_back(*shape);
  }
  return shapes;
}

std::optional<HloOp> parse_hlo_op(std::string_view text) {
  const auto line = parse_hlo_line(text);
  if (!line) return std::nullopt;
  const HloInstruction& instruction = line->instruction;
  const HloAttributes& attributes = *instruction.attributes;
  HloOp op;
  op.name = instruction.name;
  op.opcode = opcode_text(instruction);
  append_arrays(*instruction.shape, op.results);
  for (const auto& shape : line->operand_shapes)
    if (shape) append_arrays(*shape, op.operands);
  if (attributes.replica_groups && !attributes.replica_groups->is_all())
    if (const std::int64_t size = attributes.replica_groups->size(0); size <= most_observed_devices) op.group = static_cast<int>(size);
  if (!attributes.source_target_pairs.empty()) {
    op.group = cycle_of(attributes.source_target_pairs);
    op.open_chain = op.group == 0;
  }
  if (!attributes.dimensions.empty() && attributes.dimensions.front() < 64) op.dimension = static_cast<int>(attributes.dimensions.front());
  return op;
}

std::optional<ObservedOp> observed_op_of(const HloOp& op, std::string_view category) {
  constexpr std::array<std::pair<std::string_view, ObservedOp>, 14> words = {{{"all-gather", all_gather},
                                                                              {"all-gather fusion", all_gather},
                                                                              {"reduce-scatter", reduce_scatter},
                                                                              {"all-reduce-scatter fusion", reduce_scatter},
                                                                              {"all-reduce", all_reduce},
                                                                              {"all-reduce fusion", all_reduce},
                                                                              {"all-to-all", all_to_all},
                                                                              {"collective-permute", ObservedOp::permute},
                                                                              {"collective-broadcast", ObservedOp::broadcast},
                                                                              {"collective-reduce", ObservedOp::reduce},  // podsim's word: HLO has none
                                                                              {"dot", matmul},
                                                                              {"convolution", matmul},
                                                                              {"convolution fusion", matmul},
                                                                              {"megacore fusion", matmul}}};
  for (const std::string_view word : {std::string_view{op.opcode}, category}) {
    const auto found = std::ranges::find(words, word, [](const auto& entry) { return entry.first; });
    if (found != words.end()) return found->second;
  }
  return std::nullopt;
}

Expected<Observation> matmul_of(const std::vector<HloShape>& results, Flops flops, Seconds time) {
  for (const HloShape& shape : results) {
    const auto product = sides(shape.dims);
    if (!product) continue;
    const double exact = flops.count() / (2.0 * static_cast<double>(product->first) * static_cast<double>(product->second));
    const double tiles = 128 * std::round(exact / 128);
    const double k = tiles > 0 && std::abs(exact / tiles - 1) < 0.01 ? tiles : std::round(exact);
    constexpr double most = 1 << 30;
    if (!(k >= 1) || k > most || static_cast<double>(std::max(product->first, product->second)) > most)
      return Diagnostic{{}, "FLOPs that are those of no product of their result"};
    Observation row;
    row.op = matmul;
    row.time = time;
    row.m = product->first;
    row.n = product->second;
    row.k = static_cast<std::int64_t>(k);
    row.dtype = DType::bf16;
    for (const HloShape& any : results)
      if (any.type == HloType::bf16) return row;
    row.dtype = dtype_named(name_of(shape.type));
    return row;
  }
  return Diagnostic{{}, "no result of two dimensions"};
}

Expected<Observation> observation_of(const HloOp& op, const ProfiledOp& profiled, const ImportOptions& options) {
  const auto refused = [](std::string_view why) { return Diagnostic{{}, std::string{why}}; };
  const auto kind = observed_op_of(op, profiled.category);
  if (!kind) return refused("no collective and no matmul");
  if (!(profiled.time > Seconds{}) || !fits_clock(profiled.time)) return refused("no time");
  if (*kind == matmul) {
    if (profiled.category == "megacore fusion" || op.name.find("megacore_fusion") != std::string::npos)
      return refused("matmuls in a megacore fusion, which run on one core");
    if (!(profiled.flops.count() > 0) || !std::isfinite(profiled.flops.count())) return refused("matmuls without FLOPs");
    auto row = matmul_of(op.results, static_cast<double>(options.cores) * profiled.flops, profiled.time);
    if (!row) return row;
    const auto stated = contraction_of(op, row->m, row->n);
    const double flops = static_cast<double>(options.cores) * profiled.flops.count();
    if (stated && 2.0 * static_cast<double>(row->m) * static_cast<double>(row->n) * static_cast<double>(*stated) == flops) row->k = *stated;
    return row;
  }
  const auto results = total(op.results), operands = total(op.operands);
  if (!results || results->count() == 0 || op.results.empty()) return refused("collectives without shapes");
  if (op.open_chain) return refused("permutes that are no rings of one size");
  const bool known = operands && operands->count() > 0;
  int devices = op.group > 0 ? op.group : options.devices;
  if (known && op.group == 0 && (*kind == all_gather || *kind == reduce_scatter)) {
    const std::int64_t large = std::max(results->count(), operands->count()), small = std::min(results->count(), operands->count());
    if (large % small == 0 && large / small <= most_observed_devices) devices = static_cast<int>(large / small);
  }
  if (devices < 1) return refused("collectives of which nothing tells the devices");
  if (devices == 1) return refused("collectives of one device");
  Bytes input = known ? *operands : *results;
  if (!known && *kind == all_gather) input = *results / static_cast<std::int64_t>(devices);
  if (!known && *kind == reduce_scatter) input = static_cast<std::int64_t>(devices) * *results;
  if (input.count() < 1 || input > most_observed_bytes || devices > most_observed_devices) return refused("collectives of a size that cannot be");
  Observation row;
  row.op = *kind;
  row.devices = devices;
  row.bytes = input;
  row.time = profiled.time;
  if (*kind == all_gather || *kind == reduce_scatter) row.array_dim = op.dimension;
  row.dtype = dtype_named(name_of((known ? op.operands : op.results).front().type));
  return row;
}

}  // namespace podsim
