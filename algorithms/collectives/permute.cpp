#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

struct Rotation {
  AxisView axis;
  int by;  // in [0, P)
};

/// The rotation along one axis that the pairs are, if every position takes part and they are one.
std::optional<Rotation> rotation_of(const Collective& collective) {
  std::int64_t positions = 1;
  for (const AxisView& axis : collective.axes) positions *= axis.size;
  if (static_cast<std::int64_t>(collective.pairs.size()) != positions) return std::nullopt;
  std::vector<int> by;
  for (const Collective::Pair& pair : collective.pairs) {
    std::vector<int> from = coordinates_of(collective.axes, pair.from), to = coordinates_of(collective.axes, pair.to);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = (to[i] - from[i] + collective.axes[i].size) % collective.axes[i].size;
    if (by.empty()) by = to;
    if (by != to) return std::nullopt;
  }
  const auto moves = [](int distance) { return distance != 0; };
  if (std::count_if(by.begin(), by.end(), moves) > 1) return std::nullopt;
  const std::size_t axis = std::min<std::size_t>(static_cast<std::size_t>(std::find_if(by.begin(), by.end(), moves) - by.begin()), by.size() - 1);
  return Rotation{collective.axes[axis], by[axis]};
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
  if (const auto rotation = rotation_of(collective)) {
    if (rotation->by == 0) {
      alias(builder, input, collective.output, start);
      return std::move(builder).finish_expansion();
    }
    for (Hop& hop : podsim::rotation(mesh, rotation->axis, rotation->by))
      builder.step(fmt::format("{:+}", hop.by), Shift{rotation->axis, hop.by, input, collective.output, Combine::replace, {}}, start,
                   std::move(hop.where));
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
