#include "topologies/interconnect.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/network_config.hpp"
#include "sim/topology/joined_slices.hpp"
#include "sim/topology/twisted_torus.hpp"
#include "topologies/nccl/nccl_network.hpp"
#include "topologies/networks.hpp"

namespace podsim {

namespace {

const SourceLocation topology_field = of_field("topology");

template <class T>
Expected<std::shared_ptr<const Topology>> shared(Expected<T> topology) {
  if (!topology) return topology.error();
  return std::shared_ptr<const Topology>{std::make_shared<const T>(*std::move(topology))};
}

Expected<Network> rail_of(const Machine& machine, const Slice& slice) {
  if (slice.extents.size() > 2) return Diagnostic{{}, fmt::format("a rail network is a slice of NODESxGPUS, as 4x8, got {}", to_text(slice))};
  const bool one = slice.extents.size() == 1;
  return rail(one ? 1 : slice.extents[0], slice.extents.back(), machine.link[0], machine.link[1]);
}

Expected<std::shared_ptr<const Topology>> twisted_of(const Machine& machine, const Slice& slice) {
  std::vector<GridDimension> dimensions;
  for (std::size_t d = 0; d < slice.extents.size(); ++d) dimensions.push_back({slice.extents[d], true, machine.link[d]});
  return shared(TwistedTorus::make(dimensions, machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth));
}

Expected<TopologySpec> parse_tree(const std::string& text, const SourceLocation& where) {
  const std::vector<std::string> parts = split(text, ':');
  const Diagnostic wrong{where, "expected fat-tree:LEAF or fat-tree:LEAF:OVERSUBSCRIPTION, as fat-tree:16:2, found " + quoted(text)};
  if (parts.size() < 2 || parts.size() > 3) return wrong;
  const auto leaf = parse_integer(parts[1], 1, 1 << 20, where);
  if (!leaf) return leaf.error();
  TopologySpec spec{TopologySpec::Kind::fat_tree, static_cast<int>(*leaf), 1, {}, {}, text};
  if (parts.size() == 3) {
    const auto number = parse_number(parts[2], where);
    if (!number) return number.error();
    spec.oversubscription = *number;
  }
  return spec;
}

Expected<TopologySpec> read_topology(const std::string& path, const SourceLocation& where) {
  const auto text = read_file(path, list_limit);
  if (!text) return blamed_on(where, in_context(path, text.error()));
  if (trimmed(*text).starts_with('<')) {
    auto system = read_nccl_system(*text, path);
    if (!system) return system.error();
    return TopologySpec{TopologySpec::Kind::nccl, 0, 1, {}, std::make_shared<const NcclSystem>(*std::move(system)), path};
  }
  auto network = read_network(*text, path);
  if (!network) return network.error();
  return TopologySpec{TopologySpec::Kind::network, 0, 1, std::make_shared<const Network>(*std::move(network)), {}, path};
}

Expected<std::shared_ptr<const Topology>> network_of(const TopologySpec& spec, const Slice& slice) {
  if (spec.network->chips() == chips_of(slice)) return std::shared_ptr<const Topology>{spec.network};
  return Diagnostic{topology_field, fmt::format("the network in {} has {} chips, the slice {} has {}", spec.name, spec.network->chips(), to_text(slice),
                                                chips_of(slice))};
}

Expected<std::shared_ptr<const Topology>> nccl_of(const TopologySpec& spec, const Machine& machine, const Slice& slice) {
  const auto gpus = static_cast<std::int64_t>(spec.nccl->gpus.size()), chips = chips_of(slice);
  if (chips % gpus != 0)
    return Diagnostic{topology_field, fmt::format("{} describes a node of {}; expected a slice of a multiple of it, found {}, {} chips", spec.name, counted(gpus, "GPU"), to_text(slice), chips)};
  return shared(nccl_network(*spec.nccl, static_cast<int>(chips / gpus), machine.link[0], machine.link[1]));
}

/// A name up to the number that it ends with: those of "rail 0" to "rail 7" are alike.
std::string stem_of(const std::string& name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); }

/// "node 0 to node 7, rail 0 to rail 7": first and last of each sort; some sorts, where there are many.
std::string switches_of(const Topology& topology) {
  constexpr std::size_t most = 6;
  std::vector<std::pair<std::string, std::string>> sorts;
  for (int node = topology.chips(); node < topology.nodes(); ++node) {
    const std::string name = topology.chip_name(ChipId{node});
    if (sorts.empty() || stem_of(sorts.back().first) != stem_of(name))
      sorts.emplace_back(name, name);
    else
      sorts.back().second = name;
  }
  std::vector<std::string> texts;
  for (const auto& [first, last] : sorts)
    if (texts.size() < most) texts.push_back(first == last ? first : first + " to " + last);
  return fmt::format("{}{}", fmt::join(texts, ", "), sorts.size() > most ? ", ..." : "");
}

Diagnostic no_chip(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const std::string last = topology.chip_name(ChipId{topology.chips() - 1});
  if (topology.nodes() == topology.chips()) return {where, fmt::format("there is no chip {}; the last one is {}", quoted(text), last)};
  return {where, fmt::format("there is no chip or switch {}; chips are {} to {}, switches {}", quoted(text), topology.chip_name(ChipId{0}), last,
                             switches_of(topology))};
}

}  // namespace

