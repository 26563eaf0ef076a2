#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/xml_elements.hpp"
#include "topologies/nccl/nccl_system.hpp"

namespace podsim {

namespace {

using pugi::xml_node;

constexpr int deepest = 32;
constexpr std::size_t most_in_a_node = 4096;

// NVIDIA/nccl @5067397c and ROCm/rccl @0cbce2a7, src/graph/topo.h and topo.cc, all GB/s of one direction.
constexpr double giga = 1e9, inside_a_host = 5000;
double nvlink_rate(std::int64_t sm) { return sm >= 100 ? 40.1 : sm >= 90 ? 20.6 : sm == 86 ? 12 : sm >= 70 ? 20 : sm >= 60 ? 18 : 20; }
double xgmi_rate(std::string_view gcn) { return gcn.starts_with("gfx90a") || gcn == "910" ? 36 : gcn.starts_with("gfx94") || gcn.starts_with("94") ? 48 : 24; }
/// nullopt: a speed that NCCL does not know, for which it takes that of PCIe 3.
std::optional<double> pcie_lane(std::string_view speed) {
  constexpr std::array<std::pair<std::string_view, double>, 6> generations{{{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}}};  // units of 100 Mb/s a lane
  const std::size_t unit = speed.find(" GT/s");
  if (unit == std::string_view::npos) return std::nullopt;
  std::string_view number = speed.substr(0, unit);
  if (number.ends_with(".0")) number.remove_suffix(2);
  const auto* const known = std::ranges::find(generations, number, &std::pair<std::string_view, double>::first);
  return known == generations.end() ? std::nullopt : std::optional{known->second};
}
double between_cpus(std::string_view arch, std::string_view vendor, std::int64_t family, std::int64_t model) {
  if (arch == "ppc64") return 32;
  if (arch == "arm64") return 6;
  if (vendor == "AuthenticAMD") return 16;
  if (vendor == "GenuineIntel") return family != 6 ? 6 : model >= 0xCF ? 40 : model >= 0x8F ? 22 : model >= 0x55 ? 10 : 6;
  return arch == "x86_64" && !vendor.empty() ? 6 : inside_a_host;
}

/// A machine of podsim with the GPUs of a PCI device id, or else of a compute capability.
std::string_view machine_with(std::string_view device, std::int64_t sm) {
  struct Gpu {
    std::string_view device;
    std::int64_t sm;
    std::string_view machine;
  };
  constexpr std::array<Gpu, 7> gpus{{{"0x2335", 0, "dgx_h200"}, {"0x2330", 90, "dgx_h100"}, {"0x20b0", 80, "dgx_a100"}, {"0x20b2", 80, "dgx_a100"}, {"0x20b5", 80, "dgx_a100"}, {"0x2901", 100, "dgx_b200"}, {"0x2941", 0, "gb200_nvl72"}}};
  for (const Gpu& gpu : gpus)
    if (gpu.device == device) return gpu.machine;
  for (const Gpu& gpu : gpus)
    if (sm > 0 && gpu.sm == sm) return gpu.machine;
  return {};
}

bool is_gpu_class(std::string_view pci_class) { return pci_class.starts_with("0x03") || pci_class.starts_with("0x12"); }

class SystemReader {
 public:
  explicit SystemReader(const XmlText& xml) : xml_{xml} {}

  Expected<NcclSystem> read() {
    for (const xml_node cpu : xml_.root().children()) {
      if (std::string_view{cpu.name()} != "cpu") {
        skip(cpu);
        continue;
      }
      const auto family = number(cpu, "familyid", 0), model = number(cpu, "modelid", 0);
      if (!family) return family.error();
      if (!model) return model.error();
      const double rate = between_cpus(cpu.attribute("arch").value(), cpu.attribute("vendor").value(), *family, *model);
      system_.hubs.push_back({-1, BytesPerSecond{rate * giga}, cpu.attribute("host_hash").value()});
      if (auto ok = read_below(cpu, static_cast<int>(system_.hubs.size()) - 1, 1); !ok) return ok.error();
    }
    if (gpus_.empty()) return Diagnostic{xml_.where(xml_.root()), "expected a GPU (an element \"gpu\", or \"pci\" of the class 0x03 or 0x12), found none; where a file leaves them to NCCL, NCCL_TOPO_DUMP_FILE has them"};
    if (auto ok = order(); !ok) return ok.error();
    if (auto ok = link(); !ok) return ok.error();
    shorten();
    compare_links();
    tell();
    return std::move(system_);
  }

