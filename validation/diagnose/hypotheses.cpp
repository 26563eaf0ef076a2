#include "validation/diagnose/hypotheses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "sim/base/units.hpp"
#include "validation/calibration/fit/predict.hpp"
#include "workloads/scenario/collective_candidates.hpp"

namespace podsim {

namespace {

std::string words_of(double left) {
  if (left == 0.75) return "at three quarters of its rate";
  if (left == 0.5) return "at half its rate";
  if (left == 0.25) return "at a quarter of its rate";
  return left == 0 ? "cut off" : fmt::format("at {:.2g} of its rate", left);
}

Expected<MachineHypothesis> slow_cables(const std::string& sort, const std::vector<CableEnds>& cables, const std::string& part, double left, const System& healthy) {
  Faults faults = healthy.faults;
  for (const CableEnds& cable : cables)
    if (left > 0)
      faults.slow_cables.push_back({cable, left});
    else
      faults.broken.push_back(cable);
  auto system = with_faults(healthy, std::move(faults));
  if (!system) return system.error();
  std::string option = left > 0 ? fmt::format("--degrade '{}={}'", part, left) : fmt::format("--fail '{}'", part);
  return MachineHypothesis{sort, fmt::format("{} {}", sort, words_of(left)), std::move(option), *std::move(system), AlgorithmRule::healthy, {}, cables, part, left};
}

/// What NCCL can be told to run, by the name that it has here.
struct NcclAlgorithm {
  std::string_view name, words;
};
constexpr std::array<NcclAlgorithm, 4> nccl_algorithms{{{"channels", "rings on all network interfaces (NCCL_ALGO=Ring)"},
                                                        {"ring", "one ring, over one network interface of each node"},
                                                        {"in-switch", "sums in the node's switches (NCCL_ALGO=NVLS)"},
                                                        {"hierarchical-in-switch", "sums in the node's switches (NCCL_ALGO=NVLSTree)"}}};

class Hypotheses {
 public:
  explicit Hypotheses(const System& healthy) : healthy_{healthy} { found_.push_back({"", "healthy", "", healthy, AlgorithmRule::healthy, {}}); }

  Status add_slow_cables() {
    const Topology& topology = *healthy_.whole_slice;
    std::set<int> seen;
    for (int node = 0; node < topology.nodes(); ++node)
      for (const OutLink& out : topology.out_links(ChipId{node})) {
        const auto dimension = topology.dimension_of(out.link);
        if (!dimension || !seen.insert(*dimension).second) continue;
        const CableEnds cable{ChipId{node}, out.to};
        const bool to_rail = topology.chip_name(out.to).starts_with("rail ");
        if (auto ok = add_parts(fmt::format("{} ({})", to_rail ? "one network interface" : fmt::format("one cable of link[{}]", dimension_name(*dimension)), to_text(cable, topology)), {cable}); !ok) return ok;
        if (out.to.value < topology.chips()) continue;
        std::vector<CableEnds> all;
        for (const OutLink& back : topology.out_links(out.to)) all.push_back({back.to, out.to});
        if (all.size() > 2)
          if (auto ok = add_parts(fmt::format("{} ({} cables)", topology.chip_name(out.to), all.size()), all, topology.chip_name(out.to)); !ok) return ok;
      }
    return success();
  }

  Status add_slow_links() {
    for (std::size_t d = 0; d < healthy_.slice.extents.size() && d < healthy_.machine.link.size(); ++d) {
      if (healthy_.slice.extents[d] < 2) continue;
      const int link = link_dimension(healthy_, d);
      const auto at = static_cast<std::size_t>(link);
      const char letter = dimension_name(link);
      const BytesPerSecond rate = healthy_.machine.link.at(at).bandwidth;
      if (!is_unlimited(rate))
        if (auto ok = add_machine(fmt::format("every link[{}] at half its rate", letter), fmt::format("--set 'link[{}].bandwidth={}'", letter, to_exact_text(0.5 * rate)), AlgorithmRule::healthy,
                                  [&](Machine& machine) { machine.link.at(at).bandwidth = 0.5 * rate; });
            !ok)
          return ok;
      if (healthy_.machine.link.at(at).in_switch_efficiency > 0)
        if (auto ok = add_machine(fmt::format("no sums in the switches of link[{}] (NCCL: NVLS off)", letter), fmt::format("--set 'link[{}].in_switch_efficiency=0'", letter), AlgorithmRule::again,
                                  [&](Machine& machine) { machine.link.at(at).in_switch_efficiency = 0; });
            !ok)
          return ok;
    }
    return success();
  }

  Status add_slow_device() {
    Faults faults = healthy_.faults;
    faults.slow_devices.push_back({ChipId{0}, 0, 0.5});
    std::string chip = healthy_.whole_slice->chip_name(ChipId{0});
    std::erase_if(chip, [](char c) { return c == '(' || c == ')'; });
    std::ranges::replace(chip, ',', '.');
    auto system = with_faults(healthy_, std::move(faults));
    if (!system) return system.error();
    found_.push_back({"a slow device", fmt::format("the device {} at half its speed", chip), fmt::format("--straggler {}=0.5", chip), *std::move(system), AlgorithmRule::healthy, {}});
    return success();
  }

