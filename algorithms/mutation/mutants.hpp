// Schedules with one mistake each: lost, doubled or swapped contributions, missing edges, misdirected transfers.
#pragma once

#include <cstdint>
#include <string>

#include "sim/schedule/schedule.hpp"

namespace podsim::mutation {

struct Mutant {
  Schedule schedule;
  std::string mistake;  // the mistake and its location
};

/// A lowered schedule of one program with one mistake; equal seeds give equal mutants. About half of the mistakes affect one device only. Regions
/// stay inside their buffers. The mutant may run or deadlock, may race, and may even compute the right result.
Mutant mutate(const Schedule& base, std::uint64_t seed);

/// The same for a mistake in one sum: a contribution lost or doubled. Any mistake if no task adds.
Mutant mutate_sum(const Schedule& base, std::uint64_t seed);

}  // namespace podsim::mutation
