// A ring for every device of a node, so that every network interface works.
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/collectives/nested_part.hpp"

namespace podsim {

namespace {

/// A ring through all N nodes of G devices. It walks through the devices of a node, then on to the device of the same number in the next node. Channel
/// c walks even nodes upwards from c to c-1 and odd nodes back from c-1 to c: it leaves even nodes on rail c-1 and odd ones on rail c, so that every
/// rail carries one channel from even nodes and one from odd ones. Round an odd number of nodes it changes the rail once.
class Channel {
 public:
  Channel(ProgramBuilder& builder, const AxisView& node, const AxisView& device, bool nodes_first, int number, const Part& part)
      : builder_{builder},
        node_{node},
        device_{device},
        N_{node.size},
        G_{device.size},
        node_weight_{nodes_first ? device.size : 1},
        device_weight_{nodes_first ? 1 : node.size},
        number_{number},
        part_{part} {}

  /// One step: every device sends the block of the device `behind` positions back, and the next device keeps it or adds it.
  void step(int behind, const Blocks& blocks, Combine combine, std::string_view label) {
    Edges done;
    // A device looks back over whole nodes and `rest` devices more: the first `rest` devices of a walk into the node before.
    const int rounds = behind / G_, rest = behind % G_;
    for (const int parity : {0, 1})
      for (const int source_parity : {0, 1})
        for (const bool further : {false, true}) {
          const Step step{parity, source_parity, rounds + (further ? 1 : 0), rest, blocks, combine, label};
          if (N_ % 2 == 0 && (parity + step.back) % 2 != source_parity) continue;
          const int low = further ? 0 : rest, high = further ? rest : G_;
          if (low < std::min(high, G_ - 1)) walk(step, low, std::min(high, G_ - 1), done);
          if (!further) leave(step, done);
        }
    after_ = std::move(done);
  }
  Edges& after() { return after_; }

 private:
  /// The transfers of a step from nodes of one parity, of blocks of nodes of one parity.
  struct Step {
    int parity, source_parity;
    int back, rest;  // the block's node is `back` nodes before, its position in the walk `rest` before, around the node
    const Blocks& blocks;
    Combine combine;
    std::string_view label;
  };

  [[nodiscard]] Condition node_parity(int add, int parity) const { return {Affine{{AxisTerm{node_, 1, add}}, 0, 2}, parity, parity + 1}; }

  [[nodiscard]] Guard nodes_of(const Step& step) const {
    if (N_ % 2 == 0) return {node_parity(0, step.parity)};
    return {node_parity(0, step.parity), node_parity(-step.back, step.source_parity)};
  }

  /// Positions low .. high-1 of the walk through a node.
  [[nodiscard]] Condition position(int parity, int low, int high) const {
    return {own(device_, -number_), parity == 0 ? low : G_ - high, parity == 0 ? high : G_ - low};
  }

  /// The block that a device sends whose coordinates are the own ones plus these.
  [[nodiscard]] Region sent(const Step& step, int node_add, int device_add) const {
    const bool same_way = step.parity == step.source_parity;
    const int rest = step.parity == 0 ? -step.rest : step.rest;
    // The other way round, the device is 2c-1-g-rest (mod G): G-1 less what g-2c+rest is.
    const AxisTerm device{device_, same_way ? device_weight_ : -device_weight_, same_way ? device_add + rest : device_add - 2 * number_ + rest};
    const std::int64_t constant = same_way ? 0 : device_weight_ * (G_ - 1);
    return step.blocks.block(Affine{{AxisTerm{node_, node_weight_, node_add - step.back}, device}, constant}, part_);
  }

  void shift(const Step& step, const AxisView& axis, int by, const Region& target, Guard where, Edges& done) {
    done = join(std::move(done), builder_.step(std::string{step.label}, Shift{axis, by, sent(step, 0, 0), target, step.combine, {}}, after_, std::move(where)));
  }

  void walk(const Step& step, int low, int high, Edges& done) {
    const int along = step.parity == 0 ? +1 : -1;
    for (const Hop& hop : rotation(builder_.mesh(), device_, (along + G_) % G_)) {
      Guard where = nodes_of(step);
      where.push_back(position(step.parity, low, high));
      where.insert(where.end(), hop.where.begin(), hop.where.end());
      shift(step, device_, hop.by, sent(step, 0, -along), std::move(where), done);
    }
  }