 private:
  struct ReadGpu {
    NcclGpu gpu;
    xml_node pci, element;  // element: null in a file that leaves it to NCCL
    std::int64_t order = 0;
  };

  /// An attribute that may be missing.
  [[nodiscard]] Expected<std::int64_t> number(xml_node node, const char* name, std::int64_t otherwise, std::int64_t low = 0, std::int64_t high = 1 << 30) const {
    return node.attribute(name) ? xml_.integer(node, name, low, high) : Expected<std::int64_t>{otherwise};
  }
  void skip(xml_node node) { ++skipped_[node.type() == pugi::node_element ? node.name() : "text"]; }

  Expected<BytesPerSecond> pcie_of(xml_node pci) {
    const auto lanes = number(pci, "link_width", 0, 0, 64);
    if (!lanes) return lanes.error();
    const auto lane = pcie_lane(pci.attribute("link_speed").value());
    if (pci.attribute("link_speed") && !lane) ++unknown_pcie_;
    return BytesPerSecond{static_cast<double>(*lanes == 0 ? 16 : *lanes) * lane.value_or(60) / 80 * giga};
  }

  Status read_below(xml_node parent, int hub, int depth) {
    if (depth > deepest) return Diagnostic{xml_.where(parent), fmt::format("expected at most {} elements within each other, found more", deepest)};
    for (const xml_node node : parent.children()) {
      const std::string_view name = node.name();
      if (name == "pci") {
        if (auto ok = read_pci(node, hub, depth); !ok) return ok;
      } else if (name == "nic") {  // of no PCI device, as in a container
        if (auto ok = read_nic(node, {"", hub, cards_++, BytesPerSecond{inside_a_host * giga}, {}, {}}); !ok) return ok;
      } else {
        skip(node);
      }
    }
    return success();
  }

  Status read_pci(xml_node pci, int hub, int depth) {
    const auto rate = pcie_of(pci);
    if (!rate) return rate.error();
    const std::string_view pci_class = pci.attribute("class").value();
    bool has_pci = false, has_gpu = false, has_nic = false;
    for (const xml_node child : pci.children()) {
      const std::string_view name = child.name();
      has_pci = has_pci || name == "pci", has_gpu = has_gpu || name == "gpu", has_nic = has_nic || name == "nic";
    }
    if (has_gpu || (is_gpu_class(pci_class) && !has_pci)) return read_gpu(pci, hub, *rate);
    if (has_pci) {
      system_.hubs.push_back({hub, *rate, {}});
      return read_below(pci, static_cast<int>(system_.hubs.size()) - 1, depth + 1);
    }
    const int card = cards_++;
    if (has_nic) {
      for (const xml_node nic : pci.children())
        if (std::string_view{nic.name()} != "nic")
          skip(nic);
        else if (auto ok = read_nic(nic, {"", hub, card, *rate, {}, {}}); !ok)
          return ok;
      return success();
    }
    if (pci_class.starts_with("0x02")) return add_nic({"", hub, card, *rate, {}, {}}, static_cast<std::int64_t>(nics_.size()), pci);
    ++skipped_[pci_class.empty() ? "pci without a class" : "pci of another class"];
    return success();
  }

  Status read_gpu(xml_node pci, int hub, BytesPerSecond pcie) {
    std::vector<xml_node> elements;
    for (const xml_node child : pci.children())
      if (std::string_view{child.name()} == "gpu")
        elements.push_back(child);
      else
        skip(child);
    if (elements.empty()) elements.emplace_back();
    for (const xml_node element : elements) {
      const auto rank = number(element, "rank", -1, -1);
      if (!rank) return rank.error();
      if (gpus_.size() >= most_in_a_node) return Diagnostic{xml_.where(pci), fmt::format("expected at most {} GPUs, found more", most_in_a_node)};
      system_.tells_nvlinks = system_.tells_nvlinks || element;
      gpus_.push_back({{pci.attribute("busid").value(), hub, pcie, {}, {}}, pci, element, *rank});
    }
    return success();
  }

