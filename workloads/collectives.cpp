#include "workloads/collectives.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "sim/base/invariant.hpp"
#include "workloads/plan.hpp"

namespace podsim {

namespace {

constexpr int most_chunks = 64;

/// A transfer between neighbours along an axis: seconds before its first byte, and per byte.
struct HopCost {
  double alpha = 0, beta = 0;
};

/// Of each hop from coordinate c to c+1 in the first group along the axis; `around`: and of that from the last to the first.
std::vector<HopCost> hops_along(const Mesh& mesh, const AxisView& axis, Seconds per_message, const Topology& topology, const Placement& placement,
                                bool around = false) {
  std::vector<HopCost> hops;
  Coordinates at(mesh.axes().size(), 0);
  const auto chip = [&](int coordinate) {
    at[static_cast<std::size_t>(axis.axis)] = coordinate * axis.stride;
    return placement.chip_of[mesh.device(at).index()];
  };
  std::vector<LinkId> links;
  for (int c = 0; c + (around ? 0 : 1) < axis.size; ++c) {
    links.clear();
    HopCost hop{per_message.count(), 0};
    if (topology.route(chip(c), chip((c + 1) % axis.size), {}, links))  // not connected: the simulation says so
      for (const LinkId link : links) {
        const LinkParameters parameters = topology.link(link);
        hop.alpha += parameters.latency.count();
        hop.beta = std::max(hop.beta, 1 / parameters.bandwidth.count());
      }
    hops.push_back(hop);
  }
  return hops;
}

/// The time of a pipeline: the first chunk through all stages, then one chunk after the other through the slowest stage.
double pipeline_time(const std::vector<PipelineStage>& stages, const std::vector<std::vector<HopCost>>& hops, int chunks) {
  double filling = 0, slowest = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double steps = stages[s].steps, bytes = stages[s].bytes / chunks;
    double sum = 0;
    for (const HopCost& hop : hops[s]) {
      const double time = steps * hop.alpha + bytes * hop.beta;
      sum += time;
      slowest = std::max(slowest, time);
    }
    if (!hops[s].empty()) filling += stages[s].times * sum / static_cast<double>(hops[s].size());
  }
  return filling + (chunks - 1) * slowest;
}

/// The box of a slice that the devices of a group along a whole axis fill, and the cell of each. nullopt: they do not, or it has one dimension.
std::optional<AxisCells> cells_of_group(const Grid& slice, const std::vector<ChipId>& chips) {
  const std::vector<GridDimension>& dimensions = slice.dimensions();
  const int in_slice = slice.chips();
  std::vector<std::vector<int>> at;
  for (const ChipId chip : chips) {
    if (chip.value / in_slice != chips.front().value / in_slice) return std::nullopt;
    at.push_back(slice.coordinates(ChipId{chip.value % in_slice}));
  }
  AxisCells found{{}, std::vector<int>(chips.size(), 0)};
  std::size_t cells = 1;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const auto [low, high] = std::ranges::minmax(at, {}, [&](const std::vector<int>& coordinates) { return coordinates[d]; });
    const int length = high[d] - low[d] + 1, first = low[d];
    if (length == 1) continue;
    found.dimensions.push_back({length, length == 2 || (length == dimensions[d].extent && dimensions[d].wraps)});
    cells *= static_cast<std::size_t>(length);
    for (std::size_t c = 0; c < chips.size(); ++c) found.cell[c] = found.cell[c] * length + at[c][d] - first;
  }
  if (found.dimensions.size() < 2 || cells != chips.size() || std::set<int>(found.cell.begin(), found.cell.end()).size() != cells) return std::nullopt;
  return found;
}

/// The second where the first does not take the kind, or its sizes do not divide.
CollectiveAlgorithm first_or_second(CollectiveAlgorithm first, CollectiveAlgorithm second) {
  return [first = std::move(first), second = std::move(second)](const Mesh& mesh, const Program& program, const Collective& collective) {
    auto expansion = first(mesh, program, collective);
    return expansion ? expansion : second(mesh, program, collective);
  };
}

}  // namespace

std::vector<double> latencies_along(const System& system, const Mesh& mesh, const AxisView& axis) {
  std::vector<double> latencies;
  for (const HopCost& hop : hops_along(mesh, axis, system.machine.software.per_message, *system.topology, system.placement, mesh.wraps(axis)))
    latencies.push_back(hop.alpha);
  return latencies;
}

ChunkRule chunk_rule(const System& system) {
  struct Paths {
    Seconds per_message;
    std::shared_ptr<const Topology> topology;
    Placement placement;
  };
  const auto paths = std::make_shared<const Paths>(Paths{system.machine.software.per_message, system.topology, system.placement});
  return [paths](const Mesh& mesh, const std::vector<PipelineStage>& stages) {
    std::vector<std::vector<HopCost>> hops;
    for (const PipelineStage& stage : stages) hops.push_back(hops_along(mesh, stage.axis, paths->per_message, *paths->topology, paths->placement));
    int best = 1;
    double least = pipeline_time(stages, hops, 1);
    for (int n = 2; n <= most_chunks; ++n)
      if (const double time = pipeline_time(stages, hops, n); time < least * (1 - 1e-9)) best = n, least = time;
    return best;
  };
}

CollectiveChooser on_factors(CollectiveChooser chooser, std::vector<AxisView> factors) {
  return [chooser = std::move(chooser), factors = std::move(factors)](const Schedule& schedule, const Program& program,
                                                                      const Collective& collective) -> Expected<CollectiveAlgorithm> {
    Collective factored = collective;
    factored.axes = factors;
    const auto algorithm = chooser(schedule, program, factored);
    if (!algorithm) return algorithm.error();
    return CollectiveAlgorithm{[algorithm = *algorithm, factors](const Mesh& mesh, const Program& of, const Collective& whole) {
      Collective on = whole;
      on.axes = factors;
      return algorithm(mesh, of, on);
    }};
  };
}