  Status add_protocol(const std::set<CollectiveKind>& kinds) {
    if (healthy_.machine.interconnect != Interconnect::rail) return success();
    Machine changed = healthy_.machine;
    std::string option;
    for (const CollectiveKind kind : kinds) {
      auto& curve = changed.software.efficiency.at(static_cast<std::size_t>(cost_kind_of(kind)));
      if (curve.size() < 2) continue;
      const double least = std::ranges::min_element(curve, {}, &EfficiencyPoint::efficiency)->efficiency;
      for (EfficiencyPoint& point : curve) point.efficiency = least;
      option += fmt::format("{}--set 'collective.efficiency[{}]={}'", option.empty() ? "" : " ", name_of(kind), least);
    }
    return !option.empty() ? add_machine("the protocol LL at every size (NCCL_PROTO=LL)", option, AlgorithmRule::healthy, [&](Machine& machine) { machine = changed; }) : success();
  }

  Status add_algorithms(const std::vector<Observation>& observations) {
    std::vector<std::string_view> names;
    bool has_orders = false;
    for (const Observation& row : observations) {
      const auto schedule = schedule_of(row, healthy_);
      if (!schedule) return schedule.error();
      const auto* collective = std::get_if<Collective>(&schedule->computes);
      if (collective == nullptr || collective->kind == CollectiveKind::permute) continue;
      has_orders = has_orders || collective->axes.size() > 1;
      for (const Lowering& lowering : candidates(schedule->mesh, *collective))
        if (has_its_switches(lowering, healthy_, schedule->mesh, *collective) && std::ranges::find(names, lowering.algorithm->name) == names.end()) names.push_back(lowering.algorithm->name);
    }
    const bool gpus = healthy_.machine.interconnect == Interconnect::rail;
    for (const std::string_view name : names) {
      const auto* const own = std::ranges::find(nccl_algorithms, name, &NcclAlgorithm::name);
      if (gpus && own == nccl_algorithms.end()) continue;
      add_algorithm(fmt::format("{} at every size", gpus ? std::string{own->words} : "`" + std::string{name} + "`"), name, AlgorithmRule::named);
    }
    if (has_orders && std::ranges::find(names, "ring") != names.end())
      add_algorithm(fmt::format("one ring, its devices in the worst order{}", gpus ? ": another node at every step" : ""), "ring", AlgorithmRule::worst);
    return success();
  }

  std::vector<MachineHypothesis> take() { return std::move(found_); }

 private:
  /// `of_switch`: whose cables these all are, "rail 0".
  Status add_parts(const std::string& sort, const std::vector<CableEnds>& cables, std::string of_switch = "") {
    std::ranges::replace(of_switch, ' ', ':');  // as --fail takes it
    const std::string part = of_switch.empty() ? to_text(cables.front(), *healthy_.whole_slice) : of_switch;
    std::vector<double> shares{shares_tried.begin(), shares_tried.end()};
    shares.push_back(0);
    for (const double left : shares) {
      auto hypothesis = slow_cables(sort, cables, part, left, healthy_);
      if (!hypothesis) return hypothesis.error();
      found_.push_back(*std::move(hypothesis));
    }
    return success();
  }

  void add_algorithm(std::string name, std::string_view algorithm, AlgorithmRule rule) {
    found_.push_back({"", std::move(name), fmt::format("--algorithm {}", algorithm), healthy_, rule, std::string{algorithm}});
  }

  Status add_machine(std::string name, std::string option, AlgorithmRule rule, const std::function<void(Machine&)>& change) {
    Machine machine = healthy_.machine;
    change(machine);
    auto system = with_machine(healthy_, std::move(machine));
    if (!system) return system.error();
    found_.push_back({"", std::move(name), std::move(option), *std::move(system), rule, {}});
    return success();
  }

  const System& healthy_;
  std::vector<MachineHypothesis> found_;
};

}  // namespace

Expected<MachineHypothesis> at_share(const MachineHypothesis& slow, const System& healthy, double left) { return slow_cables(slow.sort, slow.cables, slow.part, left, healthy); }

Expected<std::vector<MachineHypothesis>> hypotheses_of(const std::vector<Observation>& observations, const System& healthy) {
  std::set<CollectiveKind> kinds;
  for (const Observation& row : observations)
    if (const auto kind = collective_kind_named(name_of(row.op))) kinds.insert(*kind);
  Hypotheses hypotheses{healthy};
  if (auto ok = hypotheses.add_slow_cables(); !ok) return ok.error();
  if (auto ok = hypotheses.add_slow_links(); !ok) return ok.error();
  if (auto ok = hypotheses.add_slow_device(); !ok) return ok.error();
  if (auto ok = hypotheses.add_protocol(kinds); !ok) return ok.error();
  if (auto ok = hypotheses.add_algorithms(observations); !ok) return ok.error();
  return hypotheses.take();
}

}  // namespace podsim