std::vector<int> hosts_of(const Machine& machine, const Slice& slice) {
  std::vector<int> hosts;
  const std::size_t dimensions = slice.extents.size();
  std::vector<int> blocks(dimensions, 1), host(dimensions, 1);
  for (std::size_t d = 0; d < dimensions; ++d) {
    host[d] = d < machine.slices.host.size() ? std::max(1, machine.slices.host[d]) : machine.slices.host.empty() ? slice.extents[d] : 1;
    blocks[d] = (slice.extents[d] + host[d] - 1) / host[d];
  }
  for (int chip = 0; chip < chips_of(slice); ++chip) {
    int rest = chip, number = 0, stride = 1;
    for (std::size_t d = dimensions; d-- > 0;) {
      number += rest % slice.extents[d] / host[d] * stride;
      stride *= blocks[d];
      rest /= slice.extents[d];
    }
    hosts.push_back(number);
  }
  return hosts;
}

Expected<ChipId> chip_named(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const Diagnostic none = no_chip(topology, text, where);
  if (const Grid* grid = topology.grid()) {
    const std::vector<std::string> parts = split(text, '.');
    if (parts.size() != grid->dimensions().size()) return none;
    std::vector<int> coordinates;
    for (std::size_t d = 0; d < parts.size(); ++d) {
      const auto coordinate = parse_integer(parts[d], 0, grid->dimensions()[d].extent - 1, where);
      if (!coordinate) return none;
      coordinates.push_back(static_cast<int>(*coordinate));
    }
    return grid->chip(coordinates);
  }
  for (int node = 0; node < topology.nodes(); ++node)
    if (topology.chip_name(ChipId{node}) == text) return ChipId{node};
  return none;
}

Expected<TopologySpec> parse_topology(const std::string& text, const SourceLocation& where) {
  using Kind = TopologySpec::Kind;
  static constexpr std::array<std::pair<std::string_view, Kind>, 6> plain{{{"", Kind::as_built},
                                                                           {"torus", Kind::torus},
                                                                           {"mesh", Kind::mesh},
                                                                           {"twisted", Kind::twisted},
                                                                           {"crossbar", Kind::crossbar},
                                                                           {"rail", Kind::rail}}};
  for (const auto& [name, kind] : plain)
    if (text == name) return TopologySpec{kind, 0, 1, {}, {}, text};
  if (text.starts_with("fat-tree")) return parse_tree(text, where);
  if (text.find('/') != std::string::npos || text.ends_with(".textproto") || text.ends_with(".xml")) return read_topology(text, where);
  return Diagnostic{where, "there is no topology " + quoted(text) +
                               "; expected torus, mesh, twisted, crossbar, fat-tree:LEAF[:OVERSUBSCRIPTION], rail or a FILE.textproto or FILE.xml (of NCCL)"};
}

Expected<std::shared_ptr<const Topology>> build_topology(const Machine& machine, const Slice& slice, const Wrap& wrap, const TopologySpec& spec) {
  using Kind = TopologySpec::Kind;
  switch (spec.kind) {
    case Kind::as_built: return machine.interconnect == Interconnect::rail ? shared(rail_of(machine, slice)) : shared(build_grid(machine, slice, wrap));
    case Kind::torus: return shared(build_grid(machine, slice, {Wrap::Rule::all, {}}));
    case Kind::mesh: return shared(build_grid(machine, slice, {Wrap::Rule::none, {}}));
    case Kind::twisted: return twisted_of(machine, slice);
    case Kind::crossbar: return shared(crossbar(static_cast<int>(chips_of(slice)), machine.link[0]));
    case Kind::fat_tree: return shared(fat_tree(static_cast<int>(chips_of(slice)), spec.leaf, spec.oversubscription, machine.link[0]));
    case Kind::rail: return shared(rail_of(machine, slice));
    case Kind::network: return network_of(spec, slice);
    case Kind::nccl: return nccl_of(spec, machine, slice);
  }
  return Diagnostic{topology_field, "unknown"};
}

