// What a process asks of a sweep: all of its points, or those of a shard.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/sweep/points.hpp"
#include "tools/sweep/sweep_shard.hpp"

namespace podsim {

/// A sweep as it was given, and the program's version.
struct SweepText {
  std::string text, file, version;
  std::optional<SweepShard> shard{};  // whose points are asked for; nullopt: all
};

struct AskedPoints {
  const Points* points = nullptr;          // all of the sweep
  std::vector<std::size_t> positions;      // ascending
  std::vector<std::string> input_keys;     // of each
  std::map<std::string, std::string> contents;  // the key of each file that one of them names, and of each shipped machine: InputKeys::contents()
};

/// The points of blocks that check_sweep() has nothing against; `mesh: "all"` is laid over the systems that the points name. Errors: those of check_sweep()
/// and expand().
Expected<Points> checked_points(std::vector<SweepBlock> blocks);

/// Refers to `points`.
///   cost   O(their arguments), and each file that they name read once
AskedPoints asked_points(const SweepText& sweep, const Points& points);

}  // namespace podsim
