#include "topologies/interconnect.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/network_config.hpp"
#include "sim/topology/joined_slices.hpp"
#include "sim/topology/twisted_torus.hpp"
#include "topologies/networks.hpp"

namespace podsim {

namespace {

const SourceLocation topology_option{"--topology", 0, 0};

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

Expected<std::shared_ptr<const Topology>> tree_of(const Machine& machine, const Slice& slice, const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const Diagnostic wrong{topology_option, "expected fat-tree:LEAF or fat-tree:LEAF:OVERSUBSCRIPTION, as fat-tree:16:2, found " + quoted(text)};
  if (parts.size() < 2 || parts.size() > 3) return wrong;
  const auto leaf = parse_integer(parts[1], 1, 1 << 20, topology_option);
  if (!leaf) return leaf.error();
  double oversubscription = 1;
  if (parts.size() == 3) {
    const auto number = parse_number(parts[2], topology_option);
    if (!number) return number.error();
    oversubscription = *number;
  }
  return shared(fat_tree(static_cast<int>(chips_of(slice)), static_cast<int>(*leaf), oversubscription, machine.link[0]));
}

Expected<std::shared_ptr<const Topology>> network_in(const std::string& path, const Slice& slice) {
  const auto text = read_file(path, list_limit);
  if (!text) return blamed_on(topology_option, in_context(path, text.error()));
  const auto network = read_network(*text, path);
  if (!network) return network.error();
  if (network->chips() != chips_of(slice))
    return Diagnostic{topology_option,
                      fmt::format("the network in {} has {} chips, the slice {} has {}", path, network->chips(), to_text(slice), chips_of(slice))};
  return shared(Expected<Network>{*network});
}

/// One slice.
Expected<std::shared_ptr<const Topology>> build_slice(const Machine& machine, const Slice& slice, const Wrap& wrap, const std::string& topology) {
  if (topology == "rail" || (topology.empty() && machine.interconnect == Interconnect::rail)) return shared(rail_of(machine, slice));
  if (topology.empty()) return shared(build_grid(machine, slice, wrap));
  if (topology == "torus") return shared(build_grid(machine, slice, {Wrap::Rule::all, {}}));
  if (topology == "mesh") return shared(build_grid(machine, slice, {Wrap::Rule::none, {}}));
  if (topology == "twisted") return twisted_of(machine, slice);
  if (topology == "crossbar") return shared(crossbar(static_cast<int>(chips_of(slice)), machine.link[0]));
  if (topology.starts_with("fat-tree")) return tree_of(machine, slice, topology);
  if (topology.find('/') != std::string::npos || topology.ends_with(".textproto")) return network_in(topology, slice);
  return Diagnostic{topology_option, "there is no topology " + quoted(topology) +
                                         "; expected torus, mesh, twisted, crossbar, fat-tree:LEAF[:OVERSUBSCRIPTION], rail or a FILE.textproto"};
}

/// Which host drives each chip: blocks of the machine's host extents; one host for all where they are not stated.
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

}  // namespace

Expected<ChipId> chip_named(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const Diagnostic none{where,
                        fmt::format("there is no chip {}; the last one is {}", quoted(text), topology.chip_name(ChipId{topology.chips() - 1}))};
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

Expected<std::vector<LinkId>> cable_named(const Topology& topology, const std::string& text, const SourceLocation& where) {
  const std::vector<std::string> ends = split(text, '-');
  if (ends.size() != 2) return Diagnostic{where, "expected a cable between two chips, as 0.0-0.1, found " + quoted(text)};
  const auto from = chip_named(topology, ends[0], where), to = chip_named(topology, ends[1], where);
  if (!from) return from.error();
  if (!to) return to.error();
  std::vector<LinkId> links;
  for (const auto& [a, b] : {std::pair{*from, *to}, std::pair{*to, *from}})
    for (const OutLink& out : topology.out_links(a))
      if (out.to == b) links.push_back(out.link);
  if (links.empty()) return Diagnostic{where, fmt::format("there is no cable between {} and {}", topology.chip_name(*from), topology.chip_name(*to))};
  return links;
}

Expected<std::shared_ptr<const Topology>> build_topology(const Machine& machine, const Slice& slice, const Wrap& wrap, const WhatIf& what_if) {
  auto topology = build_slice(machine, slice, wrap, what_if.topology);
  if (!topology) return topology;
  Damage damage;
  for (const std::string& text : what_if.fail) {
    const auto links = cable_named(**topology, text, {"--fail", 0, 0});
    if (!links) return links.error();
    damage.broken.insert(links->begin(), links->end());
  }
  for (const std::string& text : what_if.degrade) {
    const SourceLocation where{"--degrade", 0, 0};
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return Diagnostic{where, "expected CABLE=PART, as 0.0-0.1=0.5, found " + quoted(text)};
    const auto links = cable_named(**topology, text.substr(0, equals), where);
    if (!links) return links.error();
    const auto part = parse_number(text.substr(equals + 1), where);
    if (!part) return part.error();
    if (!(*part > 0 && *part <= 1)) return Diagnostic{where, "expected a part of the bandwidth above 0 and up to 1, found " + quoted(text)};
    for (const LinkId link : *links) damage.slowed[link] = *part;
  }
  if (!damage.none()) topology = std::shared_ptr<const Topology>{std::make_shared<const DamagedTopology>(*topology, std::move(damage))};
  if (what_if.pods == 1) return topology;
  const LinkParameters to_host{machine.dcn.host_bandwidth, Seconds{}};
  const Seconds latency = machine.dcn.latency + std::log2(what_if.pods) * machine.dcn.sync;
  const LinkParameters to_network{machine.dcn.nic_bandwidth, 0.5 * latency};
  return std::shared_ptr<const Topology>{
      std::make_shared<const JoinedSlices>(*topology, what_if.pods, SliceJoin{to_host, to_network, hosts_of(machine, slice)})};
}

}  // namespace podsim
