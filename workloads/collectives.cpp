#include "workloads/collectives.hpp"

#include <algorithm>
#include <cmath>

namespace podsim {

ChunkRule chunk_rule(const Machine& machine) {
  const LinkParameters& link = machine.link[0];
  return [alpha = machine.software.per_message + link.latency, bandwidth = link.bandwidth](int devices, Bytes payload) {
    if (alpha == Seconds{}) return default_chunks;
    return static_cast<int>(std::clamp(std::round(best_chunks(devices - 1, static_cast<double>(payload.count()), alpha, bandwidth)), 1.0, 64.0));
  };
}

CollectiveChooser on_factors(CollectiveChooser chooser, std::vector<AxisView> factors) {
  return [chooser = std::move(chooser), factors = std::move(factors)](const Schedule& schedule,
                                                                      const Collective& collective) -> Expected<CollectiveAlgorithm> {
    Collective factored = collective;
    factored.axes = factors;
    const auto algorithm = chooser(schedule, factored);
    if (!algorithm) return algorithm.error();
    return CollectiveAlgorithm{[algorithm = *algorithm, factors](const Mesh& mesh, const Program& program, const Collective& whole) {
      Collective on = whole;
      on.axes = factors;
      return algorithm(mesh, program, on);
    }};
  };
}

CollectiveChooser by_dimension(ChunkRule chunks) {
  return [chunks = std::move(chunks)](const Schedule& schedule, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    const auto otherwise = ring_or_line(chunks);
    if (collective.axes.size() != 1) return otherwise(schedule, collective);
    const AxisView& axis = collective.axes.front();
    std::vector<AxisView> dimensions;
    if (axis == schedule.mesh.whole(axis.axis))
      for (const AxisView& factor : schedule.mesh.factors(axis.axis))
        if (factor.size > 1) dimensions.push_back(factor);
    if (dimensions.size() < 2) return otherwise(schedule, collective);
    const auto rotated = always("rotations", chunks);
    if (!rotated) return rotated.error();
    const auto at_once = on_factors(*rotated, dimensions)(schedule, collective),
               in_turn = on_factors(otherwise, dimensions)(schedule, collective);
    if (!at_once || !in_turn) return at_once ? in_turn : at_once;
    return CollectiveAlgorithm{[at_once = *at_once, in_turn = *in_turn](const Mesh& mesh, const Program& program, const Collective& whole) {
      auto expansion = at_once(mesh, program, whole);
      return expansion ? expansion : in_turn(mesh, program, whole);
    }};
  };
}

}  // namespace podsim
