// The definitions of collectives, on plain arrays.
#pragma once

#include <optional>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The result of a collective on the devices along its axes, positions 0 .. P-1. Devices with equal results share an array.
struct CollectiveOutputs {
  std::vector<std::vector<double>> arrays;
  std::vector<std::optional<std::size_t>> array_of;  // per position; nullopt: the definition does not constrain that device
};

/// Computed from the contents of each position's input region, row-major:
///   all-gather      block b of the output along `dim` is the input of b
///   reduce-scatter  position p has block p along `dim` of the sum of the inputs
///   all-reduce      the sum of the inputs
///   all-to-all      block b of the output along `dim` at position p is block p along `split_dim` of the input of b
///   broadcast       the input of `root`
///   reduce          `root` has the sum of the inputs
///   permute         the `to` of each pair has the input of its `from`
/// Errors: an extent that does not divide into P blocks.
Expected<CollectiveOutputs> outputs_of(const Collective& collective, const std::vector<std::vector<double>>& inputs);

/// The number of doubles in all arrays together.
std::int64_t output_elements(const Collective& collective, std::int64_t positions);

}  // namespace podsim
