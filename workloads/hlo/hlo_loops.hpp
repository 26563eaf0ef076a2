// How often the loops of a module run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Trip counts by the name of the `while`.
using HloTripCounts = std::map<std::string, std::int64_t>;

struct HloTripCount {
  /// given: by the caller; told: known_trip_count of backend_config; condition: from its comparison; assumed: 1, in tolerant counting.
  enum class Source { given, told, condition, assumed };
  std::int64_t count = 1;
  Source source = Source::assumed;
  std::optional<std::int64_t> by_condition{};  // of one that is told: what the condition gives, where that is another count
  friend bool operator==(const HloTripCount&, const HloTripCount&) = default;
};

/// How often a `while` of a computation runs: as given, else as told, else by its condition. A condition is understood if it compares element i of
/// the loop's tuple with a constant, or with an element that the loop does not change, if element i begins with a constant and each iteration adds a
/// constant to it; through copies, converts, bitcasts and fusions. Errors (at the `while`): none of these; the message names `--trip-count`'s field.
Expected<HloTripCount> trip_count_of(const HloModule& module, const HloComputation& computation, const HloInstruction& loop,
                                     const HloTripCounts& given = {});

}  // namespace podsim
