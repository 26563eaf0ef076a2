#include "workloads/hlo/collective_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// Whether the devices of an axis that follow each other are neighbours, the first and the last of them too.
bool is_ring_of_neighbours(const AxisCells& laid) {
  for (std::size_t c = 0; c < laid.cell.size(); ++c) {
    int from = laid.cell[c], to = laid.cell[(c + 1) % laid.cell.size()], hops = 0;
    for (auto dimension = laid.dimensions.rbegin(); dimension != laid.dimensions.rend(); ++dimension) {
      const int apart = std::abs(from % dimension->size - to % dimension->size);
      hops += dimension->wraps ? std::min(apart, dimension->size - apart) : apart;
      from /= dimension->size, to /= dimension->size;
    }
    if (hops > 1) return false;
  }
  return true;
}

}  // namespace

const HloStrategy* strategy_of(const HloInstruction& collective, const HloInstruction& runs_as) {
  for (const HloInstruction* const one : {&collective, &runs_as})
    if (one->attributes->strategy) return &*one->attributes->strategy;
  return nullptr;
}

std::string to_text(const HloStrategy& strategy) {
  if (strategy.rings.empty()) return strategy.name;
  const std::string colours = strategy.colors == 0 ? "" : fmt::format("{} colour{}, ", strategy.colors, strategy.colors == 1 ? "" : "s");
  return fmt::format("{}: {}{} of {}", strategy.name, colours, strategy.rings.size() == 1 ? "a ring" : "rings", fmt::join(strategy.rings, ", "));
}

std::string algorithm_of(const HloStrategy& strategy, const Mesh& mesh, const std::vector<AxisView>& axes, const CellRule& cells) {
  const std::vector<AxisView> dimensions = dimensions_along(mesh, axes);
  const bool in_phases = strategy.rings.size() != 1 && strategy.colors > 1;
  if (dimensions.size() == 1 && axes.size() == 1 && in_phases && cells && cells(mesh, axes.front())) return "rotations";
  std::int64_t devices = 1;
  for (const AxisView& dimension : dimensions) devices *= dimension.size;
  const std::string around = devices % 2 == 0 && devices <= most_on_hamiltonian_ring ? "hamiltonian-ring" : "";
  const bool one_ring = strategy.rings.size() == 1;
  if (dimensions.size() == 1 && axes.size() == 1 && one_ring && cells)
    if (const auto laid = cells(mesh, axes.front()); laid && !is_ring_of_neighbours(*laid)) return around;
  if (dimensions.size() < 2) return {};
  if (!one_ring) return in_phases ? "rotations" : "";
  return around;
}

}  // namespace podsim
