#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

std::int64_t block_elements(const Collective& collective, const AxisView& axis) { return elements_of(collective.input) / axis.size; }

/// The regions of an all-to-all along one axis.
struct Exchange {
  AllToAllBlocks blocks;
  Edges start;
  std::int64_t elements;  // of a block
  DType dtype;
};

Expected<Exchange> open(ProgramBuilder& builder, const Collective& collective, const AxisView& axis) {
  Edges start;
  auto blocks = open_all_to_all(builder, collective, axis, start);
  if (!blocks) return blocks.error();
  return Exchange{std::move(*blocks), std::move(start), block_elements(collective, axis), builder.buffer(collective.input.buffer).dtype};
}

Region piece(const Region& flat, std::int64_t begin, std::int64_t length) { return {flat.buffer, {span(begin, length)}}; }

/// The blocks with displacement k ("input block c+k to output block c-k") in a bundle that one direction carries. Rows of E elements in one
/// scratch buffer; the hop of step s carries the rows with displacement s and more, which lie together.
///   +1  rows by increasing displacement, of the antipodal block the first part, at the end
///   -1  rows by decreasing displacement, of the antipodal block the second part, at the beginning
struct Stream {
  int sign;
  int far;                 // the largest displacement it carries
  std::int64_t elements;   // E
  std::int64_t far_begin;  // of the far row, what travels: [far_begin, far_begin + far_length)
  std::int64_t far_length;

  [[nodiscard]] std::int64_t row(int k) const { return (sign > 0 ? k - 1 : far - k) * elements; }
  [[nodiscard]] std::int64_t size() const { return far * elements; }
  /// What is still on its way in step s.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> bundle(int s) const {
    const std::int64_t length = (far - s) * elements + far_length;
    return {sign > 0 ? row(s) : far_begin, length};
  }
};

}  // namespace

Expected<AllToAllBlocks> open_all_to_all(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, Edges& start) {
  Region input = collective.input;
  if (input.buffer == collective.output.buffer) {  // in place: what is sent must not be overwritten
    const Region aside = builder.scratch("sent", lengths_of(input), builder.buffer(input.buffer).dtype);
    start = alias(builder, input, aside, {});
    input = aside;
  }
  auto in = Blocks::make(input, collective.split_dim, axis.size);
  if (!in) return in.error();
  auto out = Blocks::make(collective.output, collective.dim, axis.size);
  if (!out) return out.error();
  alias(builder, in->block(own(axis)), out->block(own(axis)), start);
  return AllToAllBlocks{std::move(*in), std::move(*out)};
}

Expected<Expansion> ring_all_to_all(const Mesh& mesh, const Program& program, const Collective& collective) {
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (auto ok = needs_ring(mesh, *axis); !ok) return ok.error();
  ProgramBuilder builder{mesh, program};
  const auto exchange = open(builder, collective, *axis);
  if (!exchange) return exchange.error();
  const int P = axis->size, h = P / 2;
  const std::int64_t E = exchange->elements;
  // The antipodal block of an even ring goes half each way. Two devices share one cable, and a single element is not cut: all of it goes +1.
  const bool antipodal = P % 2 == 0;
  const bool cut = antipodal && P > 2 && E > 1;
  const std::int64_t first = cut ? (E + 1) / 2 : E;
  std::vector<Stream> streams{{+1, h, E, 0, antipodal ? first : E}};
  if (!antipodal || cut)
    streams.push_back({-1, h, E, antipodal ? first : 0, E - (antipodal ? first : 0)});
  else
    streams.push_back({-1, h - 1, E, 0, E});

  Region antipodal_arrival;
  Edges antipodal_arrived;
  for (const Stream& stream : streams) {
    if (stream.far == 0) continue;
    const char* name = stream.sign > 0 ? "bundle +" : "bundle -";
    const Region bundles[2] = {builder.scratch(fmt::format("{} even", name), {stream.size()}, exchange->dtype),
                               builder.scratch(fmt::format("{} odd", name), {stream.size()}, exchange->dtype)};
    Edges after;
    for (int k = 1; k <= stream.far; ++k)
      after = join(after,
                   alias(builder, exchange->blocks.input.block(own(*axis, stream.sign * k)), piece(bundles[0], stream.row(k), E), exchange->start));
    for (int s = 1; s <= stream.far; ++s) {
      const auto [begin, length] = stream.bundle(s);
      const Region& from = bundles[(s - 1) % 2];
      const Region& to = bundles[s % 2];
      after = builder.step(fmt::format("{}{}", stream.sign > 0 ? '+' : '-', s),
                           Shift{*axis, stream.sign, piece(from, begin, length), piece(to, begin, length), Combine::replace, {}}, after);
      const Region arrival = exchange->blocks.output.block(own(*axis, -stream.sign * s));
      if (!(cut && s == h)) {
        alias(builder, piece(to, stream.row(s), E), arrival, after);
      } else if (stream.sign > 0) {
        antipodal_arrival = piece(to, stream.row(s), E);
        antipodal_arrived = after;
      } else {  // both parts are here: together, and out
        Region rest = antipodal_arrival;
        rest.dims[0].offset += first;
        rest.dims[0].length = E - first;
        const Edges joined = alias(builder, piece(to, stream.row(s) + first, E - first), rest, join(antipodal_arrived, after));
        alias(builder, antipodal_arrival, arrival, join(antipodal_arrived, joined));
      }
    }
  }
  return std::move(builder).finish_expansion();
}

