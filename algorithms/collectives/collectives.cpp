#include "algorithms/collectives/collectives.hpp"

#include <algorithm>
#include <array>

namespace podsim {

std::span<const CollectiveAlgorithmEntry> collective_algorithms() {
  static constexpr std::array<CollectiveAlgorithmEntry, 3> table{{
      {"ring", "both directions of a wrapped axis at once, half a shard each", &ring},
      {"ring-one-way", "one direction of a wrapped axis, whole shards", &ring_one_way},
      {"line", "an open axis: shards travel to both ends", &line},
  }};
  return table;
}

Expected<CollectiveChooser> always(std::string_view name) {
  std::vector<std::string> names;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
    if (entry.name == name)
      return CollectiveChooser{[expand = entry.expand](const Schedule&, const Collective&) -> Expected<CollectiveAlgorithm> { return CollectiveAlgorithm{expand}; }};
    names.emplace_back(entry.name);
  }
  return Diagnostic{{}, "there is no collective algorithm " + quoted(name) + did_you_mean(name, names)};
}

CollectiveChooser ring_or_line() {
  return [](const Schedule& schedule, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    const bool wraps = std::all_of(collective.axes.begin(), collective.axes.end(), [&](const AxisView& view) { return schedule.mesh.wraps(view); });
    return CollectiveAlgorithm{wraps ? &ring : &line};
  };
}

}  // namespace podsim