  void leave(const Step& step, Edges& done) {
    const bool changes_rail = N_ % 2 == 1;
    for (const Hop& hop : rotation(builder_.mesh(), node_, 1)) {
      if (hop.by < 0 && (changes_rail || step.parity == 0)) continue;  // from the last node, whose number is odd
      Guard where = nodes_of(step);
      where.push_back(position(step.parity, G_ - 1, G_));
      where.insert(where.end(), hop.where.begin(), hop.where.end());
      if (changes_rail) where.push_back({own(node_), 0, N_ - 1});
      shift(step, node_, hop.by, sent(step, -1, 0), std::move(where), done);
    }
    const int source = ((N_ - 1 - step.back) % N_ + N_) % N_;
    if (!changes_rail || step.parity != 0 || source % 2 != step.source_parity) return;
    const std::vector<AxisView> both{node_, device_};
    const std::vector<int> from{N_ - 1, (number_ + G_ - 1) % G_}, to{0, number_};
    const auto at = [&](const std::vector<int>& place) -> Guard { return {{own(node_), place[0], place[0] + 1}, {own(device_), place[1], place[1] + 1}}; };
    const int channel = collective_channel + 1 + number_;
    done = join(std::move(done), builder_.step(std::string{step.label}, Send{channel, peer_at(builder_.mesh(), both, to), sent(step, 0, 0), {}}, after_, at(from)));
    done = join(std::move(done), builder_.step(std::string{step.label}, Recv{channel, peer_at(builder_.mesh(), both, from), sent(step, -1, -1), step.combine},
                                               after_, at(to)));
  }

  ProgramBuilder& builder_;
  AxisView node_, device_;
  int N_, G_;
  std::int64_t node_weight_, device_weight_;
  int number_;
  Part part_;
  Edges after_;
};

}  // namespace

Expected<Expansion> channels(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels) {
  const bool gathers = collective.kind == CollectiveKind::all_gather, scatters = collective.kind == CollectiveKind::reduce_scatter;
  if (!gathers && !scatters && collective.kind != CollectiveKind::all_reduce)
    return unsupported("channels", "all-gather, reduce-scatter and all-reduce", collective);
  std::vector<AxisView> two;
  for (const AxisView& level : levels)
    if (level.size > 1) two.push_back(level);
  if (two.size() != 2)
    return Diagnostic{{}, fmt::format("`channels` goes through nodes and their devices, so it needs two axes with more than one device, found {}", two.size())};
  const AxisView node = two.front(), device = two.back();
  const int group = node.size * device.size;
  const auto first = std::find_if(collective.axes.begin(), collective.axes.end(), [](const AxisView& axis) { return axis.size > 1; });
  const bool nodes_first = first != collective.axes.end() && *first == node;
  const Affine number{{AxisTerm{node, nodes_first ? device.size : 1}, AxisTerm{device, nodes_first ? 1 : node.size}}};

  ProgramBuilder builder{mesh, program};
  Edges start;
  Region region = collective.output;
  if (collective.kind == CollectiveKind::all_reduce) start = alias(builder, collective.input, region, {});
  if (scatters) {
    const auto input = Blocks::make(collective.input, collective.dim, group);
    if (!input) return input.error();
    const bool in_place = same_place(collective.output, input->block(number));
    region = in_place ? collective.input : own_copy(builder, collective.input, start);
  }
  const auto blocks = Blocks::make(region, collective.dim, group);
  if (!blocks) return blocks.error();
  if (gathers) start = alias(builder, collective.input, blocks->block(number), {});
  Edges last;
  int channel = 0;
  for (const Part& part : blocks->parts(device.size)) {
    Channel ring{builder, node, device, nodes_first, channel, part};
    ring.after() = start;
    if (!gathers)
      for (int i = 0; i + 1 < group; ++i) ring.step(i + 1, *blocks, Combine::add, fmt::format("channel {} add {}", channel, i));
    if (!scatters)
      for (int i = 0; i + 1 < group; ++i) ring.step(i, *blocks, Combine::replace, fmt::format("channel {} gather {}", channel, i));
    last = join(std::move(last), ring.after());
    ++channel;
  }
  if (scatters) alias(builder, blocks->block(number), collective.output, std::move(last));
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