namespace {

/// Errors: no cable between the two.
Expected<std::vector<LinkId>> links_of(const Topology& topology, const CableEnds& cable, const SourceLocation& where) {
  std::vector<LinkId> links;
  for (const auto& [a, b] : {std::pair{cable.from, cable.to}, std::pair{cable.to, cable.from}})
    for (const OutLink& out : topology.out_links(a))
      if (out.to == b) links.push_back(out.link);
  if (!links.empty()) return links;
  std::string others;
  if (topology.nodes() > topology.chips()) {  // names that cannot be guessed
    constexpr std::size_t most = 8;
    std::vector<std::string> names;
    for (const OutLink& out : topology.out_links(cable.from)) names.push_back(topology.chip_name(out.to));
    const bool more = names.size() > most;
    names.resize(std::min(names.size(), most));
    others = fmt::format("; those of {} lead to {}{}", topology.chip_name(cable.from), fmt::join(names, ", "), more ? ", ..." : "");
  }
  return Diagnostic{where,
                    fmt::format("there is no cable between {} and {}{}", topology.chip_name(cable.from), topology.chip_name(cable.to), others)};
}

/// A cable of this topology, as an example.
std::string some_cable(const Topology& topology) {
  const std::vector<OutLink> cables = topology.out_links(ChipId{0});
  return topology.nodes() == topology.chips() || cables.empty() ? "0.0-0.1" : to_text(CableEnds{ChipId{0}, cables.back().to}, topology);
}

}  // namespace

Expected<CableEnds> parse_cable(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const std::vector<std::string> ends = split(text, '-');
  if (ends.size() != 2)
    return Diagnostic{where, fmt::format("expected a cable between two chips{}, as {}, found {}",
                                         topology.nodes() > topology.chips() ? " or a chip and a switch" : "", some_cable(topology), quoted(text))};
  const auto from = chip_named(topology, ends[0], where), to = chip_named(topology, ends[1], where);
  if (!from) return from.error();
  if (!to) return to.error();
  const CableEnds cable{*from, *to};
  if (const auto links = links_of(topology, cable, where); !links) return links.error();
  return cable;
}

std::string to_text(const CableEnds& cable, const Topology& topology) {
  std::string text = topology.chip_name(cable.from) + "-" + topology.chip_name(cable.to);
  std::erase_if(text, [](char c) { return c == '(' || c == ')'; });
  std::replace(text.begin(), text.end(), ',', '.');
  return text;
}

Expected<std::shared_ptr<const Topology>> damaged(std::shared_ptr<const Topology> slice, const std::vector<CableEnds>& broken,
                                                  const std::vector<SlowCable>& slow) {
  Damage damage;
  for (const CableEnds& cable : broken) {
    const auto links = links_of(*slice, cable, of_field("fail"));
    if (!links) return links.error();
    damage.broken.insert(links->begin(), links->end());
  }
  for (const SlowCable& entry : slow) {
    const auto links = links_of(*slice, entry.cable, of_field("degrade"));
    if (!links) return links.error();
    for (const LinkId link : *links) damage.slowed[link] = entry.part;
  }
  if (damage.none()) return slice;
  return std::shared_ptr<const Topology>{std::make_shared<const DamagedTopology>(std::move(slice), std::move(damage))};
}

std::shared_ptr<const Topology> joined(std::shared_ptr<const Topology> one, const Machine& machine, const Slice& slice, int slices) {
  if (slices == 1) return one;
  const LinkParameters to_host{machine.dcn.host_bandwidth, Seconds{}};
  const Seconds latency = machine.dcn.latency + std::log2(slices) * machine.dcn.sync;
  const LinkParameters to_network{machine.dcn.nic_bandwidth, 0.5 * latency};
  return std::make_shared<const JoinedSlices>(std::move(one), slices, SliceJoin{to_host, to_network, hosts_of(machine, slice)});
}

}  // namespace podsim
