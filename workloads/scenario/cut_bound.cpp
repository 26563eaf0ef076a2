#include "workloads/scenario/cut_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "algorithms/collectives/builder.hpp"

namespace podsim {

namespace {

constexpr int most_chips = 4096;           // beyond it a max-flow takes seconds
constexpr std::size_t most_positions = 8;  // of sinks, each a few max-flows

class Cuts {
 public:
  Cuts(const System& system, const std::vector<AxisView>& axes) : system_{system}, topology_{*system.topology}, levels_{dimensions_along(system.mesh, axes)} {
    for (const AxisView& level : levels_) group_ *= level.size;
  }
  [[nodiscard]] std::int64_t group() const { return group_; }

  /// Of an all-gather: the time per byte of a shard, and the sets that bound it.
  double gather(bool backwards) {
    double most = 0;
    for (const std::int64_t position : positions()) {
      std::vector<double> weight(static_cast<std::size_t>(topology_.nodes()), 0);
      std::vector<bool> sink(weight.size(), false);
      for (int d = 0; d < system_.mesh.devices(); ++d) {
        const ChipId chip = system_.placement.chip_of[static_cast<std::size_t>(d)];
        ++weight[chip.index()];
        if (position_of(DeviceId{d}, levels_.size()) == position) sink[chip.index()] = true;
      }
      const auto rate = common_rate(topology_, weight, sink, backwards);
      if (!rate || is_unlimited(rate->rate) || !(rate->rate.count() > 0)) continue;
      most = std::max(most, 1 / rate->rate.count());
      sets_.push_back(rate->sources_side);
    }
    return most;
  }

  /// Of an all-reduce: the time per byte of the input.
  double reduce() {
    gather(false);  // for its sets
    double most = parts([](int, ChipId chip) { return chip.value; });
    for (std::size_t l = 1; l < levels_.size(); ++l) {
      most = std::max(most, parts([&](int d, ChipId) { return static_cast<int>(position_of(DeviceId{d}, l)); }));
      most = std::max(most, parts([&](int d, ChipId) { return system_.mesh.coordinate(DeviceId{d}, levels_[l]); }));
    }
    for (const std::vector<bool>& set : sets_) most = std::max(most, parts([&](int, ChipId chip) { return set[chip.index()] ? 1 : 0; }));
    return most;
  }

 private:
  /// Along the first `count` levels.
  [[nodiscard]] std::int64_t position_of(DeviceId device, std::size_t count) const {
    std::int64_t position = 0;
    for (std::size_t l = 0; l < count; ++l) position = position * levels_[l].size + system_.mesh.coordinate(device, levels_[l]);
    return position;
  }

  /// Positions of sinks: one where all chips are equivalent and have their devices in the mesh, else the ends and some between.
  [[nodiscard]] std::vector<std::int64_t> positions() const {
    if (system_.devices.empty() && topology_.chip_classes().size() == 1) return {0};
    std::vector<std::int64_t> some;
    const auto count = static_cast<std::int64_t>(std::min<std::size_t>(most_positions, static_cast<std::size_t>(group_)));
    for (std::int64_t i = 0; i < count; ++i) some.push_back(count == 1 ? 0 : i * (group_ - 1) / (count - 1));
    return some;
  }

  /// Parts of chips, named by a number per device; groups see as many of them as their devices are in. Per group 2 (k-1) over what leaves the
  /// parts; k where they meet switches that add up, as every part still sends its sum, or the result, once.
  template <class PartOf>
  double parts(PartOf part_of) const {
    std::vector<int> part(static_cast<std::size_t>(topology_.chips()), -1);
    std::map<int, int> numbers;
    std::map<std::vector<int>, std::map<int, bool>> seen;  // by group: coordinates with those along the axes left out
    for (int d = 0; d < system_.mesh.devices(); ++d) {
      const ChipId chip = system_.placement.chip_of[static_cast<std::size_t>(d)];
      const int number = numbers.try_emplace(part_of(d, chip), static_cast<int>(numbers.size())).first->second;
      int& own = part[chip.index()];
      if (own >= 0 && own != number) return 0;  // the devices of a chip are in two parts
      own = number;
      Coordinates rest = system_.mesh.coordinates(DeviceId{d});
      for (const AxisView& level : levels_) rest[static_cast<std::size_t>(level.axis)] -= system_.mesh.coordinate(DeviceId{d}, level) * level.stride;
      seen[rest][number] = true;
    }
    for (int& own : part)
      if (own < 0) own = static_cast<int>(numbers.size());  // chips without a device
    const PartsCut out = links_out_of(topology_, part);
    double sends = 0;
    for (const auto& [group, in] : seen) {
      const auto k = static_cast<double>(in.size());
      sends += k == 1 ? 0 : out.adds ? k : 2 * (k - 1);
    }
    return is_unlimited(out.bandwidth) || !(out.bandwidth.count() > 0) ? 0 : sends / out.bandwidth.count();
  }

  const System& system_;
  const Topology& topology_;
  std::vector<AxisView> levels_;
  std::int64_t group_ = 1;
  std::vector<std::vector<bool>> sets_;
};

}  // namespace

CutBound cut_bound(const System& system, const Collective& collective, Bytes input) {
  using Kind = CollectiveKind;
  const bool gathers = collective.kind == Kind::all_gather, scatters = collective.kind == Kind::reduce_scatter;
  if (!gathers && !scatters && collective.kind != Kind::all_reduce) return {{}, "known for all-gather, reduce-scatter and all-reduce"};
  if (system.topology->chips() > most_chips) return {{}, fmt::format("not computed for more than {} chips", most_chips)};
  Cuts cuts{system, collective.axes};
  if (cuts.group() < 2) return {{}, "one device"};
  const double bytes = static_cast<double>(input.count());
  const double seconds = gathers ? bytes * cuts.gather(false) : scatters ? bytes / static_cast<double>(cuts.group()) * cuts.gather(true) : bytes * cuts.reduce();
  const auto kind = static_cast<std::size_t>(cost_kind_of(collective.kind));
  const double efficiency = efficiency_at(system.machine.software.efficiency[kind], input);
  if (!(seconds > 0)) return {{}, "no link between the chips is limited"};
  return {Seconds{seconds / efficiency}, {}};
}

std::optional<double> share_of_bound(const CollectiveSummary& collective, Seconds time) {
  if (!collective.bound || !(time.count() > 0)) return std::nullopt;
  return collective.bound->count() / time.count();
}

}  // namespace podsim