  /// The ports of a card.
  Status read_nic(xml_node nic, const NcclNic& card) {
    for (const xml_node net : nic.children()) {
      if (std::string_view{net.name()} != "net") {
        skip(net);
        continue;
      }
      const auto speed = number(net, "speed", 0, -1), dev = number(net, "dev", static_cast<std::int64_t>(nics_.size()));
      if (!speed) return speed.error();
      if (!dev) return dev.error();
      double latency = 0;
      const std::string_view text = net.attribute("latency").value();
      const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), latency);
      if (!text.empty() && (status != std::errc{} || rest != text.data() + text.size() || !(latency >= 0 && latency < 1e6)))
        return Diagnostic{xml_.where(net.attribute("latency")), fmt::format("expected a latency in us, found {}", quoted(text))};
      NcclNic port = card;
      port.name = net.attribute("name").value(), port.latency = Seconds{latency * 1e-6};
      if (net.attribute("speed")) {
        slow_nets_ += *speed > 0 ? 0 : 1;
        port.speed = BytesPerSecond{static_cast<double>(*speed > 0 ? *speed : 10000) / 8000 * giga};
      }
      if (auto ok = add_nic(std::move(port), *dev, net); !ok) return ok;
    }
    return success();
  }

  Status add_nic(NcclNic nic, std::int64_t dev, xml_node node) {
    if (nics_.size() >= most_in_a_node) return Diagnostic{xml_.where(node), fmt::format("expected at most {} network interfaces, found more", most_in_a_node)};
    // Interfaces of no PCI device are listed below every CPU of a host.
    if (!nic.name.empty() && !names_.emplace(host_of(nic.hub), nic.name, dev).second) {
      ++skipped_["net that was listed before"];
      return success();
    }
    nics_.emplace_back(dev, std::move(nic));
    return success();
  }

  [[nodiscard]] const std::string& host_of(int hub) const {
    while (system_.hubs[static_cast<std::size_t>(hub)].above >= 0) hub = system_.hubs[static_cast<std::size_t>(hub)].above;
    return system_.hubs[static_cast<std::size_t>(hub)].host;
  }