CollectiveChooser by_dimension(ChunkRule chunks, CellRule cells) {
  return [chunks = std::move(chunks), cells = std::move(cells)](const Schedule& schedule, const Program& program, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    const auto otherwise = ring_or_line(chunks);
    if (!collective.algorithm.empty()) {
      const auto named = always(collective.algorithm, chunks);
      if (!named) return named.error();
      auto as_named = (*named)(schedule, program, collective);
      const auto usual = otherwise(schedule, program, collective);
      if (!as_named || !usual) return as_named ? usual : as_named;
      if (goes_through_cells(*collective_algorithm_named(collective.algorithm)) && collective.axes.size() == 1 && cells)
        if (auto laid = cells(schedule.mesh, collective.axes.front()))
          as_named = CollectiveAlgorithm{[algorithm = *std::move(as_named), laid = *std::move(laid)](const Mesh& mesh, const Program& of, const Collective& one) {
            return in_cells(mesh, of, one, laid, algorithm);
          }};
      return first_or_second(*as_named, *usual);
    }
    if (collective.axes.size() != 1) return otherwise(schedule, program, collective);
    const AxisView& axis = collective.axes.front();
    std::vector<AxisView> dimensions;
    if (axis == schedule.mesh.whole(axis.axis))
      for (const AxisView& factor : schedule.mesh.factors(axis.axis))
        if (factor.size > 1) dimensions.push_back(factor);
    if (dimensions.size() < 2) return otherwise(schedule, program, collective);
    const auto rotated = always("rotations", chunks);
    if (!rotated) return rotated.error();
    const auto at_once = on_factors(*rotated, dimensions)(schedule, program, collective),
               in_turn = on_factors(otherwise, dimensions)(schedule, program, collective);
    if (!at_once || !in_turn) return at_once ? in_turn : at_once;
    return first_or_second(*at_once, *in_turn);
  };
}

bool goes_through_cells(const CollectiveAlgorithmEntry& algorithm) { return algorithm.name == "rotations" || algorithm.name == "hamiltonian-ring"; }

CellRule cells_along(const System& system) {
  if (!system.placement.core_of.empty() || system.whole_slice->plain_grid() == nullptr) return {};
  return [slice = system.whole_slice, placement = system.placement](const Mesh& mesh, const AxisView& axis) -> std::optional<AxisCells> {
    if (axis != mesh.whole(axis.axis) || mesh.factors(axis.axis).size() > 1) return std::nullopt;
    std::optional<AxisCells> found;
    std::vector<ChipId> chips(static_cast<std::size_t>(axis.size));
    for (int device = 0; device < mesh.devices(); ++device) {
      Coordinates at = mesh.coordinates(DeviceId{device});
      int& along = at[static_cast<std::size_t>(axis.axis)];
      if (along != 0) continue;
      for (; along < axis.size; ++along) chips[static_cast<std::size_t>(along)] = placement.chip_of[mesh.device(at).index()];
      const auto one = cells_of_group(*slice->plain_grid(), chips);
      if (!one || (found && *one != *found)) return std::nullopt;
      found = one;
    }
    return found;
  };
}

CollectiveChooser as_nccl(ChunkRule chunks) {
  const auto direct = always("direct"), by_level = always("hierarchical", chunks);
  PODSIM_ASSERT(direct && by_level);
  return [direct = *direct, by_level = *by_level, otherwise = ring_or_line(chunks)](const Schedule& schedule, const Program& program, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    if (collective.kind == CollectiveKind::all_to_all) return direct(schedule, program, collective);
    std::vector<AxisView> levels;
    for (const AxisView& axis : collective.axes) {
      if (axis != schedule.mesh.whole(axis.axis)) {
        levels.push_back(axis);
        continue;
      }
      for (const AxisView& factor : schedule.mesh.factors(axis.axis)) levels.push_back(factor);
    }
    std::erase_if(levels, [](const AxisView& level) { return level.size == 1; });
    auto usual = otherwise(schedule, program, collective);
    if (levels.size() < 2 || !usual) return usual;
    const auto leveled = on_factors(by_level, std::move(levels))(schedule, program, collective);
    if (!leveled) return leveled.error();
    return first_or_second(*leveled, *usual);
  };
}

CollectiveChooser direct_between_slices(const System& system, CollectiveChooser otherwise) {
  const auto direct_one = always("direct");
  PODSIM_ASSERT(direct_one);
  const auto chips = static_cast<int>(chips_of(system.slice));
  return [otherwise = std::move(otherwise), direct_one = *direct_one, placement = system.placement, chips](
             const Schedule& schedule, const Program& program, const Collective& collective) {
    const bool between = collective.axes.size() == 1 && [&] {
      const AxisView& axis = collective.axes.front();
      std::set<int> slices;
      Coordinates at(schedule.mesh.axes().size(), 0);
      for (int c = 0; c < axis.size; ++c) {
        at[static_cast<std::size_t>(axis.axis)] = c * axis.stride;
        slices.insert(placement.chip_of[schedule.mesh.device(at).index()].value / chips);
      }
      return slices.size() > 1 && slices.size() == static_cast<std::size_t>(axis.size);
    }();
    return between ? direct_one(schedule, program, collective) : otherwise(schedule, program, collective);
  };
}

bool is_rule(std::string_view policy) { return policy == by_dimension_name || policy == direct_between_slices_name || policy == nccl_name; }

}  // namespace podsim