Expected<Expansion> line_all_to_all(const Mesh& mesh, const Program& program, const Collective& collective) {
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  ProgramBuilder builder{mesh, program};
  const auto exchange = open(builder, collective, *axis);
  if (!exchange) return exchange.error();
  const int P = axis->size;
  Edges after[2] = {exchange->start, exchange->start};
  for (int k = 1; k < P; ++k)
    for (const int way : {0, 1}) {
      const int by = way == 0 ? k : -k;
      // The previous step may be absent here, and its edges do not pass on.
      after[way] = builder.step(
          fmt::format("{:+}", by),
          Shift{*axis, by, exchange->blocks.input.block(own(*axis, by)), exchange->blocks.output.block(own(*axis, -by)), Combine::replace, {}},
          join(exchange->start, after[way]), way == 0 ? coordinate_in(*axis, 0, P - k) : coordinate_in(*axis, k, P));
    }
  return std::move(builder).finish_expansion();
}

Expected<Expansion> pairwise(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (collective.kind != CollectiveKind::all_to_all) return unsupported("pairwise", "all-to-all", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  ProgramBuilder builder{mesh, program};
  const auto exchange = open(builder, collective, *axis);
  if (!exchange) return exchange.error();
  const int P = axis->size;
  const std::int64_t E = exchange->elements;
  Edges last = exchange->start;
  for (int k = 1; k < P; ++k) {
    const Region source = exchange->blocks.input.block(own(*axis, k)), target = exchange->blocks.output.block(own(*axis, -k));
    if (2 * k == P && P > 2 && E > 1 && mesh.wraps(*axis)) {  // half each way, cut as a row of elements
      const Region out = builder.scratch("antipodal sent", {E}, exchange->dtype), in = builder.scratch("antipodal received", {E}, exchange->dtype);
      const Edges placed = alias(builder, source, out, last);
      const std::int64_t first = (E + 1) / 2;
      Edges both = builder.step(fmt::format("{:+}", k), Shift{*axis, k, piece(out, 0, first), piece(in, 0, first), Combine::replace, {}}, placed);
      both = join(both, builder.step(fmt::format("{:+}", -k),
                                     Shift{*axis, -k, piece(out, first, E - first), piece(in, first, E - first), Combine::replace, {}}, placed));
      alias(builder, in, target, both);
      last = both;
      continue;
    }
    Edges step;
    for (Hop& hop : rotation(mesh, *axis, k))
      step = join(step,
                  builder.step(fmt::format("{:+}", hop.by), Shift{*axis, hop.by, source, target, Combine::replace, {}}, last, std::move(hop.where)));
    last = step;
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
