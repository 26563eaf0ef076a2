// Whether a run computed what it should have.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/mpi/rank_runner.hpp"

namespace podsim {

struct Verdict {
  bool same_as_numeric = false;  // every input and output of every device, bit by bit, on uniform data and on integers
  bool has_reference = false;    // the schedule says what it computes
  bool as_reference = false;     // bit-equal to that on integers
  std::string problem;           // the first thing wrong
  [[nodiscard]] bool ok() const { return same_as_numeric && (as_reference || !has_reference); }
};

/// After run() of all ranks on uniform data from `seed`, which rounds as the schedule's dtypes do; it runs them once more, on integers, which are
/// exact. What they hold goes to the root, which runs the numeric engine on the whole schedule and asks the reference. All ranks get the verdict.
/// Errors: those of the engine and of the reference.
Expected<Verdict> judge(const Schedule& lowered, RankRunner& runner, const Team& team, std::uint64_t seed, Bytes limit);

}  // namespace podsim
