#include "topologies/nccl/nccl_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

constexpr int along_rails = 0, along_nvlinks = 1;  // the machine's dimensions

/// Network interfaces of one PCIe switch that serve one GPU.
struct Interface {
  int hub = 0, rail = 0, card = -1;  // the last card
  BytesPerSecond pcie{0}, speed{0};
  Seconds latency{};
};

std::string host_of(const NcclSystem& system, int hub) {
  while (system.hubs[static_cast<std::size_t>(hub)].above >= 0) hub = system.hubs[static_cast<std::size_t>(hub)].above;
  return system.hubs[static_cast<std::size_t>(hub)].host;
}

std::vector<Interface> interfaces_of(const NcclSystem& system, const LinkParameters& to_rail) {
  std::map<int, std::ptrdiff_t> gpus, nics;  // by hub
  for (const NcclGpu& gpu : system.gpus) ++gpus[gpu.hub];
  for (const NcclNic& nic : system.nics) ++nics[nic.hub];
  std::vector<Interface> interfaces;
  std::map<std::string, int> rails;                        // of each host so far
  std::map<int, std::pair<std::size_t, std::ptrdiff_t>> open;  // by hub: the last one, and how many it is made of
  for (const NcclNic& nic : system.nics) {
    const std::ptrdiff_t of_hub = gpus[nic.hub], together = of_hub > 0 && nics[nic.hub] % of_hub == 0 ? nics[nic.hub] / of_hub : 1;
    auto known = open.find(nic.hub);
    if (known == open.end() || known->second.second == together) {
      open[nic.hub] = {interfaces.size(), 0};
      known = open.find(nic.hub);
      interfaces.push_back({nic.hub, rails[host_of(system, nic.hub)]++, -1, BytesPerSecond{0}, BytesPerSecond{0}, {}});
    }
    Interface& interface = interfaces[known->second.first];
    ++known->second.second;
    if (interface.card != nic.card) interface.pcie = BytesPerSecond{interface.pcie.count() + nic.pcie.count()};
    interface.card = nic.card;
    interface.speed = BytesPerSecond{interface.speed.count() + (nic.speed.count() > 0 ? nic.speed : to_rail.bandwidth).count()};
    interface.latency = std::max(interface.latency, nic.latency.count() > 0 ? 0.5 * nic.latency : to_rail.latency);  // it has a cable of two
  }
  return interfaces;
}

class Builder {
 public:
  Builder(const NcclSystem& system, const LinkParameters& to_rail, const LinkParameters& to_switch)
      : system_{system}, to_switch_{to_switch}, interfaces_{interfaces_of(system, to_rail)}, gpus_{static_cast<int>(system.gpus.size())} {}

  Expected<Network> build(int nodes) {
    std::vector<std::string> hosts;
    for (const NcclGpu& gpu : system_.gpus) hosts.push_back(host_of(system_, gpu.hub));
    const bool several = nodes > 1 || std::ranges::adjacent_find(hosts, std::ranges::not_equal_to{}) != hosts.end();
    if (nodes > 1 && interfaces_.empty())
      return Diagnostic{of_field("topology"), fmt::format("expected one node, a slice of {}, as the file names no network interface, found {} nodes", counted(gpus_, "chip"), nodes)};
    for (int node = 0; node < nodes; ++node)
      for (int gpu = 0; gpu < gpus_; ++gpu) names_.push_back(fmt::format("{}.{}", node, gpu));
    for (int node = 0; node < nodes; ++node) add_node(node);
    if (several) add_rails();
    auto network = Network::make(nodes * gpus_, std::move(names_), cables_);
    if (!network) return Diagnostic{of_field("topology"), network.error().message};
    return network;
  }

 private:
  int add(std::string name) {
    names_.push_back(std::move(name));
    return static_cast<int>(names_.size()) - 1;
  }
  void join(int from, int to, BytesPerSecond bandwidth, Seconds latency = {}, std::optional<int> dimension = std::nullopt, double in_switch_efficiency = 0) {
    cables_.push_back({from, to, {bandwidth, latency, in_switch_efficiency}, dimension});
  }

