#include "workloads/scenario/equal_terms.hpp"

#include <fmt/format.h>

#include <algorithm>

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
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      ++cost.links;
      out_of += topology.link(out.link).bandwidth;
      if (node >= topology.chips()) ++cost.switch_ports;
    }
    cost.total += out_of;
    if (node < topology.chips()) cost.injection = std::min(cost.injection, out_of);
  }
  cost.bisection = bisection_bandwidth(topology);
  return cost;
}

}  // namespace

Expected<std::vector<TopologyCost>> make_equal(std::vector<System>& systems, const std::string& what) {
  if (!what.empty() && what != "bisection" && what != "ports" && what != "injection")
    return Diagnostic{of_field("equal"), "expected bisection, ports or injection, found " + quoted(what)};
  const auto term = [&](const TopologyCost& cost) { return what == "bisection" ? cost.bisection : what == "ports" ? cost.total : cost.injection; };
  std::vector<TopologyCost> costs;
  for (System& system : systems) {
    TopologyCost cost = cost_of(system);
    if (!what.empty() && !costs.empty()) {
      const double factor = term(costs.front()).count() / term(cost).count();
      if (!(factor > 0 && factor < 1e9)) return Diagnostic{of_field("equal"), fmt::format("{} has no {} to be made equal", cost.name, what)};
      Machine machine = system.machine;
      for (LinkParameters& link : machine.link) link.bandwidth = factor * link.bandwidth;
      auto scaled = with_machine(system, std::move(machine));
      if (!scaled) return scaled.error();
      system = *std::move(scaled);
      cost = cost_of(system);
      cost.scale = factor;
    }
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace podsim
