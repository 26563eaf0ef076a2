#include "validation/calibration/importers/hlo_op.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

// Bits of an element.
constexpr std::array<std::pair<std::string_view, int>, 20> element_bits = {
    {{"pred", 8}, {"s4", 4},   {"s8", 8},       {"s16", 16},   {"s32", 32},          {"s64", 64},  {"u4", 4},
     {"u8", 8},   {"u16", 16}, {"u32", 32},     {"u64", 64},   {"f16", 16},          {"bf16", 16}, {"f32", 32},
     {"f64", 64}, {"c64", 64}, {"f8e4m3fn", 8}, {"f8e5m2", 8}, {"f8e4m3b11fnuz", 8}, {"c128", 128}}};

std::optional<std::int64_t> number_at(std::string_view& text) {
  std::int64_t value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return value;
}

/// The position behind the bracket that closes the one at `begin`, or the end of the text.
std::size_t behind_bracket(std::string_view text, std::size_t begin) {
  int depth = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == '(' || text[at] == '{' || text[at] == '[') ++depth;
    if ((text[at] == ')' || text[at] == '}' || text[at] == ']') && --depth == 0) return at + 1;
  }
  return text.size();
}

/// Behind `name` and its "=" in the attributes; empty if it is not there.
std::string_view attribute(std::string_view text, std::string_view name) {
  const std::string key = std::string{name} + '=';
  const std::size_t at = text.find(key);
  return at == std::string_view::npos ? std::string_view{} : text.substr(at + key.size());
}

/// Devices of the first group: {{0,1,2,3},{4,5,6,7}} or [8,4]<=[32]; 0: all, however many those are.
int group_size(std::string_view groups) {
  if (groups.starts_with('[')) {
    groups.remove_prefix(1);
    std::int64_t last = 0;
    while (const auto number = number_at(groups)) {
      last = *number;
      if (!groups.starts_with(',')) break;
      groups.remove_prefix(1);
    }
    return last > 0 && last <= most_observed_devices ? static_cast<int>(last) : 0;
  }
  if (!groups.starts_with("{{")) return 0;
  const std::string_view group = groups.substr(2, groups.find('}') - 2);
  return group.empty() ? 0 : static_cast<int>(std::min<std::ptrdiff_t>(std::ranges::count(group, ',') + 1, most_observed_devices));
}

/// The length that all cycles of the pairs have: a permute is then one shift by 1 on rings of that size. 0: there are none, or other chains.
int cycle_of(std::string_view pairs) {
  pairs = pairs.substr(0, behind_bracket(pairs, 0));
  std::map<std::int64_t, std::int64_t> next;
  for (std::size_t at = 0; (at = pairs.find_first_of("0123456789", at)) != std::string_view::npos;) {
    std::string_view rest = pairs.substr(at);
    const auto from = number_at(rest);
    if (!from || !rest.starts_with(',')) return 0;
    rest.remove_prefix(1);
    const auto to = number_at(rest);
    if (!to || !next.emplace(*from, *to).second) return 0;
    at = pairs.size() - rest.size();
  }
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

}  // namespace

std::optional<Bytes> size_of(const HloShape& shape) {
  const auto found = std::ranges::find(element_bits, std::string_view{shape.dtype}, [](const auto& type) { return type.first; });
  if (found == element_bits.end()) return std::nullopt;
  double bits = found->second;
  for (const std::int64_t dim : shape.dims) bits *= static_cast<double>(dim);
  const double bytes = std::ceil(bits / 8);
  if (!(bytes >= 0) || bytes > static_cast<double>(most_observed_bytes.count())) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(bytes)};
}

std::vector<HloShape> shapes_in(std::string_view text) {
  std::vector<HloShape> shapes;
  for (std::size_t open = text.find('['); open != std::string_view::npos && shapes.size() < 4096; open = text.find('[', open + 1)) {
    std::size_t begin = open;
    while (begin > 0 && open - begin < 16 && std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    HloShape shape{std::string{text.substr(begin, open - begin)}, {}};
    std::string_view rest = text.substr(open + 1);
    bool closed = rest.starts_with(']');
    while (!closed && shape.dims.size() < 64) {
      if (rest.starts_with("<=")) rest.remove_prefix(2);
      const auto dim = number_at(rest);
      if (!dim || *dim < 0) break;
      shape.dims.push_back(*dim);
      closed = rest.starts_with(']');
      if (!closed && !rest.starts_with(',')) break;
      if (!closed) rest.remove_prefix(1);
    }
    const bool known =
        std::ranges::find(element_bits, std::string_view{shape.dtype}, [](const auto& type) { return type.first; }) != element_bits.end();
    if (closed && known) shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::optional<HloOp> parse_hlo_op(std::string_view text) {
  HloOp op;
  if (text.starts_with("ROOT ")) text.remove_prefix(5);
  if (text.starts_with('%')) text.remove_prefix(1);
  const std::size_t equals = text.find(" = ");
  if (equals == std::string_view::npos || !std::ranges::all_of(text.substr(0, equals), is_word)) return std::nullopt;
  op.name = std::string{text.substr(0, equals)};
  text.remove_prefix(equals + 3);

  const std::size_t space = text.starts_with('(') ? behind_bracket(text, 0) : text.find(' ');
  if (space >= text.size()) return std::nullopt;
  op.results = shapes_in(text.substr(0, space));
  text.remove_prefix(text.find_first_not_of(' ', space) == std::string_view::npos ? text.size() : text.find_first_not_of(' ', space));

  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || open == 0 || !std::ranges::all_of(text.substr(0, open), is_word)) return std::nullopt;
  op.opcode = std::string{text.substr(0, open)};
  const std::size_t close = behind_bracket(text, open);
  op.operands = shapes_in(text.substr(open, close - open));

  const std::string_view attributes = text.substr(close);
  op.group = group_size(attribute(attributes, "replica_groups"));
  if (const std::string_view pairs = attribute(attributes, "source_target_pairs"); !pairs.empty()) {
    op.group = cycle_of(pairs);
    op.open_chain = op.group == 0;
  }
  if (std::string_view dimensions = attribute(attributes, " dimensions"); dimensions.starts_with('{')) {
    dimensions.remove_prefix(1);
    if (const auto dimension = number_at(dimensions); dimension && *dimension >= 0 && *dimension < 64) op.dimension = static_cast<int>(*dimension);
  }
  return op;
}

std::optional<ObservedOp> observed_op_of(const HloOp& op, std::string_view category) {
  constexpr std::array<std::pair<std::string_view, ObservedOp>, 12> words = {{{"all-gather", all_gather},
                                                                              {"all-gather fusion", all_gather},
                                                                              {"reduce-scatter", reduce_scatter},
                                                                              {"all-reduce-scatter fusion", reduce_scatter},
                                                                              {"all-reduce", all_reduce},
                                                                              {"all-reduce fusion", all_reduce},
                                                                              {"all-to-all", all_to_all},
                                                                              {"collective-permute", ObservedOp::permute},
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
      if (any.dtype == "bf16") return row;
    row.dtype = dtype_named(shape.dtype);
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
    return matmul_of(op.results, static_cast<double>(options.cores) * profiled.flops, profiled.time);
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
  row.dtype = dtype_named((known ? op.operands : op.results).front().dtype);
  return row;
}

}  // namespace podsim
