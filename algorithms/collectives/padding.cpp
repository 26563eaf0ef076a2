// All-reduces of data that the devices do not divide: padded to a multiple, and reduced as all others are.
#include <algorithm>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

std::int64_t group_of(const Collective& collective) {
  std::int64_t devices = 1;
  for (const AxisView& axis : collective.axes) devices *= axis.size;
  return devices;
}

bool divides(const Collective& collective, std::int64_t devices) {
  const auto dim = static_cast<std::size_t>(collective.dim);
  return collective.dim >= 0 && dim < collective.output.dims.size() && collective.output.dims[dim].length % devices == 0;
}

/// Data, and behind it what makes it a multiple of `devices`, in scratch. The padding is never written by the device itself: what it holds is added to
/// other devices' padding, element by element, and to nothing else.
Expected<Expansion> padded(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& algorithm,
                           std::int64_t devices) {
  ProgramBuilder builder{mesh, program};
  const std::int64_t elements = elements_of(collective.input), whole = (elements + devices - 1) / devices * devices;
  const Region all = builder.scratch("padded", {whole}, builder.buffer(collective.input.buffer).dtype);
  Region data = all;
  data.dims.front().length = elements;
  Collective reduced = collective;
  reduced.input = reduced.output = all;
  reduced.dim = 0;
  auto ends = append(builder, algorithm, reduced, alias(builder, collective.input, data, {}), "");
  if (!ends) return ends.error();
  alias(builder, data, collective.output, *std::move(ends));
  return std::move(builder).finish_expansion();
}

}  // namespace

Expected<Expansion> of_any_size(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& algorithm) {
  const std::int64_t devices = group_of(collective);
  auto as_it_is = algorithm(mesh, program, collective);
  if (as_it_is || collective.kind != CollectiveKind::all_reduce || divides(collective, devices)) return as_it_is;
  auto with_padding = padded(mesh, program, collective, algorithm, devices);
  return with_padding ? with_padding : as_it_is;
}

}  // namespace podsim