  Status order() {
    std::set<std::int64_t> ranks;
    for (const ReadGpu& gpu : gpus_)
      if (gpu.order >= 0 && !ranks.insert(gpu.order).second)
        return Diagnostic{xml_.where(gpu.element.attribute("rank")), fmt::format("expected every rank once, found {} again", gpu.order)};
    if (ranks.size() == gpus_.size()) std::ranges::stable_sort(gpus_, {}, &ReadGpu::order);
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const std::string& bus = gpus_[i].gpu.bus;
      const auto [known, is_new] = by_bus_.try_emplace({host_of(gpus_[i].gpu.hub), bus}, static_cast<int>(i));
      if (!is_new && !bus.empty() && gpus_[static_cast<std::size_t>(known->second)].pci != gpus_[i].pci && ranks.size() != gpus_.size())
        return Diagnostic{xml_.where(gpus_[i].pci), fmt::format("expected every GPU once, found the bus id {} again", quoted(bus))};
    }
    std::ranges::stable_sort(nics_, {}, [](const auto& nic) { return nic.first; });
    for (auto& [dev, nic] : nics_) system_.nics.push_back(std::move(nic));
    return success();
  }

  /// NVLinks and xGMI links, where all GPUs are known.
  Status link() {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const xml_node element = gpus_[g].element;
      const auto sm = number(element, "sm", 0);
      if (!sm) return sm.error();
      if (g == 0) system_.machine = machine_with(gpus_[g].pci.attribute("device").value(), element.attribute("gcn") ? 0 : *sm), system_.gcn = element.attribute("gcn").value();
      for (const xml_node child : element.children()) {
        const std::string_view name = child.name();
        if (name == "c2c") {
          const auto links = number(child, "count", 0, 0, 1024), megabytes = number(child, "bw", 0);
          if (!links) return links.error();
          if (!megabytes) return megabytes.error();
          gpus_[g].gpu.c2c = BytesPerSecond{static_cast<double>(*links * *megabytes) * 1e6};
          continue;
        }
        if (name != "nvlink" && name != "xgmi") {
          skip(child);
          continue;
        }
        const auto count = number(child, "count", 1, 0, 1024);
        if (!count) return count.error();
        const auto peer = peer_of(child, static_cast<int>(g));
        if (!peer) {
          ++skipped_[fmt::format("{} to no other GPU of the file", name)];
          continue;
        }
        auto& peers = gpus_[g].gpu.peers;
        auto known = std::ranges::find(peers, *peer, &NcclPeer::gpu);
        if (known == peers.end()) known = peers.insert(peers.end(), NcclPeer{*peer, 0, BytesPerSecond{0}});
        known->links += static_cast<int>(*count);
        const double rate = name == "xgmi" ? xgmi_rate(element.attribute("gcn").value()) : nvlink_rate(*sm);
        known->bandwidth = BytesPerSecond{known->links * rate * giga};
      }
      std::erase_if(gpus_[g].gpu.peers, [](const NcclPeer& peer) { return peer.links == 0; });
    }
    for (ReadGpu& gpu : gpus_) system_.gpus.push_back(std::move(gpu.gpu));
    return success();
  }

  [[nodiscard]] std::optional<int> peer_of(xml_node link, int from) const {
    const std::string_view target_class = link.attribute("tclass").value();
    if (target_class == "0x068000") return -1;
    const auto found = by_bus_.find({host_of(gpus_[static_cast<std::size_t>(from)].gpu.hub), link.attribute("target").value()});
    return is_gpu_class(target_class) && found != by_bus_.end() && found->second != from ? std::optional{found->second} : std::nullopt;
  }

  /// Takes out PCIe switches with one device below them: what is below is linked to what is above.
  void shorten() {
    std::vector<NcclHub>& hubs = system_.hubs;
    std::vector<int> below(hubs.size(), 0);
    for (const NcclHub& hub : hubs)
      if (hub.above >= 0) ++below[static_cast<std::size_t>(hub.above)];
    for (const NcclGpu& gpu : system_.gpus) ++below[static_cast<std::size_t>(gpu.hub)];
    for (const NcclNic& nic : system_.nics) ++below[static_cast<std::size_t>(nic.hub)];
    const auto raise = [&](int& hub, BytesPerSecond& rate) {
      for (const NcclHub* at = &hubs[static_cast<std::size_t>(hub)]; at->above >= 0 && below[static_cast<std::size_t>(hub)] < 2; at = &hubs[static_cast<std::size_t>(hub)])
        rate = std::min(rate, at->bandwidth), hub = at->above;
    };
    for (NcclGpu& gpu : system_.gpus) raise(gpu.hub, gpu.pcie);
    for (NcclNic& nic : system_.nics) raise(nic.hub, nic.pcie);
    std::vector<int> number(hubs.size(), -1);
    std::vector<NcclHub> kept;
    for (std::size_t h = 0; h < hubs.size(); ++h) {
      if (hubs[h].above >= 0) raise(hubs[h].above, hubs[h].bandwidth);
      if (hubs[h].above >= 0 && below[h] < 2) continue;
      number[h] = static_cast<int>(kept.size());
      kept.push_back(hubs[h]);
      if (kept.back().above >= 0) kept.back().above = number[static_cast<std::size_t>(kept.back().above)];
    }
    for (NcclGpu& gpu : system_.gpus) gpu.hub = number[static_cast<std::size_t>(gpu.hub)];
    for (NcclNic& nic : system_.nics) nic.hub = number[static_cast<std::size_t>(nic.hub)];
    hubs = std::move(kept);
  }

  /// GPUs whose NVLinks to the NVSwitches are down, in part or all.
  void compare_links() {
    std::vector<int> links;
    for (const NcclGpu& gpu : system_.gpus) {
      const auto found = std::ranges::find(gpu.peers, -1, &NcclPeer::gpu);
      links.push_back(found == gpu.peers.end() ? 0 : found->links);
    }
    const int most = std::ranges::max(links);
    constexpr int most_named = 8;
    int named = 0;
    for (std::size_t g = 0; g < links.size(); ++g)
      if (links[g] < most && named++ < most_named)
        system_.notes.push_back(fmt::format("GPU {} has {} to NVSwitches, others have {}: is one down?", g, counted(links[g], "link"), most));
    if (named > most_named) system_.notes.push_back(fmt::format("so have {} more GPUs", named - most_named));
  }

  void tell() {
    if (unknown_pcie_ > 0) system_.notes.push_back(fmt::format("the PCIe speed of {} is empty, or none that NCCL knows: 12 GB/s on 16 lanes, as NCCL takes it", counted(unknown_pcie_, "device")));
    if (slow_nets_ > 0) system_.notes.push_back(fmt::format("the speed of {} is 0 or below: 10 Gb/s, as NCCL takes it", counted(slow_nets_, "network interface")));
    if (!system_.tells_nvlinks) system_.notes.emplace_back("the file leaves NVLinks to NCCL: every GPU has the machine's, link[y], to one switch");
    if (std::ranges::any_of(system_.nics, [](const NcclNic& nic) { return nic.speed.count() == 0; }))
      system_.notes.emplace_back("the file leaves the speed of network interfaces to NCCL: each has the machine's, link[x]");
    for (const auto& [what, count] : skipped_) system_.notes.push_back(fmt::format("not read: {} ({})", what, count == 1 ? "once" : fmt::format("{} times", count)));
  }

  const XmlText& xml_;
  NcclSystem system_;
  std::vector<ReadGpu> gpus_;
  std::vector<std::pair<std::int64_t, NcclNic>> nics_;  // with `dev`
  std::set<std::tuple<std::string, std::string, std::int64_t>> names_;
  std::map<std::pair<std::string, std::string>, int> by_bus_;  // by host and bus id
  std::map<std::string, int> skipped_;  // elements, by what they are
  int cards_ = 0, unknown_pcie_ = 0, slow_nets_ = 0;
};

