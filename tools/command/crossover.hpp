// Who wins where: the ranking of variants along one machine value.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/command/variants.hpp"

namespace podsim {

/// PATH=lo..hi, both ends with the same unit.
/// Errors: not of that form, different units, lo not below hi.
Expected<CrossoverRange> parse_crossover(const std::string& text);

/// Simulates the variants at seven values spaced evenly (by ratio where lo > 0) and halves every interval whose ends have different winners
/// until it is within 2 %. An algorithm that wins only between two of the seven values is not seen. Errors: the path, a value out of its range,
/// no variant applies.
Expected<Crossovers> find_crossovers(const Pod& pod, const std::string& place, const std::vector<Variant>& variants, const Manner& manner,
                                     const CrossoverRange& range);

}  // namespace podsim
