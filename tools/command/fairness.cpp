#include "tools/command/fairness.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/topology/bisection.hpp"

namespace podsim {

namespace {

TopologyCost cost_of(const Pod& pod) {
  TopologyCost cost;
  cost.name = fmt::format("{} {} {}", pod.machine.name, to_text(pod.slice), pod.what_if.topology.empty() ? "as built" : pod.what_if.topology);
  cost.injection = unlimited<BytesPerSecond>;
  const Topology& topology = *pod.topology;
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

Expected<std::vector<TopologyCost>> make_equal(std::vector<Pod>& pods, const std::string& what) {
  if (!what.empty() && what != "bisection" && what != "ports" && what != "injection")
    return Diagnostic{option("equal"), "expected bisection, ports or injection, found " + quoted(what)};
  const auto term = [&](const TopologyCost& cost) { return what == "bisection" ? cost.bisection : what == "ports" ? cost.total : cost.injection; };
  std::vector<TopologyCost> costs;
  for (Pod& pod : pods) {
    TopologyCost cost = cost_of(pod);
    if (!what.empty() && !costs.empty()) {
      const double factor = term(costs.front()).count() / term(cost).count();
      if (!(factor > 0 && factor < 1e9)) return Diagnostic{option("equal"), fmt::format("{} has no {} to be made equal", cost.name, what)};
      for (LinkParameters& link : pod.machine.link) link.bandwidth = factor * link.bandwidth;
      if (auto ok = rebuild(pod); !ok) return ok.error();
      cost = cost_of(pod);
      cost.scale = factor;
    }
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace podsim
