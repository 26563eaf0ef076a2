// Schedules with one mistake each: contributions lost, doubled or swapped, waits forgotten, transfers gone astray.
#pragma once

#include <cstdint>
#include <string>

#include "sim/schedule/schedule.hpp"

namespace podsim::mutation {

struct Mutant {
  Schedule schedule;
  std::string mistake;  // which, and where
};

/// A lowered schedule of one program with one mistake, the same for the same seed. About half of the mistakes are made on one device only. Regions
/// stay inside their buffers; whether the mutant can run, races or still computes the right thing is not known.
Mutant mutate(const Schedule& base, std::uint64_t seed);

/// The same, of one sum: a contribution lost or doubled. Any mistake if nothing is summed over tasks.
Mutant mutate_sum(const Schedule& base, std::uint64_t seed);

}  // namespace podsim::mutation