  void add_node(int node) {
    add_nvlinks(node);
    std::vector<int> hubs;
    int cpus = 0, switches = 0;
    for (const NcclHub& hub : system_.hubs) {
      hubs.push_back(hub.above < 0 ? add(fmt::format("cpu {}.{}", node, cpus++)) : add(fmt::format("pci {}.{}", node, switches++)));
      if (hub.above >= 0) join(hubs.back(), hubs[static_cast<std::size_t>(hub.above)], hub.bandwidth);
    }
    for (std::size_t a = 0; a < hubs.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (const NcclHub &one = system_.hubs[a], &other = system_.hubs[b]; one.above < 0 && other.above < 0 && one.host == other.host)
          join(hubs[a], hubs[b], std::min(one.bandwidth, other.bandwidth));
    for (int g = 0; g < gpus_; ++g) {
      const NcclGpu& gpu = system_.gpus[static_cast<std::size_t>(g)];
      const int port = add(fmt::format("port {}.{}", node, g));
      join(node * gpus_ + g, port, gpu.pcie);
      join(port, hubs[static_cast<std::size_t>(gpu.hub)], gpu.pcie);
      int cpu = gpu.hub;
      while (system_.hubs[static_cast<std::size_t>(cpu)].above >= 0) cpu = system_.hubs[static_cast<std::size_t>(cpu)].above;
      if (gpu.c2c.count() > 0) join(node * gpus_ + g, hubs[static_cast<std::size_t>(cpu)], gpu.c2c);
    }
    int number = 0;
    std::map<int, int> cards;  // whose ports are several interfaces: their nodes of the network
    for (const Interface& interface : interfaces_) {
      nics_.emplace_back(&interface, add(fmt::format("nic {}.{}", node, number++)));
      const int hub = hubs[static_cast<std::size_t>(interface.hub)];
      if (std::ranges::count(interfaces_, interface.card, &Interface::card) < 2) {
        join(nics_.back().second, hub, interface.pcie);
        continue;
      }
      if (!cards.contains(interface.card)) {
        cards[interface.card] = add(fmt::format("card {}.{}", node, cards.size()));
        join(cards[interface.card], hub, interface.pcie);
      }
      join(nics_.back().second, cards[interface.card], interface.pcie);
    }
  }

  void add_nvlinks(int node) {
    int nvswitch = -1;
    const auto to_switch = [&](int gpu, BytesPerSecond bandwidth) {
      if (nvswitch < 0) nvswitch = add(fmt::format("nvswitch {}", node));
      join(node * gpus_ + gpu, nvswitch, bandwidth, to_switch_.latency, along_nvlinks, to_switch_.in_switch_efficiency);
    };
    for (int g = 0; g < gpus_; ++g) {
      if (!system_.tells_nvlinks) to_switch(g, to_switch_.bandwidth);
      for (const NcclPeer& peer : system_.gpus[static_cast<std::size_t>(g)].peers) {
        if (peer.gpu < 0) to_switch(g, peer.bandwidth);
        const auto back = peer.gpu < 0 ? std::vector<NcclPeer>{} : system_.gpus[static_cast<std::size_t>(peer.gpu)].peers;
        const bool listed_there = std::ranges::find(back, g, &NcclPeer::gpu) != back.end();  // both ends list the same links
        if (peer.gpu > g || (peer.gpu >= 0 && !listed_there)) join(node * gpus_ + g, node * gpus_ + peer.gpu, peer.bandwidth, to_switch_.latency, along_nvlinks);
      }
    }
  }

  void add_rails() {
    std::map<int, int> rails;
    for (const auto& [interface, nic] : nics_) {
      auto rail = rails.find(interface->rail);
      if (rail == rails.end()) rail = rails.emplace(interface->rail, add(fmt::format("rail {}", interface->rail))).first;
      join(nic, rail->second, interface->speed, interface->latency, along_rails);
    }
  }

  const NcclSystem& system_;
  LinkParameters to_switch_;
  std::vector<Interface> interfaces_;
  int gpus_;
  std::vector<std::string> names_;
  std::vector<Cable> cables_;
  std::vector<std::pair<const Interface*, int>> nics_;  // with their nodes of the network
};

}  // namespace

Expected<Network> nccl_network(const NcclSystem& system, int nodes, const LinkParameters& to_rail, const LinkParameters& to_switch) {
  return Builder{system, to_rail, to_switch}.build(nodes);
}

}  // namespace podsim