/// "25 GB/s", "12.5 GB/s to 25 GB/s"
template <class Devices, class Rate>
std::string rates_of(const Devices& devices, Rate rate) {
  const auto [least, most] = std::ranges::minmax(devices, {}, rate);
  const std::string low = to_text(rate(least)), high = to_text(rate(most));
  return low == high ? low : low + " to " + high;
}

}  // namespace

Expected<NcclSystem> read_nccl_system(std::string_view text, const std::string& file) {
  const auto xml = XmlText::parse(text, file, "system");
  if (!xml) return xml.error();
  return SystemReader{*xml}.read();
}

std::string to_text(const NcclSystem& system) {
  std::vector<std::string> parts{counted(static_cast<std::int64_t>(system.gpus.size()), "GPU")};
  std::vector<NcclPeer> to_switches, to_gpus;
  for (const NcclGpu& gpu : system.gpus)
    for (const NcclPeer& peer : gpu.peers) (peer.gpu < 0 ? to_switches : to_gpus).push_back(peer);
  const auto bandwidth = [](const NcclPeer& peer) { return peer.bandwidth; };
  if (!to_switches.empty()) parts.push_back(fmt::format("{} of them on NVSwitches by {}", to_switches.size(), rates_of(to_switches, bandwidth)));
  if (const auto with = std::ranges::count_if(system.gpus, [](const NcclGpu& gpu) { return gpu.c2c.count() > 0; }); with > 0) {
    const auto c2c = std::ranges::find_if(system.gpus, [](const NcclGpu& gpu) { return gpu.c2c.count() > 0; })->c2c;
    parts.push_back(fmt::format("{} of them on their CPU by C2C of {}", with, to_text(c2c)));
  }
  if (!to_gpus.empty()) parts.push_back(fmt::format("{} linked directly by {}", counted(static_cast<std::int64_t>(to_gpus.size() / 2), "pair"), rates_of(to_gpus, bandwidth)));
  const auto cpus = std::ranges::count(system.hubs, -1, &NcclHub::above);
  if (const auto switches = static_cast<std::int64_t>(system.hubs.size()) - cpus; switches > 0) parts.push_back(fmt::format("{} PCIe switch{}", switches, switches == 1 ? "" : "es"));
  parts.push_back(counted(cpus, "CPU"));
  if (!system.nics.empty()) {
    const bool tells = std::ranges::all_of(system.nics, [](const NcclNic& nic) { return nic.speed.count() > 0; });
    parts.push_back(fmt::format("{}{}", counted(static_cast<std::int64_t>(system.nics.size()), "network interface"), tells ? " of " + rates_of(system.nics, [](const NcclNic& nic) { return nic.speed; }) : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace podsim
