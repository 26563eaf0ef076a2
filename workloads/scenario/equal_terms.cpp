#include "workloads/scenario/equal_terms.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/units.hpp"
#include "sim/topology/bisection.hpp"

namespace podsim {

namespace {

TopologyCost cost_of(const System& system) {
  TopologyCost cost;
  cost.name = fmt::format("{} {} {}", system.machine.name, to_text(system.slice), system.joined_by.name.empty() ? "as built" : system.joined_by.name);
  cost.injection = unlimited<BytesPerSecond>;
  const Topology& topology = *system.topology;
  for (int node = 0; node < topology.nodes(); ++node) {
    BytesPerSecond out_of;
    const int before = cost.links;
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      ++cost.links;
      out_of += topology.link(out.link).bandwidth;
      if (node >= topology.chips()) ++cost.switch_ports;
    }
    cost.total += out_of;
    if (node >= topology.chips()) continue;
    cost.injection = std::min(cost.injection, out_of);
    cost.links_of_a_chip = std::max(cost.links_of_a_chip, cost.links - before);
  }
  cost.bisection = bisection_bandwidth(topology);
  return cost;
}

}  // namespace

Expected<std::vector<TopologyCost>> make_equal(std::vector<System>& systems, const std::vector<std::size_t>& topologies, const std::string& what) {
  if (!what.empty() && what != "bisection" && what != "ports" && what != "injection")
    return Diagnostic{of_field("equal"), "expected bisection, ports or injection, found " + quoted(what)};
  const auto term = [&](const TopologyCost& cost) { return what == "bisection" ? cost.bisection : what == "ports" ? cost.total : cost.injection; };
  std::vector<TopologyCost> costs;
  for (std::size_t s = 0; s < systems.size(); ++s) {
    System& system = systems[s];
    const bool is_other_mesh = s > 0 && topologies[s] == topologies[s - 1];
    TopologyCost cost = is_other_mesh ? costs.back() : cost_of(system);
    if (!what.empty() && !costs.empty() && topologies[s] != topologies.front()) {
      const double factor = is_other_mesh ? cost.scale : term(costs.front()).count() / term(cost).count();
      if (!(factor > 0 && factor < 1e9)) return Diagnostic{of_field("equal"), fmt::format("{} has no {} to be made equal", cost.name, what)};
      Machine machine = system.machine;
      for (LinkParameters& link : machine.link) link.bandwidth = factor * link.bandwidth;
      auto scaled = with_machine(system, std::move(machine));
      if (!scaled) return scaled.error();
      system = *std::move(scaled);
      if (!is_other_mesh) cost = cost_of(system);
      cost.scale = factor;
    }
    if (!is_other_mesh) costs.push_back(std::move(cost));
  }
  return costs;
}

std::string terms_of(const std::vector<TopologyCost>& costs, const std::string& what) {
  if (costs.size() < 2) return {};
  const auto rate = [](BytesPerSecond of) { return is_unlimited(of) ? std::string{"unlimited"} : to_text(of); };
  if (!what.empty()) {
    const TopologyCost& first = costs.front();
    return what == "bisection" ? fmt::format("at equal bisection bandwidth, {}", rate(first.bisection))
           : what == "ports"   ? fmt::format("at equal bandwidth of all links, {}", rate(first.total))
                               : fmt::format("at equal bandwidth out of a chip, {}", rate(first.injection));
  }
  // "540 GB/s", "90 GB/s to 540 GB/s"
  const auto range = [&](auto of, auto text) {
    const auto [least, most] = std::ranges::minmax_element(costs, {}, of);
    return of(*least) == of(*most) ? text(of(*least)) : fmt::format("{} to {}", text(of(*least)), text(of(*most)));
  };
  const auto same = [&](auto of) { return std::ranges::all_of(costs, [&](const TopologyCost& cost) { return of(cost) == of(costs.front()); }); };
  const auto links = [](const TopologyCost& cost) { return cost.links_of_a_chip; };
  const auto out = [](const TopologyCost& cost) { return cost.injection; };
  const auto across = [](const TopologyCost& cost) { return cost.bisection; };
  const bool are_equal = same(links) && same(out) && same(across);
  return fmt::format("{}: {} links of a chip, {} out of it, bisection {}", are_equal ? "at equal terms" : "not at equal terms", range(links, [](int count) { return std::to_string(count); }), range(out, rate),
                     range(across, rate));
}

}  // namespace podsim
