#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// All pairs as transfers along one axis.
struct Shifts {
  AxisView axis;
  std::vector<Hop> hops;  // none: every position keeps its own
};

/// Nullopt: the pairs are no rotation of all positions along one axis, and no shift along it of all that have a target.
std::optional<Shifts> shifts_of(const Mesh& mesh, const Collective& collective) {
  std::int64_t positions = 1;
  for (const AxisView& axis : collective.axes) positions *= axis.size;
  std::vector<int> by;           // by axis, around it
  std::optional<int> distance;   // along the one axis, as it is
  bool is_even = true;           // the same for all pairs
  std::size_t along = 0;
  for (const Collective::Pair& pair : collective.pairs) {
    const std::vector<int> from = coordinates_of(collective.axes, pair.from), to = coordinates_of(collective.axes, pair.to);
    std::vector<int> moved(to.size());
    for (std::size_t i = 0; i < to.size(); ++i) moved[i] = (to[i] - from[i] + collective.axes[i].size) % collective.axes[i].size;
    if (by.empty()) {
      by = moved;
      const auto moves = [](int steps) { return steps != 0; };
      if (std::count_if(by.begin(), by.end(), moves) > 1) return std::nullopt;
      along = std::min<std::size_t>(static_cast<std::size_t>(std::find_if(by.begin(), by.end(), moves) - by.begin()), by.size() - 1);
    }
    if (moved != by) return std::nullopt;
    const int here = to[along] - from[along];
    is_even = is_even && here == distance.value_or(here);
    distance = here;
  }
  if (by.empty()) return std::nullopt;
  const AxisView& axis = collective.axes[along];
  const auto pairs = static_cast<std::int64_t>(collective.pairs.size());
  if (pairs == positions) return Shifts{axis, by[along] == 0 ? std::vector<Hop>{} : rotation(mesh, axis, by[along])};
  if (!is_even || *distance == 0 || pairs != positions / axis.size * (axis.size - std::abs(*distance))) return std::nullopt;
  const Guard senders = *distance > 0 ? coordinate_in(axis, 0, axis.size - *distance) : coordinate_in(axis, -*distance, axis.size);
  return Shifts{axis, {{mesh.wraps(axis) ? rotation(mesh, axis, by[along]).front().by : *distance, senders}}};
}

Guard at(const std::vector<AxisView>& axes, const std::vector<int>& coordinates) {
  Guard guard;
  for (std::size_t i = 0; i < axes.size(); ++i) guard.push_back({own(axes[i]), coordinates[i], coordinates[i] + 1});
  return guard;
}

}  // namespace

std::vector<Collective::Pair> shift_pairs(std::int64_t devices, std::int64_t by) {
  std::vector<Collective::Pair> pairs;
  const std::int64_t distance = (by % devices + devices) % devices;
  for (std::int64_t from = 0; from < devices; ++from) pairs.push_back({from, (from + distance) % devices});
  return pairs;
}

Expected<Expansion> permute(const Mesh& mesh, const Program& program, const Collective& collective) {
  ProgramBuilder builder{mesh, program};
  Edges start;
  Region input = collective.input;
  if (input.buffer == collective.output.buffer) {  // a device may send and receive
    const Region aside = builder.scratch("sent", lengths_of(input), builder.buffer(input.buffer).dtype);
    start = alias(builder, input, aside, {});
    input = aside;
  }
  if (auto shifts = shifts_of(mesh, collective)) {
    if (shifts->hops.empty()) alias(builder, input, collective.output, start);
    for (Hop& hop : shifts->hops)
      builder.step(fmt::format("{:+}", hop.by), Shift{shifts->axis, hop.by, input, collective.output, Combine::replace, {}}, start, std::move(hop.where));
    return std::move(builder).finish_expansion();
  }
  for (const Collective::Pair& pair : collective.pairs) {
    const auto from = coordinates_of(collective.axes, pair.from), to = coordinates_of(collective.axes, pair.to);
    if (from == to) {
      alias(builder, input, collective.output, start, at(collective.axes, from));
      continue;
    }
    builder.step(fmt::format("send {}>{}", pair.from, pair.to), Send{collective_channel, peer_at(mesh, collective.axes, to), input, {}}, start,
                 at(collective.axes, from));
    builder.step(fmt::format("receive {}>{}", pair.from, pair.to),
                 Recv{collective_channel, peer_at(mesh, collective.axes, from), collective.output, Combine::replace}, start, at(collective.axes, to));
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
