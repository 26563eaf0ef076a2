#include "workloads/hlo/collective_strategy.hpp"

#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

const HloStrategy* strategy_of(const HloInstruction& collective, const HloInstruction& runs_as) {
  for (const HloInstruction* const one : {&collective, &runs_as})
    if (one->attributes->strategy) return &*one->attributes->strategy;
  return nullptr;
}

std::string to_text(const HloStrategy& strategy) {
  if (strategy.rings.empty()) return strategy.name;
  return fmt::format("{}: {} colour{}, {} of {}", strategy.name, strategy.colors, strategy.colors == 1 ? "" : "s", strategy.rings.size() == 1 ? "a ring" : "rings",
                     fmt::join(strategy.rings, ", "));
}

std::string algorithm_of(const HloStrategy& strategy, const Mesh& mesh, const std::vector<AxisView>& axes, const CellRule& cells) {
  const std::vector<AxisView> dimensions = dimensions_along(mesh, axes);
  const bool in_phases = strategy.rings.size() != 1 && strategy.colors > 1;
  if (dimensions.size() == 1 && axes.size() == 1 && in_phases && cells && cells(mesh, axes.front())) return "rotations";
  if (dimensions.size() < 2) return {};
  if (strategy.rings.size() != 1) return in_phases ? "rotations" : "";
  std::int64_t devices = 1;
  for (const AxisView& dimension : dimensions) devices *= dimension.size;
  return devices % 2 == 0 && devices <= most_on_hamiltonian_ring ? "hamiltonian-ring" : "";
}

}  // namespace podsim
